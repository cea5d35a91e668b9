"""`taufit convert`: one command from any file to a report and another file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from taufit.cli import main
from taufit.recording import Recording, read_recording, write_recording

MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"


def taufit(capsys, *arguments):
    """(exit code, stdout, stderr) of one command."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return end.value.code or 0, out, err


@pytest.fixture
def csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    time = np.arange(300) * 0.004
    position = np.sin(time[:, None] * [1.0, 2.0])
    table = np.column_stack([np.repeat([1, 2], 150), time, position, np.cos(position)])
    names = "run,t,q1,q2,tau1,tau2"
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=names, comments="")
    (tmp_path / "log.yaml").write_text(
        "columns: {run: run, time: t, position: 'q{joint}', torque: 'tau{joint}'}\n"
    )
    return tmp_path / "log.csv"


def test_several_runs_become_several_files(csv, capsys):
    code, out, _ = taufit(capsys, "convert", csv, "--map", "log.yaml", "-o", "out/run.csv.gz")
    assert code == 0 and "run 2: 150 samples" in out and "250 Hz" in out
    first = read_recording("out/run_001.csv.gz")
    second = read_recording("out/run_002.csv.gz")
    assert len(first) == len(second) == 150 and first.time[0] == 0


def test_one_run_with_payload_as_json(csv, capsys):
    arguments = ["--map", "log.yaml", "--run", 2, "--payload", 1.5, "-o", "two.mcap", "--json"]
    code, out, err = taufit(capsys, "convert", csv, *arguments)
    page = json.loads(out)
    assert code == 0 and err == ""
    assert page["samples"] == 150 and page["run"] == 2 and page["payload"] == 1.5
    assert page["nominal_rate_hz"] == pytest.approx(250) and page["gaps"] == 0
    assert {"kind", "severity", "message"} <= page["findings"][0].keys()
    assert read_recording("two.mcap").payload == 1.5


def test_there_and_back_again(csv, capsys):
    taufit(capsys, "convert", csv, "--map", "log.yaml", "--run", 1, "-o", "a.parquet")
    for source, target in (("a.parquet", "b.mcap"), ("b.mcap", "c.csv"), ("c.csv", "d.parquet")):
        code, _, err = taufit(capsys, "convert", source, "-o", target)
        assert code == 0, err
    a, d = read_recording("a.parquet"), read_recording("d.parquet")
    for name in ("time", "position", "signal", "gain"):
        np.testing.assert_array_equal(getattr(a, name), getattr(d, name))
    assert a.findings == d.findings


def test_without_an_output_it_lands_here_as_parquet(csv, capsys):
    (csv.parent / "elsewhere").mkdir()
    moved = csv.rename(csv.parent / "elsewhere" / "log.txt")
    code, out, _ = taufit(capsys, "convert", moved, "--map", "log.yaml", "--run", 1)
    assert code == 0 and "written: log.parquet" in out and Path("log.parquet").exists()


def test_report_writes_nothing(csv, capsys):
    before = sorted(csv.parent.iterdir())
    code, out, _ = taufit(capsys, "convert", csv, "--map", "log.yaml", "--report")
    assert code == 0 and "rest" in out and "Next:" in out
    assert sorted(csv.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["log.csv"], "column map"),
        (["log.csv", "--map", "log.yaml", "--run", "7"], "runs 1 to 2"),
        (["log.csv", "--map", "none.yaml"], "no column map"),
        (["none.csv"], "there is no file"),
        (
            ["log.csv", "--map", "log.yaml", "--robot", "ur10e"],
            "expected 6 joints (ur10e), found 2 in log.csv",
        ),
        (["log.csv", "--map", "log.yaml", "--topic", "/joint_states"], "not a ROS bag"),
        (["log.csv", "--map", "log.yaml", "-o", "log.docx"], "are written as"),
        (["log.csv", "--map", "log.yaml", "--payload", "-3"], "not possible"),
        (["log.csv", "--map", "log.yaml", "--run", "1", "-o", "log.csv"], "itself"),
    ],
)
def test_wrong_input_gives_one_clear_message(csv, capsys, arguments, complaint):
    code, out, err = taufit(capsys, "convert", *arguments)
    assert code == 3 and out == "" and complaint in err
    assert "Traceback" not in err


def test_the_robot_puts_joints_into_its_order(tmp_path, capsys, monkeypatch):
    from taufit.robot import read_robot

    monkeypatch.chdir(tmp_path)
    names = list(read_robot("ur10e").joint_names)
    time = np.arange(100) * 0.01
    position = np.sin(time[:, None] * np.arange(1, 7))
    order = np.argsort(names)
    recording = Recording(
        time=time,
        position=position[:, order],
        signal=np.cos(position[:, order]),
        gain=np.arange(6.0)[order] + 1,
        meta={"joint_names": [names[i] for i in order]},
    )
    write_recording(recording, "alphabet.mcap")
    code, _, err = taufit(
        capsys, "convert", "alphabet.mcap", "--robot", "ur10e", "-o", "arm.parquet"
    )
    assert code == 0, err
    arm = read_recording("arm.parquet")
    np.testing.assert_array_equal(arm.position, position)
    assert arm.gain.tolist() == [1, 2, 3, 4, 5, 6]
    assert arm.meta["joint_names"] == names and arm.meta["robot"] == "ur10e"


def test_the_corrupt_shared_file_in_one_command(data_dir, tmp_path, capsys):
    file = data_dir / "ur10e" / "identification_data" / "ur-19_09_27-11_32_02.csv.gz"
    code, out, _ = taufit(
        capsys, "convert", file, "--map", MAPS / "ur10e_csv.yaml", "-o", tmp_path / "x.parquet"
    )
    assert code == 0 and "row 3: column 3 holds -1.61157e+184" in out
    assert len(read_recording(tmp_path / "x.parquet")) == 1119
