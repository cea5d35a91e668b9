"""Normal distributions in information form against their textbook definitions by moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from taufit.core.gaussian import Gaussian, inverse_at_unit_diagonal, inverse_on_subset


def draw(seed: int, size: int = 6, decades: float = 6.0):
    """Mean and covariance of parameters in units that differ by many orders of magnitude."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-decades, decades, size)
    root = rng.normal(size=(size, 2 * size))
    covariance = (root @ root.T / size) * np.outer(scale, scale)
    return scale * rng.normal(size=size), covariance, scale


@given(seed=st.integers(0, 2**32 - 1))
def test_moments_survive_the_information_form(seed):
    mean, covariance, scale = draw(seed)
    got_mean, got = Gaussian.from_moments(mean, covariance).solve()
    # Condition numbers of the scaled matrices reach 1e5.
    np.testing.assert_allclose(
        got / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=1e-8
    )
    np.testing.assert_allclose(got_mean / scale, mean / scale, atol=1e-8)
    np.testing.assert_allclose(
        Gaussian.from_moments(mean, covariance).mean() / scale, mean / scale, atol=1e-8
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_marginal_and_condition_are_those_of_the_moments(seed):
    mean, covariance, scale = draw(seed)
    known = Gaussian.from_moments(mean, covariance)
    keep, rest = np.array([4, 1]), np.array([0, 2, 3, 5])
    part_mean, part = known.marginal(keep).solve()
    unit = np.outer(scale[keep], scale[keep])
    np.testing.assert_allclose(part / unit, covariance[np.ix_(keep, keep)] / unit, atol=1e-7)
    np.testing.assert_allclose(part_mean / scale[keep], mean[keep] / scale[keep], atol=1e-7)

    values = mean[keep] + scale[keep]
    gain = covariance[np.ix_(rest, keep)] @ inverse_at_unit_diagonal(covariance[np.ix_(keep, keep)])
    want = mean[rest] + gain @ (values - mean[keep])
    got, got_covariance = known.condition(keep, values).solve()
    np.testing.assert_allclose(got / scale[rest], want / scale[rest], atol=1e-6)
    # Knowledge of some entries never widens the others.
    assert np.all(np.diag(got_covariance) <= np.diag(covariance)[rest] * (1 + 1e-9))


def test_independent_information_adds_up_to_that_of_all_rows():
    rng = np.random.default_rng(3)
    rows, x = rng.normal(size=(40, 4)), rng.normal(size=4)
    target = rows @ x
    first, second = (
        Gaussian(part.T @ part, part.T @ aim)
        for part, aim in ((rows[:25], target[:25]), (rows[25:], target[25:]))
    )
    np.testing.assert_allclose((first + second).mean(), x, atol=1e-12)


def test_a_direction_without_information_stays_finite_and_at_zero_with_a_ridge():
    precision = np.diag([4.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError):
        Gaussian(precision, np.array([8.0, 0.0])).solve()
    mean, covariance = Gaussian(precision, np.array([8.0, 0.0])).solve(1e-9)
    np.testing.assert_allclose(mean, [2.0, 0.0], atol=1e-8)
    assert np.isfinite(covariance).all() and covariance[1, 1] >= 1e8


def test_the_inverse_within_free_entries_leaves_the_others_at_zero():
    _, covariance, _ = draw(5)
    free = np.array([True, False, True, True, False, True])
    got = inverse_on_subset(covariance, free)
    assert not got[~free].any() and not got[:, ~free].any()
    at = np.ix_(free, free)
    np.testing.assert_allclose(got[at] @ covariance[at], np.eye(4), atol=1e-8)
