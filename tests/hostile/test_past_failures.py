"""Every way taufit once broke, by name; none may come back."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from taufit.cli import main
from taufit.core.errors import TaufitError
from taufit.excitation import read_motion
from taufit.model.model_file import read_model
from taufit.recording import read_recordings, write_recording
from taufit.recording.column_map import read_map


def run(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return stop.value.code or 0, printed.out, printed.err


@pytest.fixture
def edited(arm, tmp_path):
    """A model file with one value changed, by the place in it."""

    def change(*way, to=None, remove=False):
        data = json.loads((arm / "model.json").read_text())
        holder = data
        for step in way[:-1]:
            holder = holder[step]
        if remove:
            del holder[way[-1]]
        else:
            holder[way[-1]] = to
        path = tmp_path / "edited.json"
        path.write_text(json.dumps(data))
        return path

    return change


@pytest.mark.parametrize("form", ["urdf", "mjcf", "c", "json"])
def test_an_export_to_dev_null_leaves_the_device(arm, capsys, form):
    words = ["export", arm / "model.json", "--format", form, "-o", os.devnull]
    assert run(capsys, *words)[0] == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_export_to_dev_stdout_is_printed(arm):
    words = ["export", arm / "model.json", "--format", "urdf", "-o", "/dev/stdout"]
    ran = subprocess.run([sys.executable, "-m", "taufit", *words], capture_output=True, text=True)
    assert ran.returncode == 0 and "</robot>" in ran.stdout
    assert os.path.islink("/dev/stdout")


def test_a_conversion_to_dev_null_is_done(arm, capsys):
    assert run(capsys, "convert", arm / "run.parquet", "-o", os.devnull)[0] == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


EDITS = [
    (("range", "position", "low"), "<script>", "range.position.low"),
    (("robot", "links", 0, "placement"), 0, r"robot.links\[0\].placement"),
    (("score",), 7, "score"),
    (("robot", "name"), 1e308, "robot.name"),
    (("robot", "limits", "velocity"), [], "robot.limits.velocity"),
    (("robot", "mounting", 0), 10**29, "robot.mounting"),
    (("robot", "mounting"), [1, 2], "robot.mounting"),
    (("robot", "links", 0, "screw", 2), 1e300, r"robot.links\[0\].screw"),
    (("robot", "drives", "side"), "top", "robot.drives.side"),
    (("robot", "drives", "coupling", 0, 0), 0, "robot.drives.coupling"),
    (("robot", "limits", "lower", 0), 99, "robot.limits"),
    (("friction", "name"), [1], "friction"),
    (("friction", "width"), "../../etc/passwd", "friction"),
    (("parameters", 3, "value"), None, r"parameters\[3\].value"),
    (("robot", "urdf"), "", "robot.urdf"),
    (("robot", "urdf"), "<robot name='x'><link name='other'/></robot>", "robot.urdf"),
    (("robot", "urdf"), "<!DOCTYPE a [<!ENTITY b 'c'>]><robot>&b;</robot>", "robot.urdf"),
]


@pytest.mark.parametrize(("way", "value", "place"), EDITS, ids=[e[2] + str(e[1]) for e in EDITS])
def test_a_wrong_value_of_a_model_is_named_by_its_place(edited, way, value, place):
    with pytest.raises(TaufitError, match=place):
        read_model(edited(*way, to=value))


def test_a_missing_row_of_a_covariance_is_named(edited):
    with pytest.raises(TaufitError, match=r"base\.covariance"):
        read_model(edited("base", "covariance", 0, remove=True))


TEXTS = {
    "nested": "[" * 200_000,
    "nested objects": '{"a":' * 200_000,
    "digits": '{"format": ' + "9" * 5000 + "}",
    "twice": '{"kind": "fourier", "kind": "spline"}',
    "constant": '{"format": NaN}',
    "exponent": '{"format": 1e999}',
    "list": "[]",
    "nothing": "",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("read", [read_model, read_motion], ids=["model", "motion"])
def test_hostile_json_is_refused_in_a_sentence(tmp_path, read, text):
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(TaufitError) as caught:
        read(path)
    assert len(str(caught.value)) < 400 and str(path) in str(caught.value)


@pytest.mark.parametrize("frequency", [1e-300, 1e-9, 0.0, -1.0])
def test_a_motion_without_end_is_refused(arm, tmp_path, frequency):
    data = json.loads((arm / "motion.json").read_text())
    data["frequency_hz"] = frequency
    path = tmp_path / "motion.json"
    path.write_text(json.dumps(data))
    with pytest.raises(TaufitError):
        read_motion(path)


@pytest.mark.parametrize("option", ["--after", "--envelope"])
def test_nested_json_of_design_is_refused(tmp_path, capsys, option):
    path = tmp_path / "file.json"
    path.write_text("[" * 200_000)
    out = tmp_path / "motion.json"
    code, _, _ = run(capsys, "design", "ur3", "--seconds", "0.1", option, path, "-o", out)
    assert code in (1, 2, 3) and not out.exists()


def test_nested_effects_of_simulate_are_refused(tmp_path, capsys):
    path = tmp_path / "effects.yaml"
    path.write_text("[" * 200_000)
    out = tmp_path / "run.parquet"
    code, _, err = run(capsys, "simulate", "ur3", "--effects", path, "-o", out)
    assert code == 3 and "nested too deeply" in err and not out.exists()


def test_a_map_that_says_a_thing_twice_is_refused(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text("columns: {time: t}\ngains: 1\ngains: 2\n")
    with pytest.raises(TaufitError, match="line 3 gives 'gains' twice"):
        read_map(path)


def test_a_map_with_a_number_of_thirty_digits_is_refused(tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text(f"columns: {{time: t, position: 'q{{joint}}', torque: 't{{joint}}'}}\n"
                    f"rate_hz: {10**40}\n")  # fmt: skip
    with pytest.raises(TaufitError, match="rate_hz"):
        read_map(path)


@pytest.mark.parametrize("value", ["99999999999999999999", "0", "-1", "nan", "1e9"])
def test_no_number_of_runs_is_endless(tmp_path, capsys, value):
    words = ["simulate", "ur3", "--runs", value, "-o", tmp_path / "run.parquet"]
    assert run(capsys, *words)[0] == 2
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", ["1e-308", "1e308", "-1", "nan"])
def test_a_cutoff_nobody_means_is_refused(arm, capsys, value):
    code, _, _ = run(capsys, "check", arm / "model.json", arm / "run.parquet", "--cutoff-hz", value)
    assert code in (1, 2, 3)


def test_a_name_that_looks_like_markup_is_shown(edited, arm, capsys):
    path = edited("robot", "name", to="arm[/b]")
    _, out, _ = run(capsys, "check", path, arm / "run.parquet")
    assert "arm[/b]" in out


def test_names_as_long_as_the_file_system_allows_are_written(arm, tmp_path, capsys):
    name = "n" * 250 + ".urdf"
    words = ["export", arm / "model.json", "--format", "urdf", "-o", tmp_path / name]
    assert run(capsys, *words)[0] == 0
    assert os.listdir(tmp_path) == [name]


def test_a_bag_that_cannot_be_written_leaves_nothing(arm, tmp_path, monkeypatch, capsys):
    import taufit.core.files

    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(taufit.core.files.os, "replace", full)
    code, _, err = run(capsys, "convert", arm / "run.parquet", "-o", tmp_path / "bag")
    assert code == 3 and os.strerror(28) in err and os.listdir(tmp_path) == []


def test_a_parquet_file_with_a_damaged_footer_does_not_end_the_process(arm, tmp_path):
    data = (arm / "run.parquet").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(data)
        for at in rng.integers(1, 3000, size=3):
            damaged[-int(at)] = int(rng.integers(256))
        path = tmp_path / "run.parquet"
        path.write_bytes(damaged)
        try:
            read_recordings(path)
        except TaufitError as error:
            assert str(path) in str(error)


def test_kernel_calls_with_shapes_that_disagree_are_refused():
    kernel = pytest.importorskip("taufit._kernel")
    eye, ones = np.eye(5), np.ones(2, np.int8)
    for call in (
        lambda: kernel.sign_mix(eye, np.ones((2, 2)), 3, 1e-6),
        lambda: kernel.sign_mix(np.ones((5, 2)), np.ones((5, 2)), 3, 1e-6),
        lambda: kernel.sign_decode(eye, ones, 10.0, 100),
        lambda: kernel.sign_list(eye, ones, 10.0, 100, 5),
        lambda: kernel.sign_margins(eye, ones, np.ones(5, np.int8), np.ones(5), 0.0, 9.0, 99, 5),
        lambda: kernel.sign_margins(eye, np.ones(5, np.int8), ones, np.ones(5), 0.0, 9.0, 99, 5),
        lambda: kernel.sign_factor(np.ones((5, 2)), -1),
    ):
        with pytest.raises(ValueError, match="shapes do not agree"):
            call()


def test_the_binding_survives_odd_arguments():
    kernel = pytest.importorskip("taufit._kernel")
    from tests.fuzz.binding import fuzz_binding

    counts = fuzz_binding(kernel, 2000, seed=3)
    # Functions without a caller of their own there get arguments of any kind, mostly refused.
    own = [name for name in counts if name.startswith("sign_")]
    assert own and all("returned" in counts[name] for name in own), counts


def test_an_npz_whose_header_ends_early_is_refused(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, "
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "run.npz", "w") as archive:
        archive.writestr("q.npy", array)
    with pytest.raises(TaufitError, match=r"cannot be read as \.npz"):
        read_recordings(tmp_path / "run.npz")


def test_a_joint_without_torque_has_no_percentage(arm, tmp_path, capsys):
    recording = read_recordings(arm / "run.parquet")[0]
    signal = recording.signal.copy()
    signal[:, 2] = 0.0
    write_recording(replace(recording, signal=signal), tmp_path / "zero.parquet")
    words = [
        "fit",
        "ur3",
        tmp_path / "zero.parquet",
        "--ignore-contradictions",
        "-o",
        tmp_path / "m.json",
    ]
    code, out, _ = run(capsys, *words, "--json")
    page = json.loads(out)
    assert code == 0 and page["nrmse"][2] is None and 0.0 < page["mean_nrmse"] < 10.0
    code, out, _ = run(capsys, *words)
    assert code == 0 and not re.search(r"\d{8}", out)
    read_model(tmp_path / "m.json")


@pytest.mark.parametrize("settings", [("--gain-std", "0"), ()])
def test_an_empty_hand_has_no_negative_bound(arm, capsys, settings):
    words = ["payload", arm / "model.json", arm / "run.parquet", *settings]
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0 and json.loads(out)["mass"]["high"] >= 0.0
    code, out, _ = run(capsys, *words)
    assert code == 0 and "below -" not in out


def test_a_pipe_is_called_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "run.parquet")
    with pytest.raises(TaufitError, match="is a pipe"):
        read_recordings(tmp_path / "run.parquet")


def test_large_files_are_announced_on_a_terminal(arm, capsys, monkeypatch):
    monkeypatch.setattr("taufit.cli.common.LARGE_FILE", 1000)
    words = ["convert", arm / "run.parquet", "-o", os.devnull]
    assert "reading" not in run(capsys, *words)[2]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "reading run.parquet" in run(capsys, *words)[2]


@pytest.mark.parametrize(
    ("effects", "word"),
    [
        ("timing: {jitter: 1.0e+9}", "jitter"),
        ("thermal: {ambient: [1, 2]}", "ambient"),
        ("timing: {drop: [0.1, 0.2]}", "drop"),
        ("pushes: [{start: [1, 2], force: [1, 0, 0]}]", "start"),
    ],
)
def test_effects_of_no_meaning_are_named(tmp_path, capsys, effects, word):
    path = tmp_path / "effects.yaml"
    path.write_text(effects)
    code, _, err = run(capsys, "simulate", "ur3", "--effects", path, "-o", tmp_path / "r.parquet")
    assert code == 3 and word in err


@pytest.fixture
def rushing(arm, tmp_path):
    """A motion of 1e150 rad."""
    data = json.loads((arm / "motion.json").read_text())
    text = json.dumps(data)
    name = next(key for key in ("a", "sine", "cosine", "b", "coefficients") if key in data)
    data[name] = (1e150 * np.ones_like(np.array(data[name], float))).tolist()
    assert json.dumps(data) != text
    path = tmp_path / "rushing.json"
    path.write_text(json.dumps(data))
    return path


def test_an_earlier_motion_beyond_all_numbers_is_refused(arm, rushing, tmp_path, capsys):
    words = ["design", "ur3", "--seconds", "0.1", "--free-space", "--after", rushing]
    code, _, err = run(capsys, *words, "-o", tmp_path / "m.json")
    assert code == 3 and "beyond all numbers" in err


def test_an_energy_near_the_end_of_numbers_has_no_nan(arm, rushing, capsys):
    code, out, err = run(capsys, "energy", arm / "model.json", rushing)
    assert code in (0, 1) and "nan" not in out + err and "inf" not in out


def test_an_estimator_may_be_given_by_name(arm):
    import taufit

    named = taufit.identify("ur3", arm / "run.parquet", friction="linear", estimator="ols")
    plain = taufit.identify("ur3", arm / "run.parquet", friction="linear", estimator=taufit.Ols())
    np.testing.assert_array_equal(named.estimate.values, plain.estimate.values)
    with pytest.raises(TaufitError, match="consistent_sdp"):
        taufit.identify("ur3", arm / "run.parquet", estimator="best")


def test_a_damaged_schema_of_a_live_file_is_refused(tmp_path):
    from taufit.recording.live import RecordingWriter

    with RecordingWriter(tmp_path / "run.parquet", joints=1) as writer:
        for k in range(5):
            writer.append(k, [k], [k], velocity=[k])
        writer.flush()
        (path,) = tmp_path.glob("*.live")
        data = path.read_bytes()
    path = tmp_path / "damaged.live"
    for name in (b"q_1", b"columns", b"taufit.recording"):
        path.write_bytes(data.replace(name, b"\xff" * len(name)))
        with pytest.raises(TaufitError):
            read_recordings(path)


def test_what_runs_do_not_tell_is_no_number():
    from taufit.cli.health import _with_interval

    assert _with_interval(float("nan"), 1.0, 1) == "not known"
    assert _with_interval(1.0, float("inf"), 1) == "+1.0"
    assert _with_interval(1.0, 1.0, 1) == "+1.0 ± 2.0"


def test_numpys_warnings_are_no_words_for_a_user(tmp_path):
    code = """
import sys
from taufit.cli.parts import process
process.configure_process()
import numpy as np
np.zeros(1) / np.zeros(1)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stderr == ""
