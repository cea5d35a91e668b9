"""Joints without torque are moved but not fitted; the others are fitted as ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs

import taufit
from taufit.diagnosis import ContradictionError

DEAD = [3, 5]


def without_torque(recording, joints):
    signal = recording.signal.copy()
    signal[:, joints] = 0.25
    return replace(recording, signal=signal)


def test_the_other_joints_are_fitted_and_the_dead_ones_named():
    robot, (first, second) = clean_runs("ur3e", 3, 2)
    whole = taufit.identify(robot, [first], holdout=[second], friction="linear")
    result = taufit.identify(
        robot,
        [without_torque(first, DEAD)],
        holdout=[without_torque(second, DEAD)],
        friction="linear",
    )
    (score,), (expected,) = result.holdout_scores, whole.holdout_scores
    alive = np.setdiff1d(np.arange(6), DEAD)
    np.testing.assert_array_equal(score.measured, np.isin(np.arange(6), alive))
    # Two joints less inform on the links; the worst of these four changes by 3 %.
    np.testing.assert_allclose(score.nrmse[alive], expected.nrmse[alive], rtol=0.15)
    assert result.grades.unexplained == pytest.approx(np.mean(score.nrmse[alive]))
    assert result.grades.overall in ("excellent", "good") and result.consistent
    assert {f.joint for f in result.findings if f.kind == "dead_torque"} == {4, 6}
    assert {f.joint for f in result.findings if f.kind == "not_scored"} == {4, 6}
    values = dict(zip(result.model.names, result.model.values, strict=True))
    assert values["joint_4.coulomb"] == values["joint_6.viscous"] == 0.0 < values["joint_1.coulomb"]
    with pytest.raises(ContradictionError, match="torque of every joint is constant"):
        taufit.identify(robot, [without_torque(first, list(range(6)))], friction="linear")
