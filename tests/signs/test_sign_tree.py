"""The tree search of the literature, as a method to compare with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.sign_instances import boxes, instance, segment_truth

from taufit.core.errors import InfeasibleError, PoorExcitationError
from taufit.dynamics.base_parameters import base_parameters
from taufit.signs.tree import FeasibleDistance, search_tree, threshold_segments
from taufit.signs.unknown_signs import fit_unsigned


def test_tree_finds_every_sign_without_noise_and_friction():
    case = instance(0, noise=0.0)
    result = fit_unsigned(case.model, case.samples, "tree", bounds=boxes(case))
    np.testing.assert_array_equal(result.signs, segment_truth(case, result.segments))
    assert 33 <= len(result.segments) <= 60
    # 2^5 problems at the root, 10 at every level after it.
    assert result.recovery.nodes == 32 + 10 * (len(result.segments) - 5)
    assert not result.certified and np.all(result.ambiguous)


def test_distance_to_a_possible_arm_is_zero_and_to_its_mirror_is_not():
    case = instance(0, friction=True)
    base = base_parameters(case.model)
    inner = FeasibleDistance(case.model, base.mapping)
    # A body well inside the cone: the printed last link lies on its border.
    links = case.truth.copy()
    links[54] += 0.2
    links[56] += 0.2
    links[59] += 0.2
    target = base.mapping @ links
    assert inner.distance(target) < 1e-6 * np.sum(target**2)
    assert inner.distance(-target) > 1e-2 * np.sum(target**2)
    assert inner.solved == 2


def test_bounds_are_kept():
    case = instance(0)
    base = base_parameters(case.model)
    lower, upper = boxes(case)
    inner = FeasibleDistance(case.model, base.mapping, (lower, upper))
    nearest = inner.nearest(3.0 * base.mapping @ case.truth)
    slack = 1e-6 * np.abs(case.truth).max()
    assert np.all(nearest >= lower - slack) and np.all(nearest <= upper + slack)


def test_threshold_segments_lie_above_the_threshold():
    case = instance(1, noise=0.02)
    found = search_tree(case.model, case.samples, start=2, width=1)
    label, joint, first, last = threshold_segments(found.magnitude, case.samples, 0.45)
    rms = np.sqrt(np.mean(found.magnitude**2, 0))
    for k in range(len(joint)):
        inside = found.magnitude[first[k] : last[k] + 1, joint[k]]
        assert np.all(inside > 0.45 * rms[joint[k]]) and len(inside) >= 3
    assert label.max() == len(joint) - 1


def test_no_torque_no_segments():
    case = instance(0, noise=0.0, seconds=2.0)
    still = replace(case.samples, torque=np.zeros_like(case.samples.torque))
    with pytest.raises(PoorExcitationError, match="threshold"):
        fit_unsigned(case.model, still, "tree")


def test_fit_stays_within_the_masses_the_search_was_given():
    case = instance(1004, noise=0.1, friction=True)
    low, high = boxes(case)
    result = fit_unsigned(case.model, case.samples, "tree", bounds=(low, high))
    # Wrong signs: without bounds the first link would weigh hundreds of tonnes.
    assert np.any(result.signs != segment_truth(case, result.segments))
    mass = slice(0, 60, 10)
    assert np.all(result.values[mass] >= low[mass] - 1e-6)
    assert np.all(result.values[mass] <= high[mass] + 1e-6)


def test_signs_no_arm_has_are_told():
    class Impossible:
        weighting = "none"

        def solve(self, information, problem):
            raise InfeasibleError("no physically possible arm meets these bounds.")

    case = instance(0, noise=0.0, seconds=3.0)
    with pytest.raises(InfeasibleError, match="tree search found fit no arm"):
        fit_unsigned(case.model, case.samples, "tree", estimator=Impossible())
    with pytest.raises(InfeasibleError, match=r"^no physically"):
        fit_unsigned(case.model, case.samples, estimator=Impossible())
