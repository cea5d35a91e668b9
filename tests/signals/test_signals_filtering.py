"""The low-pass, derivatives and masks, as laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.signal import butter, sosfiltfilt

from taufit.core.errors import RecordingError
from taufit.signals import DIFFERENTIATIONS, Samples, lowpass, zero_phase
from taufit.signals.filtering import dilate_mask

quick = settings(deadline=None, derandomize=True, database=None, max_examples=20)


def _samples(n, runs, *, cutoff_hz=8.0, rate_hz=100.0, periodic=False):
    position = np.zeros((n, 2))
    clean = Samples.from_arrays(position, position, position, position, rate_hz=rate_hz)
    run = np.sort(np.arange(n) % runs)
    from dataclasses import replace

    return replace(
        clean, run=run, cutoff_hz=cutoff_hz, periodic=periodic, names=("a", "b", "c")[:runs]
    )


def test_the_low_pass_is_a_fourth_order_butterworth_run_both_ways():
    x = np.random.default_rng(0).normal(size=(900, 3))
    expected = sosfiltfilt(butter(4, 10.0, fs=250.0, output="sos"), x, axis=0, padlen=100)
    # Only the length of the continuation beyond the ends differs.
    np.testing.assert_allclose(zero_phase(x, 250.0, 10.0)[50:-50], expected[50:-50], atol=1e-6)


def test_the_low_pass_halves_the_cut_off_and_shifts_nothing():
    time = np.arange(2000) / 100.0
    for frequency, gain in ((1.0, 1.0 / (1 + 0.2**8)), (5.0, 0.5), (10.0, 1.0 / (1 + 2.0**8))):
        x = np.sin(2 * np.pi * frequency * time)
        y = zero_phase(x, 100.0, 5.0)[500:1500]
        # The bilinear transform bends the frequency axis: a third of the gain at 10 of 50 Hz.
        np.testing.assert_allclose(y, gain * x[500:1500], atol=5e-3)


@quick
@given(seed=st.integers(0, 2**32 - 1), runs=st.integers(1, 3), periodic=st.booleans())
def test_filtered_columns_explain_the_filtered_torque(seed, runs, periodic):
    rng = np.random.default_rng(seed)
    samples = _samples(300, runs, periodic=periodic)
    columns, x = rng.normal(size=(300, 2, 4)), rng.normal(size=4)
    np.testing.assert_allclose(
        lowpass(samples, columns) @ x, lowpass(samples, columns @ x), atol=1e-12
    )


def test_nothing_is_filtered_across_the_end_of_a_run():
    samples = _samples(300, 3)
    columns = np.random.default_rng(1).normal(size=(300, 2))
    columns[100:200] += 50.0
    together = lowpass(samples, columns)
    for k in range(3):
        rows = slice(100 * k, 100 * k + 100)
        alone = zero_phase(columns[rows], 100.0, 8.0)
        np.testing.assert_array_equal(together[rows], alone)


def test_complex_columns_are_filtered_part_by_part():
    rng = np.random.default_rng(2)
    real, imaginary = rng.normal(size=(2, 200, 3))
    filtered = zero_phase(real + 1j * imaginary, 100.0, 5.0)
    np.testing.assert_array_equal(filtered.real, zero_phase(real, 100.0, 5.0))
    np.testing.assert_array_equal(filtered.imag, zero_phase(imaginary, 100.0, 5.0))


def test_one_period_filtered_equals_many_periods_filtered():
    x = np.random.default_rng(3).normal(size=(200, 2))
    tiled = zero_phase(np.tile(x, (9, 1)), 100.0, 5.0)[800:1000]
    np.testing.assert_allclose(zero_phase(x, 100.0, 5.0, periodic=True), tiled, atol=1e-6)


def test_no_low_pass_changes_nothing_and_an_impossible_one_is_refused():
    x = np.random.default_rng(4).normal(size=(50, 2))
    np.testing.assert_array_equal(zero_phase(x, 100.0, np.inf), x)
    with pytest.raises(RecordingError, match="not below half the sampling rate"):
        zero_phase(x, 100.0, 50.0)


@pytest.mark.parametrize("name", DIFFERENTIATIONS)
def test_derivatives_of_a_period_are_exact_to_their_order(name):
    n, rate = 500, 100.0
    time = np.arange(n)[:, None] / rate
    w = 2 * np.pi * np.array([0.4, 1.2, 2.0])
    derivative = DIFFERENTIATIONS[name](np.sin(w * time), rate, 10.0, True)
    # (w h)^4 / 30 for five points; Fourier is exact; savgol's five-point cubic loses more.
    bound = {"central": (w / rate) ** 4 / 30, "savgol": (w / rate) ** 4, "fourier": 1e-12}[name]
    assert np.all(np.abs(derivative / w - np.cos(w * time)).max(0) <= 1.01 * bound + 1e-12)


@pytest.mark.parametrize("name", DIFFERENTIATIONS)
def test_derivatives_hold_up_to_the_ends_of_a_run_that_rests_there(name):
    x = np.linspace(0.0, 1.0, 401)
    rate = 400.0 / 4.0
    position = (x**3 * (10 - 15 * x + 6 * x**2))[:, None]
    velocity = (30 * x**2 * (1 - x) ** 2 / 4.0)[:, None]
    derivative = DIFFERENTIATIONS[name](position, rate, 10.0, False)
    np.testing.assert_allclose(derivative, velocity, atol=2e-5)


@quick
@given(seed=st.integers(0, 2**32 - 1), reach=st.floats(0.0, 0.3))
def test_smearing_reaches_as_far_as_asked(seed, reach):
    mask = np.random.default_rng(seed).random((80, 2)) < 0.03
    got = dilate_mask(mask, 100.0, reach)
    k = round(100.0 * reach)
    for row in range(80):
        near = mask[max(0, row - k) : row + k + 1].any(axis=0)
        np.testing.assert_array_equal(got[row], near)
