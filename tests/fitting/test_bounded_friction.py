"""No fit states friction far beyond the torque that its recording shows."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.dynamics import inverse_dynamics
from taufit.fitting.selection import linear_friction, prior_scales
from taufit.terms import CONSTANT, LEVEL, MEMORY
from taufit.workflow import identify


def friction_over_torque(result):
    """Friction at low speed, and offset, over the largest torque beyond that of the links."""
    model, samples = result.model, result.samples
    layout, owner = model.layout, np.asarray(model.layout.owner)
    links = model.robot.with_parameters(model.values[layout.links])
    rigid = inverse_dynamics(links, samples.position, samples.velocity, samples.acceleration)
    is_level = layout.select(lambda parameter: parameter.group in (LEVEL, MEMORY))
    offsets = model.values[layout.of_kind(CONSTANT)]
    largest = np.abs(np.where(samples.keep, samples.torque - rigid, 0.0)).max(axis=0)
    levels = [model.values[is_level & (owner == j)].sum() for j in range(layout.joints)]
    return np.array(levels) / largest, np.abs(offsets) / largest


@pytest.fixture(scope="module")
def first_part(data_dir):
    """The LWR4's first 30 %, which show a part of some joints' travel."""
    from benchmarks.accuracy.leave_one_arm_out import ARM_CASES

    return next(case for case in ARM_CASES["LWR4"]() if case.name == "lwr4:30")


def fitted(case):
    return identify(case.robot, case.training, cutoff_hz=case.cutoff_hz)


def test_friction_is_bounded_by_the_torque_beyond_the_links(first_part, monkeypatch):
    # The joints at the bound have linear friction by another rule, which would hide it.
    monkeypatch.setattr(linear_friction, "_MAX_JOINT_ERROR", np.inf)
    levels, offsets = friction_over_torque(fitted(first_part))
    assert max(levels.max(), offsets.max()) < prior_scales._LARGEST_LEVEL

    monkeypatch.setattr(prior_scales, "_LARGEST_LEVEL", np.inf)
    unlimited, _ = friction_over_torque(fitted(first_part))
    assert unlimited.max() > 1.1 * levels.max()
