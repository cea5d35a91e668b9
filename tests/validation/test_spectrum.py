"""Averaged periodograms without the import of all of signal processing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from taufit.validation.spectrum import welch


@pytest.mark.parametrize("length", [64, 101, 800])
def test_averaged_periodograms_are_those_of_scipy(length):
    x = np.random.default_rng(length).normal(size=(2000, 3)).cumsum(axis=0)

    frequency, density = welch(x, 250.0, length)

    expected = signal.welch(x, 250.0, nperseg=length, axis=0, detrend="constant")
    np.testing.assert_allclose(frequency, expected[0], rtol=1e-12)
    np.testing.assert_allclose(density, expected[1], rtol=1e-9)
