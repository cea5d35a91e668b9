"""Friction sample by sample is what the model's own `advance` says, for every friction model."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.model import TorqueModel, friction_tape as module
from taufit.model.friction_tape import FrictionTape
from taufit.robot import read_robot
from taufit.terms import TermInput
from taufit.terms.friction import FRICTION_MODELS, NoFriction


@pytest.mark.parametrize("name", sorted(FRICTION_MODELS))
@pytest.mark.parametrize("compiled", [True, False])
def test_one_sample_at_a_time_is_the_whole_run(name, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(module, "_kernel", None)
    robot = read_robot("ur5e")
    structure = TorqueModel(robot, friction=FRICTION_MODELS[name]())
    rng = np.random.default_rng(5)
    model = structure.with_values(np.abs(rng.normal(size=structure.layout.size)))
    velocity, position, load = rng.normal(size=(3, 60, 6))
    velocity *= np.repeat(rng.choice([0.0, 1e-4, 1e-2, 1.0], (12, 6)), 5, 0)
    warm = 30.0 + rng.normal(size=(60, 6))
    inputs = TermInput(velocity, position, load, warm, step=0.01)
    columns = model.columns
    own = model.layout.split(model.values).drive
    known = np.einsum("njk,jk->nj", columns.drive_columns(inputs), own)
    tape = FrictionTape(model, 0.01)
    for _ in range(2):
        tape.clear()
        found = [tape(*row) for row in zip(velocity, position, load, warm, strict=True)]
        np.testing.assert_allclose(found, known, atol=1e-10)


def test_the_default_friction_is_compiled():
    if module._kernel is None:
        pytest.skip("there is no compiled kernel")
    structure = TorqueModel(read_robot("ur5e"), friction=FRICTION_MODELS["presliding"]())
    assert FrictionTape(structure.with_values(np.ones(structure.layout.size)), 0.01).compiled
    assert NoFriction().parameters == ()
