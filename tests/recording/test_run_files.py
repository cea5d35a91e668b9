"""Runs in several files read as the same run in one file; layouts of text and MATLAB files."""

import gzip
import json

import numpy as np
import pytest
import scipy.io
from benchmarks.layouts import sines

import taufit
from taufit.cli.app import main
from taufit.core.compute.cache import Cache
from taufit.core.errors import RecordingError
from taufit.dynamics import gravity_torque
from taufit.recording import read_map, read_recording
from taufit.recording.files import RecordingFiles, find_recordings
from taufit.recording.readers.from_csv import read_csv_table
from taufit.robot import read_robot
from taufit.workflow.file_cache import FileCache

MAP = {
    "columns": {
        "time": {"file": ["q.csv", "tau.csv"], "columns": "t"},
        "position": {"file": "q.csv"},
        "torque": {"file": "tau.csv", "columns": "tau{joint}"},
    }
}
BY_ROWS = {
    "columns": {"position": {"file": "q.csv"}, "torque": {"file": "tau.csv"}},
    "rate_hz": 100,
}


@pytest.fixture(scope="module")
def run():
    """A UR5e that follows sums of sines: time, position, velocity, torque."""
    return sines()


def _write(path, values, names=None, **options):
    header = "" if names is None else ",".join(names)
    np.savetxt(path, values, "%.17g", delimiter=",", header=header, comments="", **options)


def _run(*arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0


def _names(letter, count=6, first=1):
    return [f"{letter}{k}" for k in range(first, first + count)]


def test_files_with_one_clock_read_as_one_file(tmp_path, run):
    time, q, _, tau = run
    _write(tmp_path / "q.csv", np.column_stack([time, q]), ["t", *_names("q")])
    _write(tmp_path / "tau.csv", np.column_stack([time, tau]), ["t", *_names("tau")])
    recording = read_recording(tmp_path / "q.csv", column_map=MAP)
    np.testing.assert_array_equal(recording.time, time)
    np.testing.assert_array_equal(recording.position, q)
    np.testing.assert_array_equal(recording.signal, tau)


def test_another_rate_is_interpolated_and_gaps_stay_open(tmp_path):
    time, slow = np.arange(0.0, 10.0, 0.01), np.arange(0.0, 10.0, 0.025)
    slow = slow[(slow < 4.0) | (slow > 5.0)]
    q = np.column_stack([np.sin(time), np.cos(time)])
    _write(tmp_path / "q.csv", np.column_stack([time, q]), ["t", "q1", "q2"])
    # A straight line is what linear interpolation cannot get wrong.
    _write(tmp_path / "tau.csv", np.column_stack([slow, 3 * slow, -slow]), ["t", "tau1", "tau2"])
    recording = read_recording(tmp_path / "q.csv", column_map=MAP)
    expected = np.column_stack([3 * recording.time, -recording.time])
    np.testing.assert_allclose(recording.signal, expected, atol=1e-12)
    assert not np.any((recording.time > 4.0) & (recording.time < 4.99))
    assert "interpolated_file" in {finding.kind for finding in recording.findings}


def test_rows_and_clocks_that_do_not_belong_together_are_refused(tmp_path, run):
    time, q, _, tau = run
    _write(tmp_path / "q.csv", q, _names("q"))
    _write(tmp_path / "tau.csv", tau[:-1], _names("tau"))
    with pytest.raises(RecordingError, match=rf"q.csv {len(q)}, tau.csv {len(q) - 1}"):
        read_recording(tmp_path / "q.csv", column_map=BY_ROWS)
    _write(tmp_path / "tau.csv", tau, _names("tau"))
    assert len(read_recording(tmp_path / "q.csv", column_map=BY_ROWS)) == len(q)
    _write(tmp_path / "q.csv", np.column_stack([time, q]), ["t", *_names("q")])
    _write(tmp_path / "tau.csv", np.column_stack([time + 1e9, tau]), ["t", *_names("tau")])
    with pytest.raises(RecordingError, match="too little time in common"):
        read_recording(tmp_path / "q.csv", column_map=MAP)
    (tmp_path / "tau.csv").unlink()
    with pytest.raises(RecordingError, match=r"there is no file .*tau\.csv"):
        read_recording(tmp_path / "q.csv", column_map=MAP)


def test_a_run_is_named_by_its_position_file(tmp_path, run):
    _, q, _, tau = run
    page = json.loads(json.dumps(BY_ROWS).replace("q.csv", "*_q.csv").replace("tau.c", "*_tau.c"))
    for day, factor in (("mon", 1.0), ("tue", 2.0)):
        _write(tmp_path / f"{day}_q.csv", q, _names("q"))
        _write(tmp_path / f"{day}_tau.csv", factor * tau, _names("tau"))
    found = find_recordings([tmp_path], allow_repeats=True, column_map=page).paths
    assert [path.name for path in found] == ["mon_q.csv", "tue_q.csv"]
    for path, factor in zip(found, (1.0, 2.0), strict=True):
        recording = read_recording(path, column_map=page)
        np.testing.assert_array_equal(recording.signal, factor * tau)
    with pytest.raises(RecordingError, match="part of the run"):
        read_recording(tmp_path / "tue_tau.csv", column_map=page)
    # A literal name would pair Tuesday's motion with Monday's torque.
    with pytest.raises(RecordingError, match="write \\* in the map"):
        read_recording(tmp_path / "tue_q.csv", column_map=BY_ROWS)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"position": "a.csv", "torque": "../b.csv"}, "file name in the folder"),
        ({"position": "*_a.csv", "torque": "b.csv"}, "all file names have it"),
        ({"position": None, "torque": "b.csv"}, "not for position"),
    ],
)
def test_file_names_of_a_map_are_checked(files, message):
    columns = {
        quantity: "1-6" if name is None else {"file": name, "columns": "1-6"}
        for quantity, name in files.items()
    }
    with pytest.raises(RecordingError, match=message):
        read_map({"columns": columns, "rate_hz": 100})


def test_a_changed_companion_is_another_file_to_the_cache(tmp_path, run):
    _, q, _, tau = run
    _write(tmp_path / "q.csv", q, _names("q"))
    keys = []
    for factor in (1.0, 1.0, 1.5):
        _write(tmp_path / "tau.csv", factor * tau, _names("tau"))
        files = RecordingFiles((tmp_path / "q.csv",), read_recording, settings=(read_map(BY_ROWS),))
        with Cache(tmp_path / "cache") as cache:
            keys.append(FileCache(files, cache).file_key(0))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("layout", ["pair", "three", "joints", "bare", "folder"])
def test_files_of_a_run_are_drafted_and_read(layout, tmp_path, run, capsys, monkeypatch):
    time, q, v, tau = run
    monkeypatch.chdir(tmp_path)
    stamps = time[:, None]
    if layout in ("pair", "folder"):
        _write("log_q.csv", np.hstack([stamps, q]), ["t", *_names("q")])
        _write("log_tau.csv", np.hstack([stamps, tau]), ["t", *_names("tau")])
        given = ["log_q.csv", "log_tau.csv"]
    elif layout == "three":
        # Numbered columns in another order, the quantity in the file name only.
        order = [3, 0, 1, 2, 4, 5]
        names = ["time", *(f"axis_{k + 1}" for k in order)]
        given = ["efforts.csv", "positions.csv", "velocities.csv"]
        for name, block in zip(given, (tau, q, v), strict=True):
            _write(name, np.hstack([stamps + 1.6e9, block[:, order]]), names)
    elif layout == "joints":
        given = ["t.txt"]
        np.savetxt("t.txt", time)
        for letter, block in (("q", q), ("tau", tau)):
            for k in range(6):
                np.savetxt(f"{letter}{k + 1}.txt", block[:, k])
                given.append(f"{letter}{k + 1}.txt")
    else:
        given = ["q.csv", "dq.csv", "tau.csv"]
        for name, block in zip(given, (q, v, tau), strict=True):
            _write(name, block)
    sources = ["."] if layout == "folder" else given
    _run("convert", *sources, "--robot", "ur5e", "--draft", "map.yaml", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["unknowns"] == {}
    main_file = answer["next"].split()[3]
    recording = read_recording(main_file, column_map="map.yaml")
    np.testing.assert_allclose(recording.time - recording.time[0], time, atol=2e-6)
    np.testing.assert_allclose(recording.position, q, atol=1e-12)
    np.testing.assert_allclose(recording.signal, tau, atol=1e-9)
    assert (recording.velocity is not None) == (layout in ("three", "bare"))


def test_a_rate_that_nobody_recorded_is_marked_and_refused(tmp_path, run, capsys, monkeypatch):
    time, q, _, tau = run
    monkeypatch.chdir(tmp_path)
    _write("q.csv", q, _names("q", first=0))
    _write("tau.csv", tau, _names("tau"))
    _run("convert", "q.csv", "tau.csv", "--robot", "ur5e", "--draft", "map.yaml")
    out = capsys.readouterr().out
    rate = 1.0 / np.median(np.diff(time))
    assert f"about {rate:.3g} by the inertia" in out
    with pytest.raises(RecordingError, match=r"rate_hz is marked \?\?\?"):
        read_recording("q.csv", column_map="map.yaml")
    text = (tmp_path / "map.yaml").read_text().replace("???", f"{rate:g}")
    (tmp_path / "map.yaml").write_text(text)
    np.testing.assert_array_equal(read_recording("q.csv", column_map="map.yaml").signal, tau)


def test_measured_torque_goes_before_computed_and_rivals_are_named(tmp_path, run):
    time, q, _, tau = run
    computed = gravity_torque(read_robot("ur5e"), q)
    blocks = {"Torque": computed, "TorqueSm": 0 * tau, "TorqueCur": tau, "Cur": tau / 10}
    names = ["time", *_names("q"), *(n for name in blocks for n in _names(name))]
    _write(tmp_path / "log.csv", np.column_stack([time, q, *blocks.values()]), names)
    draft = taufit.draft_map(tmp_path / "log.csv", robot="ur5e")
    assert draft.page["columns"]["torque"] == "TorqueCur{joint}"
    assert [rival.split()[0] for rival in draft.rivals] == ["Cur1", "Torque1"]
    assert "so computed" in draft.rivals[1]
    # Without noise in any channel nothing marks the model's output: the plainest name is taken.
    blocks |= {"TorqueCur": computed, "Cur": computed / 10}
    _write(tmp_path / "log.csv", np.column_stack([time, q, *blocks.values()]), names)
    draft = taufit.draft_map(tmp_path / "log.csv", robot="ur5e")
    assert draft.page["columns"]["torque"] == "Torque{joint}"


def test_acceleration_without_a_name_is_no_torque(tmp_path, run):
    time, q, v, tau = run
    rng = np.random.default_rng(5)
    acceleration = np.gradient(v, time, axis=0)
    acceleration += 0.1 * acceleration.std(axis=0) * rng.normal(size=tau.shape)
    motor = 1.05 * tau + 0.03 * tau.std(axis=0) * rng.normal(size=tau.shape)
    _write(tmp_path / "log.csv", np.column_stack([q, v, acceleration, tau, motor]))
    draft = taufit.draft_map(tmp_path / "log.csv", robot="ur5e")
    assert draft.page["columns"] == {"position": "1-6", "velocity": "7-12", "torque": "25-30"}
    assert [rival.split()[0] for rival in draft.rivals] == ["19"]


def test_magnitudes_and_a_gripper_are_seen_by_the_draft(tmp_path, run):
    time, q, _, tau = run
    seven = np.column_stack([q, 0.1 * np.sin(time)])
    load = np.column_stack([np.abs(tau), 0.01 * np.abs(np.cos(time))])
    names = ["t", *_names("q", 7), *_names("cur", 7)]
    _write(tmp_path / "log.csv", np.column_stack([time, seven, load]), names)
    draft = taufit.draft_map(tmp_path / "log.csv", robot="ur5e")
    assert draft.page["signed"] is False
    assert draft.page["columns"]["position"] == _names("q")
    assert any("q7 is none of the robot's joints" in text for text in draft.open_questions)


def test_joints_are_found_by_the_robots_names(tmp_path, run):
    time, q, _, tau = run
    robot = read_robot("ur5e")
    order = [5, 0, 1, 2, 3, 4]
    names = [robot.joint_names[k] for k in order]
    header = ["time", *(f"{n}/position" for n in names), *(f"{n}/effort" for n in names)]
    _write(tmp_path / "log.csv", np.column_stack([time, q[:, order], tau[:, order]]), header)
    draft = taufit.draft_map(tmp_path / "log.csv", robot=robot)
    assert draft.page["joint_names"] == names
    recording = read_recording(tmp_path / "log.csv", column_map=draft.page)
    np.testing.assert_array_equal(recording.signal, tau[:, order])


def test_a_frame_is_drafted_and_the_error_says_so(run):
    pandas = pytest.importorskip("pandas")
    time, q, _, tau = run
    frame = pandas.DataFrame(
        np.column_stack([time, q, tau]), columns=["t", *_names("angle"), *_names("moment")]
    )
    with pytest.raises(RecordingError, match=r"taufit\.draft_map"):
        read_recording(frame)
    draft = taufit.draft_map(frame)
    np.testing.assert_array_equal(read_recording(frame, column_map=draft.page).signal, tau)


TEXTS = {
    "title": "Robot 7, Monday\nfirmware 1.2\n\nt,q1,tau1\n{rows}",
    "units": "t,q1,tau1\ns,rad,Nm\n{rows}",
    "title and units": "Robot 7\nt,q1,tau1\n[s],[rad],[Nm]\n{rows}",
}


@pytest.mark.parametrize("layout", TEXTS)
def test_lines_before_the_numbers_are_not_read(layout, tmp_path):
    rows = "".join(f"{0.01 * k:.2f},{k},{2 * k}\n" for k in range(60))
    (tmp_path / "log.csv").write_text(TEXTS[layout].format(rows=rows))
    table = read_csv_table(tmp_path / "log.csv")
    assert table.names == ("t", "q1", "tau1")
    assert not table.bad_cells
    np.testing.assert_array_equal(table.values[:, 1], np.arange(60))
    assert "title_lines" in {finding.kind for finding in table.findings}


@pytest.mark.parametrize("header", [True, False])
def test_text_columns_do_not_spoil_the_numbers(header, tmp_path):
    rows = "".join(f"0,0{k % 10};auto;{k},5;{2 * k}\n" for k in range(80))
    path = tmp_path / "log.csv"
    path.write_text(("t;mode;q1;tau1\n" if header else "") + rows)
    table = read_csv_table(path)
    assert any(table.names) == header
    np.testing.assert_array_equal(table.values[:, 2], np.arange(80) + 0.5)
    assert np.isnan(table.values[:, 1]).all()
    assert not table.bad_cells
    # One word in a column of numbers is still a bad cell.
    path.write_text(path.read_text().replace("\n0,05;auto;45,5", "\n0,05;auto;oops"))
    assert [cell[2] for cell in read_csv_table(path).bad_cells] == ["oops"]


def test_a_dump_of_a_controller_is_read_by_its_indices(tmp_path):
    text = "".join(f"GVL.q[{k}]:={0.5 * k:.3f};\n" for k in range(50))
    text += "".join(f"GVL.tau[{k},{j}] := {k - j}\n" for k in range(50) for j in (0, 1))
    with gzip.open(tmp_path / "dump.txt.gz", "wt") as file:
        file.write(text)
    table = read_csv_table(tmp_path / "dump.txt.gz")
    assert table.names == ("GVL.q", "GVL.tau_1", "GVL.tau_2")
    np.testing.assert_array_equal(table.values[:, 0], 0.5 * np.arange(50))
    np.testing.assert_array_equal(table.values[:, 2], np.arange(50) - 1.0)


def test_matlab_structures_are_read_whatever_their_shape(tmp_path, run):
    time, q, _, tau = run
    joints = np.array([(q[:, k], tau[:, k]) for k in range(6)], dtype=[("q", "O"), ("tau", "O")])
    scipy.io.savemat(tmp_path / "joints.mat", {"log": {"t": time, "joint": joints}})
    draft = taufit.draft_map(tmp_path / "joints.mat", robot="ur5e")
    recording = read_recording(tmp_path / "joints.mat", column_map=draft.page)
    np.testing.assert_array_equal(recording.signal, tau)
    cells = np.empty(6, object)
    cells[:] = list(q.T)
    scipy.io.savemat(tmp_path / "cells.mat", {"t": time, "q": cells, "tau": tau})
    draft = taufit.draft_map(tmp_path / "cells.mat", robot="ur5e")
    recording = read_recording(tmp_path / "cells.mat", column_map=draft.page)
    np.testing.assert_array_equal(recording.position, q)


def test_a_warning_of_many_runs_is_one_line():
    from taufit.cli.parts.map_draft import warnings_of_runs
    from taufit.recording import Finding

    findings = [Finding("stale_rows", "warning", f"{k} % repeat") for k in range(1, 5)]
    findings += [Finding("constant_signal", "warning", "stuck", joint=j) for j in (1, 2)]
    assert warnings_of_runs(findings) == ["1 % repeat (likewise in 3 more)", "stuck", "stuck"]
