"""`taufit health`: from a model and recordings to a verdict, a page and a history on disk."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))

import worn_arm
from tests.output_json import parse_output

from taufit.cli.app import main
from taufit.estimators.wls import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model import Conditioning, TorqueModel, write_model
from taufit.recording import write_recording
from taufit.signals import Samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, ten healthy recordings and four worn ones."""
    top = tmp_path_factory.mktemp("health")
    truth = worn_arm.truth()
    runs = [worn_arm.samples(t, 70 + k, path=k) for k, t in enumerate((20.0, 30.0, 40.0))]
    model = TorqueModel(truth.robot, truth.friction_model)
    joined = Samples.concatenate(runs)
    fitted = fitted_model(model, fit_samples(model, joined, Wls()), joined)
    conditioning = Conditioning(cutoff_hz=10.0, rate_hz=50.0)
    fitted = fitted.with_training(replace(fitted.training, conditioning=conditioning))
    write_model(fitted, top / "model.json")
    for k in range(10):
        write_recording(worn_arm.run(22.0 + 2 * k, k), top / f"h{k}.parquet")
    for k in range(8):
        write_recording(worn_arm.run(30.0, 90 + k, wear=(0, 0, 0.3)), top / f"w{k}.parquet")
    return top


def _run(capsys, *arguments):
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def history(folder):
    with pytest.raises(SystemExit) as stop:
        main(
            ["health", "baseline", str(folder / "model.json"), "-o", str(folder / "h.json")]
            + [str(folder / f"h{k}.parquet") for k in range(10)]
        )
    assert stop.value.code == 0
    return folder / "h.json"


def test_healthy_then_worn(folder, history, capsys):
    code, out, _ = _run(capsys, "health", "check", history, "--json")
    before = parse_output("health", out)
    assert code == 0 and before["healthy"] and before["runs"] == 10 and before["added"] == 0
    worn = [folder / f"w{k}.parquet" for k in range(8)]
    page = folder / "health.html"
    code, out, _ = _run(capsys, "health", "check", history, *worn, "--report", page, "--json")
    after = parse_output("health", out)
    assert code == 0 and after["runs"] == 18 and after["added"] == 8
    assert [one["alarm"] for one in after["joints"]] == [False, False, True]
    assert after["joints"][2]["change_percent"] == pytest.approx(30.0, abs=2.0)
    text = page.read_text()
    assert "Friction has risen: joint 3" in text and "http:" not in text and "https:" not in text
    code, out, _ = _run(capsys, "health", "check", history)
    assert code == 0 and "WORN" in out and "joint 3" in out and "Next:" in out
    code, _, err = _run(capsys, "health", "check", history, "--fail-on-alarm")
    assert code == 1 and "joint 3" in err
    code, _, err = _run(capsys, "health", "check", history, worn[0])
    assert code == 3 and "already" in err


def test_dry_run_leaves_the_file_alone(folder, history, capsys):
    before = history.read_bytes()
    extra = folder / "extra.parquet"
    write_recording(worn_arm.run(31.0, 333), extra)
    code, _, _ = _run(capsys, "health", "check", history, extra, "--dry-run", "--json")
    assert code == 0 and history.read_bytes() == before


def test_wrong_input_is_told(folder, capsys):
    code, _, err = _run(capsys, "health", "check", folder / "nothing.json")
    assert code == 3 and "there is no history" in err
    code, _, err = _run(capsys, "health", "check", folder / "model.json")
    assert code == 3 and "is not a health history" in err
    few = [folder / f"h{k}.parquet" for k in range(3)]
    target = folder / "few.json"
    code, _, err = _run(capsys, "health", "baseline", folder / "model.json", *few, "-o", target)
    assert code == 3 and "too few" in err and not target.exists()
    code, _, _ = _run(capsys, "health", "baseline", folder / "model.json", few[0], "--rate", "7")
    assert code == 2
