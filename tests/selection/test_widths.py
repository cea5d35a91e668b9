"""One pre-sliding width where the data show one, the ladder where they show more."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "validation"))
import simulated_arm

from taufit.fitting import automatic_model
from taufit.fitting.selection.presliding_width import with_fitted_width
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.signals import Samples
from taufit.terms.friction import Linear, Presliding, TemperatureDependent


def samples(widths, shares) -> tuple[TorqueModel, Samples]:
    """An arm whose friction builds up over these displacements, each with its share of it."""
    arm = read_robot("ur5e")
    _, q, v, a = simulated_arm.motion(6, 30.0, 0)
    level = np.linspace(5.0, 1.0, 6)
    structure = TorqueModel(arm, Presliding(widths, load=False, quadratic=False))
    terms = [[f, *(f * np.array(shares)), f] for f in level]
    values = np.concatenate([arm.parameters, np.full(6, 0.5), np.ravel(terms), np.zeros(6)])
    torque = structure.with_values(values).torque(q, v, a, step=1.0 / simulated_arm.RATE)
    torque += 0.1 * level * np.random.default_rng(1).normal(size=torque.shape)
    return structure, Samples.from_arrays(q, v, a, torque, rate_hz=simulated_arm.RATE)


@pytest.mark.parametrize("width", [8e-4, 1e-2])
def test_one_width_is_found(width):
    structure, data = samples((width,), ())
    model = automatic_model(structure.robot)
    found = with_fitted_width(model, data).friction
    assert len(found.widths) == 1
    assert found.widths[0] == pytest.approx(width, rel=0.1)


def test_the_ladder_stays_where_one_width_does_not_do():
    structure, data = samples((1e-3, 0.1), (0.5,))
    model = automatic_model(structure.robot)
    assert with_fitted_width(model, data) is model


def test_widths_inside_a_law_of_temperature_are_found_and_others_left_alone():
    structure, data = samples((1e-2,), ())
    warm = data.with_channels(temperature=np.full(data.torque.shape, 30.0))
    law = TemperatureDependent(Presliding(), "linear", 30.0, ("viscous",))
    found = with_fitted_width(replace(structure, friction=law), warm)
    assert len(found.friction.model.widths) == 1
    plain = replace(structure, friction=Linear())
    assert with_fitted_width(plain, data) is plain
