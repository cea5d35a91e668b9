"""Designs of one arm, made once: what `taufit design` would write."""

from __future__ import annotations

import pytest
from benchmarks.tampered_motions import designed

ARM = "ur5e"


@pytest.fixture(scope="session")
def fourier():
    return designed(ARM)


@pytest.fixture(scope="session")
def spline():
    return designed(ARM, splines=8)


@pytest.fixture(scope="session")
def strokes():
    return designed(ARM, "friction-test")
