"""Our recursive filters are SciPy's, compiled or not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.signal

from taufit.signals import recursive_filter as recursive
from taufit.signals.recursive_filter import butterworth, filter_rows, filter_sections, resting_state


@pytest.mark.parametrize("order", [2, 4, 6])
@pytest.mark.parametrize("cutoff", [0.5, 5.0, 40.0])
def test_the_low_pass_is_scipys(order, cutoff):
    sections = butterworth(order, cutoff, 100.0)
    want = scipy.signal.butter(order, cutoff, fs=100.0, output="sos")
    frequency = np.linspace(0.0, 49.0, 200)
    _, ours = scipy.signal.sosfreqz(sections, frequency, fs=100.0)
    _, theirs = scipy.signal.sosfreqz(want, frequency, fs=100.0)
    # Sections may be ordered and scaled otherwise; the cascade is the same filter.
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_constant_stays_what_it_is():
    sections = butterworth(4, 3.0, 100.0)
    rows = np.full((2, 50), 7.0)
    state = resting_state(sections)[:, None, :] * rows[None, :, :1]
    out, after = filter_sections(sections, rows, state)
    np.testing.assert_allclose(out, rows, rtol=1e-12)
    np.testing.assert_allclose(after, state, rtol=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_rows_are_filtered_as_scipy_does(monkeypatch, order, compiled):
    if compiled and recursive._kernel is None:
        pytest.skip("this installation has no compiled kernel")
    if not compiled:
        monkeypatch.setattr(recursive, "_kernel", None)
    rng = np.random.default_rng(order)
    b = rng.normal(size=order + 1)
    a = np.r_[1.0, 0.5 * rng.normal(size=order) / max(order, 1)]
    rows = rng.normal(size=(3, 300))
    out, state = filter_rows(b, a, rows[:, :120])
    rest, _ = filter_rows(b, a, rows[:, 120:], state)
    want = scipy.signal.lfilter(b, a, rows, axis=1)
    # The same arithmetic in the same order, up to fused operations.
    np.testing.assert_allclose(np.hstack([out, rest]), want, rtol=1e-9, atol=1e-9)


def test_a_fit_with_its_report_imports_no_more_of_scipy_than_linear_algebra():
    if recursive._kernel is None:
        pytest.skip("this installation has no compiled kernel")
    code = (
        "import taufit.workflow, taufit.report, sys; "
        "print(*(m for m in sys.modules if m.startswith('scipy.') and m.count('.') == 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"scipy.signal", "scipy.stats", "scipy.optimize", "scipy.special", "scipy.fft"}
    assert not slow & set(done.stdout.split())
