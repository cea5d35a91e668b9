"""A joint that turns one way only cannot tell its friction from its offset, and says so."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording
from taufit.robot import read_robot
from taufit.workflow import identify

COULOMB = 3.0


@pytest.fixture(scope="module")
def one_way():
    """A UR10e whose joint 6 turns one way, fitted."""
    robot = read_robot("ur10e")
    rng = np.random.default_rng(4)
    time = np.arange(0.0, 16.0, 0.01)
    w = 2 * np.pi * np.array([0.13, 0.22, 0.35])
    amplitude, phase = rng.uniform(0.15, 0.5, (3, 6)), rng.uniform(0, 6.28, (3, 6))
    angle = w[:, None, None] * time[None, :, None] + phase[:, None]
    q = np.sum(amplitude[:, None] * np.sin(angle), axis=0) + [0, -1.2, 1.0, -0.5, 1.2, 0]
    q[:, 5] = 0.25 * time + 0.1 * np.sin(1.3 * time)
    v = np.gradient(q, time, axis=0)
    a = np.gradient(v, time, axis=0)
    torque = inverse_dynamics(robot, q, v, a) + COULOMB * np.tanh(v / 0.01) + 2.0 * v
    torque += 0.4 + rng.normal(0.0, 0.1, torque.shape)
    recording = Recording(
        time=time, position=q, velocity=v, signal=torque, gain=np.ones(6),
        signed=np.ones(6, bool), meta={"file": "run.csv"},
    )  # fmt: skip
    return identify(robot, [recording])


def test_it_is_named(one_way):
    named = [f for f in one_way.findings if f.kind == "one_way_joint"]
    assert [f.joint for f in named] == [6]
    assert any("joint 6 turns one way" in text for text in one_way.warnings)


def test_its_friction_holds_the_truth_or_is_unknown(one_way):
    model = one_way.model
    at = model.layout.index("joint_6.coulomb")
    value, std = model.values[at], model.training.std[at]
    assert np.isinf(std) or abs(value - COULOMB) < 1.96 * std
    other = model.layout.index("joint_5.coulomb")
    assert np.isfinite(model.training.std[other])


def test_no_coefficient_is_beyond_what_the_joint_bears(one_way):
    friction = one_way.model.layout.split(one_way.model.values).drive
    assert np.abs(friction[:, 0]).max() < 10 * np.abs(one_way.samples.torque).max()


def test_its_constant_torque_counts_as_friction_first(one_way):
    model = one_way.model
    coulomb, offset = (
        model.values[model.layout.index(f"joint_6.{n}")] for n in ("coulomb", "offset")
    )
    assert abs(offset) < 0.2 * coulomb
    assert coulomb + offset == pytest.approx(COULOMB + 0.4, rel=0.15)
