"""Thinning a recording out without aliases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import resample_poly

from taufit.signals import resampling
from taufit.signals.resampling import decimate


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("n", [5, 100, 101, 3001])
def test_decimation_is_that_of_scipy(monkeypatch, compiled, factor, n):
    if not compiled:
        monkeypatch.setattr(resampling, "_kernel", None)
    x = np.random.default_rng(n).normal(size=(n, 3)).cumsum(axis=0)

    expected = resample_poly(x.T, 1, factor, axis=1, padtype="line").T

    # Both sum 41 products; the order of summation differs.
    np.testing.assert_allclose(decimate(x, factor), expected, atol=1e-12 * np.abs(x).max())
