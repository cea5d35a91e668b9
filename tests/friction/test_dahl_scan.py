"""Friction that remembers its path, scanned sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import taufit.terms.friction.presliding as presliding
from taufit.terms.friction.presliding import DEFAULT_WIDTHS, dahl_states


def _path(seed: int, n: int = 400) -> np.ndarray:
    return 1e-4 * np.random.default_rng(seed).normal(size=n).cumsum()


@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(1, 399))
def test_a_scan_cut_anywhere_and_gone_on_with_is_the_whole_scan(seed, cut):
    travel = _path(seed)
    whole, last = dahl_states(travel, DEFAULT_WIDTHS)

    first, state = dahl_states(travel[:cut], DEFAULT_WIDTHS)
    second, end = dahl_states(travel[cut:], DEFAULT_WIDTHS, float(travel[cut - 1]), state)

    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(end, last)


def test_kernel_equals_numpy(monkeypatch):
    if presliding._kernel is None:
        pytest.skip("installed without the compiled kernel")
    travel = _path(1, 2000)
    fast, _ = dahl_states(travel, DEFAULT_WIDTHS, 1e-4, np.full(len(DEFAULT_WIDTHS), 0.3))
    monkeypatch.setattr(presliding, "_kernel", None)
    plain, _ = dahl_states(travel, DEFAULT_WIDTHS, 1e-4, np.full(len(DEFAULT_WIDTHS), 0.3))

    np.testing.assert_allclose(fast, plain, atol=1e-13)
