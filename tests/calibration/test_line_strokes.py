"""Friction tests of all joints at once: the links' torque cancels along a line there and back."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.calibration.friction_pairs import pairs_in
from taufit.clearance.curve import exact_curve
from taufit.core.errors import PoorExcitationError
from taufit.dynamics import inverse_dynamics
from taufit.excitation import LineStrokes, design, plan
from taufit.excitation.motion_file import motion_from_dict, motion_to_dict
from taufit.robot import read_robot
from taufit.signals import Samples

ROBOT = read_robot("ur3e")
RATE_HZ = 200.0
COULOMB, VISCOUS = np.array([4.0, 5, 3, 2, 1, 0.8]), np.array([6.0, 7, 5, 3, 2, 1])


@pytest.fixture(scope="module")
def test_plan():
    return plan("friction-test", ROBOT, minutes=1.0, speeds=np.array([0.1, 0.3, 0.8])).friction_test


def _samples(motion, change=None):
    time = np.arange(0.0, motion.duration, 1.0 / RATE_HZ)
    q, v, a = motion.at(time)
    if change is not None:
        q, v, a = change(q, v, a)
    friction = COULOMB * np.tanh(v / 1e-4) + VISCOUS * v
    torque = inverse_dynamics(ROBOT, q, v, a) + friction
    return Samples.from_arrays(q, v, a, torque, rate_hz=RATE_HZ)


def test_friction_of_every_joint_is_half_the_difference(test_plan):
    samples = _samples(test_plan.motion)
    for i in range(ROBOT.joints):
        pairs = pairs_in(samples, i + 1, points=4)
        truth = COULOMB[i] + VISCOUS[i] * pairs.velocity
        # Samples of both directions are up to half a period apart: 1 % of the friction.
        np.testing.assert_allclose(pairs.torque, truth, rtol=0.03)
        assert len(pairs.tested_speeds) == 3


def test_strokes_whose_other_joints_do_not_return_are_no_pairs(test_plan):
    def always_forwards(q, v, a):
        """Joint 2 turns on and on while the others go there and back."""
        drift = np.cumsum(np.abs(v[:, 1])) / RATE_HZ
        q, v, a = q.copy(), v.copy(), a.copy()
        q[:, 1], v[:, 1], a[:, 1] = q[0, 1] + drift, np.abs(v[:, 1]), np.abs(a[:, 1])
        return q, v, a

    with pytest.raises(PoorExcitationError):
        pairs_in(_samples(test_plan.motion, always_forwards), 3, points=4)


def test_the_plan_keeps_its_budget_and_says_what_it_cannot_show(test_plan):
    motion = test_plan.motion
    assert isinstance(motion, LineStrokes) and 45.0 < motion.duration < 90.0
    short = plan("friction-test", ROBOT, minutes=1.0).friction_test
    assert all(p.missing for p in short.plans) and all(len(p.speeds) == 5 for p in short.plans)
    q = motion.at(np.linspace(0.0, motion.duration, 4000))[0]
    assert np.all(q > ROBOT.limits.lower) and np.all(q < ROBOT.limits.upper)


def test_a_line_is_written_read_and_proved_as_it_is_played(test_plan):
    motion = test_plan.motion
    again = motion_from_dict(motion_to_dict(motion))
    time = np.linspace(0.0, motion.duration, 500)
    for x, y in zip(motion.at(time), again.at(time), strict=True):
        np.testing.assert_array_equal(x, y)
    curve = exact_curve(motion)
    piece = np.searchsorted(curve.begin, time, side="right") - 1
    for order, values in enumerate(motion.at(time)):
        here = curve.value(order, piece, time - curve.begin[piece])
        np.testing.assert_allclose(here, values, atol=1e-9)
        assert np.all(np.abs(values) <= curve.bound(order, piece) + 1e-9)


def test_three_stages_say_whether_their_limits_were_reached():
    settings = {"criterion": "three_stage", "iterations": 30, "condition_limit": 1e6}
    missed = design(ROBOT, delta1=2.0, **settings)
    assert missed.reached is False and any("did not reach" in text for text in missed.warnings)
    assert design(ROBOT, delta1=1e6, **settings).reached is True
    assert design(ROBOT, **{**settings, "criterion": "d"}).reached is None
