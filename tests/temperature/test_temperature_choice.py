"""Friction follows temperature where the data say so, and faulty sensors are named."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))

import worn_arm

from taufit.core.errors import PoorExcitationError, RecordingError, TaufitError
from taufit.estimators.wls import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.signals import Samples
from taufit.temperature.runwise_fits import repeat_identification
from taufit.temperature.temperature_slopes import (
    friction_at,
    repair_temperature,
    select_temperature_law,
    stuck_sensors,
    temperature_spread,
)
from taufit.terms.friction import FRICTION_MODELS, Linear, TemperatureDependent

# Joints of one arm warm at their own pace: the second early, the third late.
STATES = [(20, 20, 20), (23, 30, 21), (27, 35, 24), (31, 37, 30), (35, 38, 38), (39, 39, 42)]


def _session(**settings) -> Samples:
    return Samples.concatenate(
        [
            worn_arm.samples(state, 40 + k, path=k, name=f"run{k}", **settings)
            for k, state in enumerate(STATES)
        ]
    )


@pytest.fixture(scope="module")
def warm():
    return _session()


@pytest.fixture(scope="module")
def plain():
    return TorqueModel(worn_arm.three_joints(), Linear(0.02))


def _fitted(choice):
    estimate = fit_samples(choice.model, choice.samples, Wls(), dropped=choice.dropped)
    return estimate, fitted_model(choice.model, estimate, choice.samples)


def test_viscous_slopes_are_kept_and_coulomb_ones_dropped(plain, warm):
    choice = select_temperature_law(plain, warm)
    assert choice.law == "linear" and choice.model.friction.affected == ("viscous",)
    assert choice.dropped == () and choice.findings == ()
    estimate, model = _fitted(choice)
    slopes = [estimate.names.index(f"joint_{j}.viscous_per_degree") for j in (1, 2, 3)]
    found, std = estimate.values[slopes], estimate.std[slopes]
    # Each run's friction scatters by 0.3 %, which the standard deviation does not know.
    np.testing.assert_allclose(found, [-0.09, -0.25, -0.15], atol=0.006 + 4 * std.max())
    assert np.all(std > 0.0) and np.all(std < 0.2 * np.abs(found))
    cold, cold_std = friction_at(model, 20.0)
    truth = np.array([10.0, 14.0, 9.0]) + 10.0 * np.array([0.09, 0.25, 0.15])
    np.testing.assert_allclose(cold, truth, rtol=0.02)
    assert np.all(cold_std < 0.02 * truth)


@pytest.mark.parametrize("name", ["linear", "power_law", "polynomial", "stribeck", "presliding"])
def test_every_friction_model_can_follow_temperature(name, warm, plain):
    kind = FRICTION_MODELS[name]
    friction = kind() if name in ("presliding", "power_law", "stribeck") else kind(width=0.02)
    choice = select_temperature_law(replace(plain, friction=friction), warm, "linear")
    assert choice.law == "linear" and "viscous" in choice.model.friction.affected
    assert choice.model.friction.model == friction


@pytest.mark.parametrize("law", ["exponential", "arrhenius"])
def test_exponential_laws_predict_like_the_truth(law, plain, warm):
    choice = select_temperature_law(plain, warm, law)
    assert choice.law == law
    estimate, model = _fitted(choice)
    assert estimate.shape is not None and np.all(estimate.shape > 0.0)
    left = (warm.torque - predicted_torque(model, choice.samples))[warm.in_motion]
    # Noise of 0.3 N m; a fit without temperature leaves 0.9.
    assert np.sqrt(np.mean(left**2)) < 0.36
    value, _ = friction_at(model, np.array([30.0, 30.0, 30.0]))
    np.testing.assert_allclose(value, [10.0, 14.0, 9.0], rtol=0.03)


def test_friction_that_does_not_follow_is_left_alone(plain):
    still = worn_arm.truth()
    values = np.array(still.values)
    values[35:42:3] = 0.0
    session = _session(model=still.with_values(values))
    choice = select_temperature_law(plain, session)
    assert choice.law == "none" and choice.model is plain
    assert "does not follow temperature" in choice.findings[0]


def test_one_temperature_is_not_enough(plain):
    session = Samples.concatenate([worn_arm.samples(30.0, k, path=k) for k in range(3)])
    with pytest.raises(PoorExcitationError, match="3 K are needed") as told:
        select_temperature_law(plain, session, "linear")
    assert "Record the same motion with the robot cold" in str(told.value)
    choice = select_temperature_law(plain, session)
    assert choice.law == "none" and "friction is fitted as it is" in choice.findings[0]


def test_no_temperatures_are_told(plain, warm):
    blind = warm.with_channels(temperature=None)
    assert select_temperature_law(plain, blind).law == "none"
    with pytest.raises(RecordingError, match="thermal-model"):
        select_temperature_law(plain, blind, "linear")
    with pytest.raises(TaufitError, match="is not known"):
        select_temperature_law(plain, warm, "cubic")


def test_a_joint_that_stayed_cold_is_named(plain):
    session = _session()
    cold = session.temperature.copy()
    # Joint 1 warms by two kelvins only.
    cold[:, 0] = 25.0 + 0.1 * (cold[:, 0] - 20.0)
    choice = select_temperature_law(plain, session.with_channels(temperature=cold), "linear")
    assert any("joint 1 stayed within 3 K" in text for text in choice.findings)
    assert "joint_1.viscous_per_degree" in choice.dropped
    assert "joint_2.viscous_per_degree" not in choice.dropped


def test_a_stuck_sensor_is_named_and_not_used(plain, warm):
    stuck = warm.temperature.copy()
    stuck[:, 2] = 31.4
    session = warm.with_channels(temperature=stuck)
    assert stuck_sensors(session) == {2: 31.4} and stuck_sensors(warm) == {}
    choice = select_temperature_law(plain, session)
    assert any("joint 3: the temperature sensor stands still" in t for t in choice.findings)
    assert "joint_3.viscous_per_degree" in choice.dropped


def test_a_sensor_that_stops_half_way_is_named(warm):
    half = warm.temperature.copy()
    later = warm.run >= 2
    half[later, 1] = half[np.flatnonzero(later)[0], 1]
    assert list(stuck_sensors(warm.with_channels(temperature=half))) == [1]


def test_a_jump_in_one_sample_is_mended_and_named(plain, warm):
    broken = warm.temperature.copy()
    at = int(np.flatnonzero(warm.run == 3)[200])
    broken[at, 1] += 40.0
    session = warm.with_channels(temperature=broken)
    mended, told = repair_temperature(session)
    assert len(told) == 1 and "run3" in told[0] and "joint 2 jumps to" in told[0]
    np.testing.assert_allclose(mended, warm.temperature, atol=0.11)
    choice = select_temperature_law(plain, session)
    assert choice.law == "linear" and any("joint 2 jumps" in t for t in choice.findings)


def test_a_step_of_forty_kelvins_is_refused(plain, warm):
    broken = warm.temperature.copy()
    rows = np.flatnonzero(warm.run == 3)[200:]
    broken[rows, 0] += 40.0
    session = warm.with_channels(temperature=broken)
    with pytest.raises(RecordingError, match="run3: the temperature of joint 1 steps"):
        select_temperature_law(plain, session, "linear")
    choice = select_temperature_law(plain, session)
    assert choice.law == "none" and "joint 1 steps" in choice.findings[0]


def test_impossible_temperatures_are_refused(plain, warm):
    kelvins = warm.with_channels(temperature=warm.temperature + 273.15)
    with pytest.raises(RecordingError, match=r"joint 1 goes 29.* degC, which no gear survives"):
        select_temperature_law(plain, kelvins, "linear")


def test_swapped_sensors_are_named(plain, warm):
    swapped = warm.with_channels(temperature=warm.temperature[:, [0, 2, 1]])
    told = select_temperature_law(plain, swapped).findings
    assert any(
        t.startswith("joint 2: friction follows the temperature given for joint 3") for t in told
    )
    assert any(
        t.startswith("joint 3: friction follows the temperature given for joint 2") for t in told
    )
    assert not any(t.startswith("joint 1") for t in told)


def test_repeated_identification_finds_the_slopes_too(plain, warm):
    runs = []
    for k, state in enumerate(STATES):
        runs.append(worn_arm.samples(state, 40 + k, path=k, name=f"run{k}"))
    found = repeat_identification(plain, runs)
    assert len(found.models) == len(STATES)
    np.testing.assert_allclose(found.slope, [-0.09, -0.25, -0.15], atol=4 * found.slope_std.max())
    assert found.nearest(np.array([39.0, 39.0, 42.0])) is found.models[-1]
    with pytest.raises(RecordingError, match="three or more"):
        repeat_identification(plain, runs[:2])


def test_spread_is_that_of_the_motion(warm):
    assert temperature_spread(warm) == pytest.approx([19.5, 19.5, 22.5], abs=0.6)
    assert isinstance(worn_arm.truth().friction_model, TemperatureDependent)
