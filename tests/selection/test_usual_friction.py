"""Usual friction: a prior mean for short motion of arms whose torque is measured at the motor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.simulated_samples import simulated

from taufit.fitting.selection.prior_scales import maximise_evidence
from taufit.fitting.selection.usual_friction import UsualFriction, usual_friction
from taufit.signals.sample_source import as_source
from taufit.terms.friction import Polynomial, Presliding


def test_the_mean_of_an_arm_is_usual_without_data_and_that_of_its_joints_with_data():
    term = UsualFriction(np.arange(4), np.array([1.0, 2.0, 4.0, 8.0]), 2.0, 1.5, 0.5)
    theta = 3.0 * term.level
    assert term.arm_mean(theta, np.zeros(4)) == 2.0
    # Precision 4 / 0.5^2 of four joints beside 1 / 1.5^2.
    np.testing.assert_allclose(term.arm_mean(theta, np.ones(4)), 2.0 + 16.0 / (16.0 + 1.0 / 2.25))
    # One joint counts for the joints that show nothing.
    assert 2.5 < term.arm_mean(theta, np.eye(4)[0]) < 3.0


def test_only_motor_torque_and_terms_with_a_usual_value_have_one():
    for friction, side, kinds in (
        (Presliding(), "motor", 2),
        (Presliding(quadratic=False), "motor", 1),
        (Presliding(), "link", 0),
        (Polynomial(), "motor", 0),
    ):
        model, *_ = simulated(friction)
        drives = replace(model.robot.drives, side=side)
        model = replace(model, robot=replace(model.robot, drives=drives))
        assert len(usual_friction(model, np.ones(len(model.names)))) == kinds


def test_what_short_motion_does_not_show_of_viscous_friction_is_usual():
    """Motion far below the rated speed, in which viscous friction is below the noise."""
    model, _, _, samples = simulated(Presliding(), seed=7, noise=0.5)
    limits = replace(model.robot.limits, velocity=np.full(model.robot.joints, 100.0))
    model = replace(model, robot=replace(model.robot, limits=limits))
    search = maximise_evidence(model, as_source(samples.rows(slice(0, 100))), ())
    viscous = search.scales.usual[0]
    arm = viscous.arm_mean(search.theta, np.zeros(len(search.theta)))
    np.testing.assert_allclose(search.mean[viscous.indices] / viscous.level, arm, rtol=0.3)
    assert np.all(search.theta[viscous.indices] > 0.3 * viscous.level)


def test_long_motion_has_no_usual_friction():
    model, _, _, samples = simulated(Presliding(), seed=7, n=9000)
    search = maximise_evidence(model, as_source(samples), ())
    assert search.scales.usual == () and not np.any(search.mean)
