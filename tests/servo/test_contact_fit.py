"""Gains from contact with the floor, and runs that leave them unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.simulated_servos import simulated_arm

from taufit.servo.contact_fit import with_contact_gains
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import commanded_motions
from taufit.servo.replay_rows import ReplayRows
from taufit.servo.rollout_fit import RolloutFit
from taufit.servo.score import contact_rows
from taufit.servo.unknowns import pack


@pytest.fixture(scope="module")
def case():
    """Arm 6007, and a fit that is right but for kp of the first joint, about the vertical."""
    arm = simulated_arm(6007)
    axes = JointAxes.of_robot(arm.robot)
    motions = commanded_motions(arm.robot, arm.training)
    half_step = 0.5 * motions[0].encoder_step
    truth = pack(arm.servo.replace(offset=arm.servo.offset - half_step))
    x = truth.copy()
    x[[0, 3]] -= 0.25  # kp and armature
    std = np.full(len(x), 0.01)
    std[[0, 3]] = 0.3
    precision = np.diag(1.0 / std**2)
    empty = np.zeros((len(motions), len(x)))
    normal, run = np.zeros((len(motions), len(x), len(x))), np.arange(len(motions))
    fit = RolloutFit(x, precision, precision, np.zeros(len(x)), normal, empty, empty, run)
    contact = [contact_rows(axes, m, arm.floor) for m in motions]
    rows = ReplayRows.of_motions(axes, motions, contact)
    return arm, rows, fit


def test_kp_about_the_vertical_is_found_in_contact(case):
    arm, rows, fit = case
    assert rows.count > 100
    lower = replace(arm.floor, height=arm.floor.height - 0.003)
    better, floor = with_contact_gains(rows, fit, lower)
    assert abs(floor.height - arm.floor.height) < 6e-4
    before, after = (abs(np.log(f.servo.kp[0] / arm.servo.kp[0])) for f in (fit, better))
    assert before > 0.2 and after < 0.04
    np.testing.assert_allclose(better.servo.kp[1:3], arm.servo.kp[1:3], rtol=0.02)
    others = np.delete(np.arange(len(fit.x)), [5 * j + k for j in range(5) for k in (0, 3)])
    np.testing.assert_array_equal(better.x[others], fit.x[others])


def test_runs_without_contact_change_nothing(case):
    arm, rows, fit = case
    none = replace(rows, masks=tuple(np.zeros_like(mask) for mask in rows.masks))
    same, floor = with_contact_gains(none, fit, arm.floor)
    assert same is fit and floor is arm.floor


def test_runs_that_contradict_each_other_change_nothing(case):
    """Errors in contact that no gain explains differ from run to run."""
    arm, rows, fit = case
    rng = np.random.default_rng(0)
    noise = (rng.normal(0.0, 0.05, m.position.shape) for m in rows.motions)
    noisy = replace(
        rows,
        motions=tuple(
            replace(m, position=m.position + mask[:, None] * e)
            for m, mask, e in zip(rows.motions, rows.masks, noise, strict=True)
        ),
    )
    right = pack(arm.servo.replace(offset=fit.servo.offset))
    fit = replace(fit, x=right)
    same, floor = with_contact_gains(noisy, fit, arm.floor)
    assert same is fit and floor is arm.floor


def test_a_given_floor_stays_where_it_is(case):
    arm, rows, fit = case
    better, floor = with_contact_gains(rows, fit, arm.floor, is_fixed=True)
    assert floor == arm.floor and better is not fit
