"""Sensors are told apart by the heat of their joints, even where all joints warm alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.model.torque_model import TorqueModel
from taufit.signals import condition
from taufit.temperature.sensors import (
    fit_without_temperature,
    heat_fraction,
    heat_power,
    swapped_sensor_findings,
)
from taufit.terms.friction import Linear


@pytest.fixture(scope="module")
def session():
    """Five runs of the simulated UR5 while it warms up."""
    from taufit.sim import read_preset

    preset = read_preset("ur5-warmup")
    effects = preset.twin.effects
    warm = housing = np.array(effects.thermal.initial)
    recordings = []
    for k in range(5):
        thermal = replace(effects.thermal, initial=warm, initial_housing=housing, speed_up=20.0)
        twin = replace(preset.twin, effects=replace(effects, thermal=thermal))
        run = twin.run(preset.motion(k, periods=1), seed=k)
        warm, housing = run.trace.temperature[-1], np.array(run.truth["housing_end"])
        recordings.append(run.recording)
    model = TorqueModel(preset.twin.robot, Linear(0.01))
    return model, condition(recordings, cutoff_hz=10.0)


def test_each_sensor_shows_the_heat_of_its_joint(session):
    model, samples = session
    _, coulomb, viscous, _ = fit_without_temperature(model, samples)
    share = heat_fraction(samples, heat_power(samples, coulomb, viscous))
    np.testing.assert_array_equal(np.argmax(share, axis=0), np.arange(6))
    assert np.diag(share).min() > 0.8
    assert swapped_sensor_findings(model, samples) == []


@pytest.mark.parametrize("pair", [(0, 1), (1, 4), (2, 5)])
def test_swapped_sensors_are_named(session, pair):
    model, samples = session
    order = np.arange(6)
    order[list(pair)] = order[list(pair)[::-1]]
    told = swapped_sensor_findings(
        model, samples.with_channels(temperature=samples.temperature[:, order])
    )
    assert len(told) == 2
    for text, own, other in zip(told, sorted(pair), sorted(pair)[::-1], strict=True):
        assert text.startswith(f"joint {own + 1}:") and f"for joint {other + 1} " in text
