"""Temperature all the way: recordings in, a model file out, and back to a prediction."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))

import worn_arm

from taufit.cli.app import main
from taufit.core.errors import PoorExcitationError
from taufit.model.model_file import read_model, write_model
from taufit.recording import write_recording
from taufit.report import fit_page
from taufit.terms.friction import Linear, TemperatureDependent
from taufit.validation import score
from taufit.workflow import condition_for_model, identify

STATES = (20.0, 26.0, 32.0, 38.0)


@pytest.fixture(scope="module")
def recordings():
    return [worn_arm.run(t, 20 + k, path=k, name=f"r{k}") for k, t in enumerate(STATES)]


@pytest.fixture(scope="module")
def warm_fit(recordings):
    return identify(worn_arm.three_joints(), recordings, friction=Linear(0.02), cutoff_hz=10.0)


def test_auto_follows_temperature_and_says_so(warm_fit):
    told = warm_fit.to_dict()["temperature"]
    assert told["law"] == "linear" and not told["estimated"]
    slopes = {entry["name"]: entry for entry in told["slopes"]}
    for j, slope in enumerate((-0.09, -0.25, -0.15), start=1):
        found = slopes[f"joint_{j}.viscous_per_degree"]
        assert found["value"] == pytest.approx(slope, abs=0.01 + 4 * found["std"])
    cold = np.array([10.9, 16.5, 10.5])
    change = 100 * (-18.5 * np.array([0.09, 0.25, 0.15]) / cold)
    np.testing.assert_allclose(told["change_percent"], change, atol=2.0)
    assert warm_fit.model.training.provenance.settings.temperature == "linear"


def test_a_file_predicts_with_temperature(warm_fit, tmp_path):
    write_model(warm_fit.model, tmp_path / "m.json")
    model = read_model(tmp_path / "m.json")
    assert isinstance(model.friction_model, TemperatureDependent)
    one = worn_arm.run(23.0, 99, path=5)
    aware = score(model, condition_for_model(model, [one]))
    guessed = condition_for_model(model, [replace(one, temperature=None)])
    assert any("middle of training" in str(f) for f in guessed.findings)
    assert np.all(aware.rmse < score(model, guessed).rmse)


def test_without_temperature_the_error_is_larger(recordings, warm_fit):
    blind = identify(
        worn_arm.three_joints(),
        recordings,
        friction=Linear(0.02),
        cutoff_hz=10.0,
        temperature="none",
    )
    assert blind.to_dict()["temperature"] is None
    assert np.all(warm_fit.training_score.rmse < 0.75 * blind.training_score.rmse)


def test_the_report_shows_single_runs_and_maps(warm_fit):
    text = fit_page(warm_fit)
    assert "Run by run against temperature" in text and "line through the runs" in text
    assert "Friction and temperature" in text and text.count('class="map"') == 3


def test_a_law_without_spread_is_refused(recordings):
    with pytest.raises(PoorExcitationError, match="3 K are needed"):
        identify(
            worn_arm.three_joints(),
            recordings[:1],
            friction=Linear(0.02),
            cutoff_hz=10.0,
            temperature="exponential",
        )


def test_check_tells_the_mounting(warm_fit, tmp_path, capsys):
    write_model(warm_fit.model, tmp_path / "m.json")
    truth = worn_arm.truth()
    turned = truth.with_robot(truth.robot.with_mounting("ceiling"))
    write_recording(worn_arm.run(30.0, 5), tmp_path / "right.parquet")
    write_recording(worn_arm.run(30.0, 5, model=turned), tmp_path / "turned.parquet")
    files = [str(tmp_path / name) for name in ("right.parquet", "turned.parquet")]
    with pytest.raises(SystemExit) as stop:
        main(["check", str(tmp_path / "m.json"), *files, "--json"])
    assert stop.value.code == 1  # one of the two fails
    right, other = json.loads(capsys.readouterr().out)["files"]
    assert not right["mounting"]["wrong"] and right["mounting"]["angle_deg"] < 5.0
    assert other["mounting"]["wrong"] and other["mounting"]["fits"] == "ceiling"
    assert any("gravity fits ceiling, you said ground" in text for text in other["warnings"])
