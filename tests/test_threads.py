"""BLAS threads are bounded while taufit calculates, in a notebook too."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import taufit
from taufit.core import threads


def blas_threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


@pytest.fixture
def nobody_set_it(monkeypatch):
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    np.linalg.qr(np.eye(3))


def test_a_call_has_one_thread_and_its_caller_as_many_as_before(nobody_set_it):
    inside = threads.one_blas_thread(blas_threads)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert inside() == {1}
        assert blas_threads() == before


def test_a_call_that_fails_gives_the_threads_back(nobody_set_it):
    @threads.one_blas_thread
    def fails():
        raise KeyError

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(KeyError):
            fails()
        assert blas_threads() == before


def test_a_users_own_setting_wins(nobody_set_it, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert threads.one_blas_thread(blas_threads)() == before


@pytest.mark.parametrize(
    "name", ["identify", "fit", "fit_samples", "check", "design", "identify_payload", "find_signs"]
)
def test_calls_that_calculate_are_bounded(name):
    assert hasattr(getattr(taufit, name), "__wrapped__")
