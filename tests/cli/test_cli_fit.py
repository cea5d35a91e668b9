"""`taufit fit`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "validation"))
import simulated_arm

from taufit.cli import main
from taufit.model.model_file import read_model
from taufit.recording import write_recording
from taufit.robot import read_robot

KEYS = {
    "base_parameters",
    "condition_number",
    "consistent",
    "rmse",
    "nrmse",
    "mean_nrmse",
    "warnings",
    "cpu_seconds",
    "holdout",
}
HOLDOUT = {"file", "rmse", "nrmse", "mean_nrmse", "correlation", "samples"}


def run(capsys, *arguments):
    """Exit code, stdout and stderr of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return stop.value.code or 0, printed.out, printed.err


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    truth = simulated_arm.true_model(read_robot("ur5e"))
    for name, seconds, seed in (("train", 20.0, 0), ("test", 15.0, 1), ("short", 0.6, 2)):
        recording = simulated_arm.recording(truth, seconds, seed, name=name)
        write_recording(recording, folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def fitted(files):
    """A model file, made by the command."""
    path = files / "model.json"
    with pytest.raises(SystemExit) as stop:
        main(["fit", "ur5e", str(files / "train.parquet"), "-o", str(path), "--json"])
    assert not stop.value.code
    return path


def test_json_keeps_the_contract(files, tmp_path, capsys):
    model = tmp_path / "out" / "m.json"
    code, out, _ = run(
        capsys, "fit", "ur5e", files / "train.parquet", "--holdout", files / "test.parquet",
        "--cutoff-hz", "8", "-o", model, "--json",
    )  # fmt: skip
    assert code == 0
    data = json.loads(out)
    assert data.keys() >= KEYS
    assert data["holdout"][0].keys() >= HOLDOUT
    assert len(data["rmse"]) == len(data["nrmse"]) == 6
    assert data["mean_nrmse"] == pytest.approx(np.mean(data["nrmse"]))
    assert data["consistent"] is True
    assert data["holdout"][0]["file"] == str(files / "test.parquet")
    assert data["holdout"][0]["mean_nrmse"] < 0.02
    assert data["cutoff_hz"] == 8.0
    assert data["verdict"] == "PASS"
    saved = read_model(model)
    assert len(saved.training.base.names) == data["base_parameters"]
    provenance = saved.training.provenance
    assert len(provenance.sources["recordings"][0]["sha256"]) == 64


def test_people_see_the_verdict_first_and_the_next_step_last(files, tmp_path, capsys):
    code, out, _ = run(
        capsys, "fit", "ur5e", files / "train.parquet", "--friction", "linear",
        "--estimator", "wls", "-o", tmp_path / "m.json",
    )  # fmt: skip
    assert code == 0
    assert out.startswith(("PASS", "FAIL"))
    end = " ".join(out.split())[-400:]
    assert "Next: `taufit export" in end and "; taufit check" in end
    assert "only base parameters are measured" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ur5e", "{}/short.parquet"], "too short"),
        (["panda", "{}/train.parquet"], "expected 7 joints (panda), found 6 in train"),
        (["ur5e", "{}/none.parquet"], "there is no file"),
        (["nonsense", "{}/train.parquet"], "nonsense"),
        (["ur5e", "{}/train.parquet", "--mounting", "ceiling"], "gravity"),
        (["ur5e", "{}/train.parquet", "--max-mean-nrmse", "1e-5"], "does not reach the limits"),
        (["ur5e", "{}/train.parquet", "--holdout", "{}/none.parquet"], "there is no file"),
        (["ur5e", "{}/train.parquet", "--cutoff-hz", "500"], "cut-off"),
    ],
)
def test_refusals_leave_the_previous_model_alone(files, tmp_path, capsys, arguments, words):
    model = tmp_path / "model.json"
    model.write_text("precious")
    arguments = [a.format(files) for a in arguments]

    code, _, err = run(capsys, "fit", *arguments, "-o", model, "--json")

    assert code in (1, 3)
    assert words in err
    assert "Traceback" not in err
    assert model.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [model]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--friction", "magic"],
        ["--estimator", "magic"],
        ["--cutoff-hz", "fast"],
        ["--cutoff-hz", "-1"],
        ["--torque-signs", "maybe"],
        ["--max-rmse", "a,b"],
    ],
)
def test_wrong_usage_exits_with_2(files, tmp_path, capsys, arguments):
    code, _, err = run(
        capsys, "fit", "ur5e", files / "train.parquet", "-o", tmp_path / "m.json", *arguments
    )
    assert code == 2
    assert arguments[0] in err


def test_help_ends_with_the_next_step(capsys):
    code, out, _ = run(capsys, "fit", "--help")
    assert code == 0
    assert "Next: `taufit check" in " ".join(out.split())


def test_check_repeats_the_holdout_score(files, fitted, capsys):
    code, out, _ = run(capsys, "check", fitted, files / "test.parquet", "--json")
    assert code == 0
    data = json.loads(out)
    assert data["verdict"] == "PASS"
    assert data["files"][0].keys() >= HOLDOUT
    assert data["files"][0]["mean_nrmse"] < 0.02
    assert data["files"][0]["cutoff_hz"] == 10.0

    code, out, _ = run(
        capsys, "check", fitted, files / "test.parquet", "--cutoff-hz", "5", "--json"
    )
    assert json.loads(out)["files"][0]["cutoff_hz"] == 5.0


def test_check_for_people(files, fitted, capsys):
    code, out, _ = run(capsys, "check", fitted, files / "test.parquet")
    assert code == 0
    assert out.startswith("PASS")
    assert "e_N" in out and "N = " in out
    assert "taufit export" in out


def test_check_fails_on_limits_and_strangers(files, fitted, tmp_path, capsys):
    code, out, err = run(
        capsys, "check", fitted, files / "test.parquet", "--max-mean-nrmse", "1e-5", "--json"
    )
    assert code == 1
    assert json.loads(out)["verdict"] == "FAIL"
    assert "breaks the limits" in err

    code, _, err = run(capsys, "check", tmp_path / "none.json", files / "test.parquet")
    assert code == 3 and "there is no file" in err
    panda = simulated_arm.true_model(read_robot("panda"))
    write_recording(
        simulated_arm.recording(panda, 5.0, 0, name="panda"), tmp_path / "panda.parquet"
    )
    code, _, err = run(capsys, "check", fitted, tmp_path / "panda.parquet")
    assert code == 3 and "expected" in err and "joints" in err
