"""Temperature nobody measured: heat in, heat out, friction as the thermometer."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))

import worn_arm

from taufit.core.errors import PoorExcitationError
from taufit.estimators.wls import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model import predicted_torque
from taufit.model.model_file import read_model, write_model
from taufit.model.torque_model import TorqueModel
from taufit.signals import Samples
from taufit.temperature.apply import with_temperature
from taufit.temperature.heat_model import (
    session_clock,
    thermal_temperature,
    with_thermal_model,
)
from taufit.terms.friction import Linear

RUNS = 12


def _warming(minutes_cold: float = 0.0) -> list[Samples]:
    """Runs back to back of an arm that warms from 22 to about 40 degC within two minutes."""
    out = []
    for k in range(RUNS):
        at = 11.0 * k + minutes_cold
        rise = np.array([16.0, 18.0, 14.0]) * (1.0 - np.exp(-at / np.array([50.0, 40.0, 60.0])))
        out.append(worn_arm.samples(22.0 + rise, 10 + k, path=k % 4, name=f"run{k}"))
    return out


@pytest.fixture(scope="module")
def session():
    return Samples.concatenate(_warming())


@pytest.fixture(scope="module")
def heated(session):
    """A model from all runs but every fourth, without temperatures."""
    held = np.isin(session.run, [2, 6, 10])
    train = replace(session.with_channels(temperature=None), keep=session.keep & ~held[:, None])
    plain = TorqueModel(worn_arm.three_joints(), Linear(0.02))
    choice = with_thermal_model(plain, train)
    estimate = fit_samples(choice.model, choice.samples, Wls(), dropped=choice.dropped)
    blind = fitted_model(plain, fit_samples(plain, train, Wls()), train)
    model = fitted_model(choice.model, estimate, choice.samples, thermal=choice.thermal)
    return held, choice, model, blind


def _without_noise(session, model, predicted):
    truth = worn_arm.truth().torque(
        session.position, session.velocity, session.acceleration, temperature=session.temperature
    )
    return truth - predicted


def test_heat_halves_the_error_of_a_blind_fit(session, heated):
    held, choice, model, blind = heated
    state = model.training.thermal
    warm = thermal_temperature(model, session, state, start=state.start)
    ours = predicted_torque(model, session.with_channels(temperature=warm))
    rows = held & session.in_motion
    left = _without_noise(session, model, ours)[rows]
    other = _without_noise(session, blind, predicted_torque(blind, session))[rows]
    assert np.sqrt(np.mean(left**2)) < 0.5 * np.sqrt(np.mean(other**2))
    assert "estimated" in choice.findings[0] and "1.5 %" in choice.findings[0]


def test_the_estimate_rises_as_the_joints_do(session, heated):
    _, choice, _, _ = heated
    for j in range(3):
        together = np.corrcoef(choice.samples.temperature[:, j], session.temperature[:, j])[0, 1]
        assert together > 0.95


def test_a_new_recording_finds_its_own_start(heated, tmp_path):
    _, _, model, blind = heated
    write_model(model, tmp_path / "m.json")
    model = read_model(tmp_path / "m.json")
    warm = worn_arm.samples((37.0, 39.0, 35.0), 77, path=2)
    filled = with_temperature(model, warm.with_channels(temperature=None))
    ours = _without_noise(warm, model, predicted_torque(model, filled))[warm.in_motion]
    other = _without_noise(warm, blind, predicted_torque(blind, warm))[warm.in_motion]
    assert np.sqrt(np.mean(ours**2)) < 0.5 * np.sqrt(np.mean(other**2))


def test_friction_that_stays_is_refused():
    runs = [worn_arm.samples(30.0, k, path=k % 4) for k in range(6)]
    still = Samples.concatenate(
        [
            replace(run.with_channels(temperature=None), names=(f"r{k}",))
            for k, run in enumerate(runs)
        ]
    )
    plain = TorqueModel(worn_arm.three_joints(), Linear(0.02))
    with pytest.raises(PoorExcitationError, match="no temperature to estimate"):
        with_thermal_model(plain, still)


def test_clock_goes_on_from_run_to_run(session):
    clock = session_clock(session)
    assert np.all(np.diff(clock) >= 0.0)
    assert clock[-1] == pytest.approx(RUNS * 11.0, abs=0.5)
    # Stamps that go on keep their pauses.
    later = session.time + 100.0 * session.run
    paused = session_clock(replace(session, time=later))
    assert paused[-1] == pytest.approx(100.0 * (RUNS - 1) + 11.0, abs=0.1)


def test_recordings_without_a_sensor_get_the_middle_of_training():
    runs = [worn_arm.samples(t, k, path=k) for k, t in enumerate((20.0, 30.0, 40.0))]
    joined = Samples.concatenate(runs)
    truth = worn_arm.truth()
    model = TorqueModel(truth.robot, truth.friction_model)
    model = fitted_model(model, fit_samples(model, joined, Wls()), joined)
    filled = with_temperature(model, runs[0].with_channels(temperature=None))
    np.testing.assert_allclose(filled.temperature, 30.25, atol=0.3)
    (told,) = filled.findings
    assert told.kind == "temperature" and "middle of training" in str(told)
    assert with_temperature(model, runs[0]) is runs[0]
