"""The friction index sees friction, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import worn_arm

from taufit.core.errors import RecordingError
from taufit.health import friction_index


def test_index_is_the_rise_of_friction(model):
    quiet = worn_arm.samples(30.0, noise=0.0)
    worn = worn_arm.samples(30.0, noise=0.0, wear=(0.0, 0.1, 0.0))
    before, after = friction_index(model, quiet), friction_index(model, worn)
    rise = after.index - before.index
    # 10 % of 8 N m dry and 14 N m s/rad viscous friction at the mean speed; slopes at 30 degC are
    # those of the reference but for the half degree of drift.
    expected = 0.1 * (8.0 + 14.0 * before.speed[1])
    assert rise[1] == pytest.approx(expected, rel=0.02)
    # The joints share the body at the last link, which takes a trace of what sign(v) leaves.
    np.testing.assert_allclose(rise[[0, 2]], 0.0, atol=2e-4)


def test_index_does_not_follow_temperature(model):
    cold = friction_index(model, worn_arm.samples(20.0, noise=0.0))
    warm = friction_index(model, worn_arm.samples(40.0, noise=0.0))
    # Without temperature in the model this would be -5 N m s/rad times the speed on joint 2.
    np.testing.assert_allclose(cold.index, warm.index, atol=0.02)


def test_index_does_not_take_a_gain_for_friction(model):
    from dataclasses import replace

    from taufit.model.predict import rigid_torque

    one = worn_arm.samples(30.0, noise=0.0)
    more = replace(one, torque=one.torque + 0.05 * rigid_torque(model, one))
    # Joint 1 of a floor robot has no load torque; friction of 5 to 12 N m is what could be seen.
    np.testing.assert_allclose(
        friction_index(model, more).index, friction_index(model, one).index, atol=0.02
    )


def test_what_the_arm_carries_is_no_friction(model):
    """A healthy arm with 2 kg at its last link: the mass is found, the index stays."""
    from dataclasses import replace

    one = worn_arm.samples(30.0, noise=0.0)
    links = model.columns.links(one.position, one.velocity, one.acceleration)
    mass, lever = 2.0, np.array([-0.2, 0.05, 0.03])
    inertia = mass * (lever @ lever * np.eye(3) - np.outer(lever, lever)) + 0.01 * np.eye(3)
    body = np.r_[mass, mass * lever, inertia[0, 0], inertia[0, 1], inertia[1, 1], inertia[0, 2],
                 inertia[1, 2], inertia[2, 2]]  # fmt: skip
    loaded = replace(one, torque=one.torque + links[..., model.layout.link(-1)] @ body)
    before, after = friction_index(model, one), friction_index(model, loaded)
    np.testing.assert_allclose(after.index, before.index, atol=0.05)
    assert after.payload - before.payload == pytest.approx(mass, rel=0.1)


def test_std_of_the_index_is_its_scatter(model):
    found = [friction_index(model, worn_arm.samples(30.0, seed)) for seed in range(60)]
    scatter = np.std([one.index for one in found], axis=0)
    told = np.mean([one.std for one in found], axis=0)
    run_to_run = 0.003 * found[0].level
    # Scatter of 60 runs is known to 10 %.
    np.testing.assert_allclose(scatter, np.hypot(told, run_to_run), rtol=0.35)


def test_a_joint_that_stands_still_is_named(model):
    from dataclasses import replace

    one = worn_arm.samples(30.0)
    keep = one.keep.copy()
    keep[:, 1] = False
    with pytest.raises(RecordingError, match="joint 2 moves in 0 samples"):
        friction_index(model, replace(one, keep=keep))
