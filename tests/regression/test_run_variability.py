"""Scatter of friction between runs: found from few runs, and honest in what it says of slopes."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.core.statistics import NORMAL_95, student_t_upper_quantile
from taufit.regression.pooled_scatter import pooled_scatter
from taufit.regression.run_variability import PRIOR_FREEDOM, PRIOR_SCATTER

JOINTS = 6


def slope_errors(runs, scatter, freedom, draws=300):
    """Errors of slopes through run factors, over their stated standard deviation."""
    rng = np.random.default_rng((runs, round(1e4 * scatter)))
    out = []
    for _ in range(draws):
        columns = np.c_[np.ones(runs), np.linspace(-1.0, 1.0, runs)]
        own = scatter * np.exp(0.3 * rng.normal(size=JOINTS))
        factor = own * rng.normal(size=(runs, JOINTS))
        fitted, squares, *_ = np.linalg.lstsq(columns, factor, rcond=None)
        slope_variance = np.linalg.inv(columns.T @ columns)[1, 1]
        quantile = student_t_upper_quantile(0.025, 4.0 + freedom) / NORMAL_95
        std = (
            quantile
            * pooled_scatter(squares, freedom, PRIOR_SCATTER, PRIOR_FREEDOM)
            * np.sqrt(slope_variance)
        )
        out.append(fitted[1] / std)
    return np.array(out)


@pytest.mark.parametrize("scatter", [0.003, 0.01, 0.03])
@pytest.mark.parametrize("runs", [5, 10])
def test_slopes_are_inside_their_intervals_whatever_the_scatter(runs, scatter):
    z = slope_errors(runs, scatter, runs - 2)
    assert 0.93 < np.mean(np.abs(z) <= NORMAL_95) < 0.99
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.2


def test_a_slope_takes_a_degree_of_freedom():
    # Counted as if only a level were fitted, intervals of five runs do not hold.
    assert np.mean(np.abs(slope_errors(5, 0.03, 4)) <= NORMAL_95) < 0.93


def test_a_joint_that_scatters_most_keeps_most():
    squares = 1e-4 * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 36.0])
    scatter = pooled_scatter(squares, 8)
    assert scatter[-1] > 1.5 * scatter[0] and np.all(np.diff(scatter[:5]) == 0.0)
