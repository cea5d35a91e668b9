"""`taufit check` says what was done to a recording, and what to do after FAIL."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import taufit
from taufit.cli import main
from taufit.validation import score


def run(capsys, *arguments):
    """Exit code and stdout of one command, in this process."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code or 0, capsys.readouterr().out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, its recording, and the same recording with a damaged row."""
    folder = tmp_path_factory.mktemp("check")
    for words in (
        ["simulate", "ur3", "-o", folder / "run.parquet"],
        ["fit", "ur3", folder / "run.parquet", "--friction", "linear", "--estimator", "wls",
         "-o", folder / "model.json"],
        ["convert", folder / "run.parquet", "-o", folder / "run.csv"],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        assert not stop.value.code, words
    lines = (folder / "run.csv").read_text().splitlines()
    cells = lines[2000].split(",")
    cells[2] = "-1.6e184"
    lines[2000] = ",".join(cells)
    (folder / "damaged.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_rows_dropped_while_reading_are_told(folder, capsys):
    code, out = run(capsys, "check", folder / "model.json", folder / "damaged.csv", "--json")
    told = " ".join(json.loads(out)["files"][0]["warnings"])
    assert code == 0 and "-1.6e+184" in told and "dropped" in told
    code, out = run(capsys, "check", folder / "model.json", folder / "run.parquet", "--json")
    assert "dropped" not in " ".join(json.loads(out)["files"][0]["warnings"])


def test_the_next_step_follows_from_the_verdict(folder, capsys):
    check = ["check", folder / "model.json", folder / "run.parquet"]
    code, out = run(capsys, *check)
    assert code == 0 and out.startswith("PASS") and "Next: `taufit export" in out
    code, out = run(capsys, *check, "--max-mean-nrmse", "1e-6")
    assert code == 1 and out.startswith("FAIL")
    assert "taufit export" not in out and "taufit report" in out


@pytest.mark.parametrize("robot", ["ur3", "panda"])
def test_tables_fit_80_columns(robot, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "a_long_name_of_a_recording.parquet"
    assert run(capsys, "simulate", robot, "-o", path)[0] == 0
    code, out = run(capsys, "fit", robot, path, "--friction", "linear", "--estimator", "wls",
                    "--holdout", path, "--allow-repeats", "-o", tmp_path / "m.json")  # fmt: skip
    assert code == 0
    lines = out.splitlines()
    # Commands to paste and paths are not broken.
    text = [line for line in lines if "`taufit" not in line and str(tmp_path) not in line]
    assert max(map(len, text)) <= 80
    # No figure is broken over two lines.
    rows = [line.split() for line in lines if line.startswith(" training ")]
    assert len(rows[0]) == 2 + taufit.read_robot(robot).joints


def test_standing_joints_are_named(folder):
    model = taufit.read_model(folder / "model.json")
    samples = taufit.condition(taufit.read_recording(folder / "run.parquet"))
    assert not [text for text in score(model, samples).findings if "still" in text]
    position = samples.position.copy()
    position[:, [1, 4]] = position[0, [1, 4]]
    held = score(model, replace(samples, position=position)).findings
    assert np.any(["joint 2, 5 stand still" in text for text in held])
