"""Differentiation on a uniform grid: central differences, Savitzky-Golay, Fourier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taufit.core.arrays import Array, Float


def central(
    signal: Float[Array, "n j"], rate_hz: float, cutoff_hz: float, periodic: bool = False
) -> Float[Array, "n j"]:
    """Five-point central differences: relative error (w h)^4 / 30 at angular frequency w."""
    h = 1.0 / rate_hz
    if periodic:
        first_difference = np.roll(signal, -1, 0) - np.roll(signal, 1, 0)
        second_difference = np.roll(signal, -2, 0) - np.roll(signal, 2, 0)
        return np.asarray((8.0 * first_difference - second_difference) / (12.0 * h))
    out = np.empty_like(signal)
    if len(signal) < 5:
        return np.gradient(signal, h, axis=0) if len(signal) > 1 else np.zeros_like(signal)
    out[2:-2] = (8.0 * (signal[3:-1] - signal[1:-3]) - (signal[4:] - signal[:-4])) / (12.0 * h)
    # The polynomial of degree 4 through the five samples at each end.
    ends = np.array([[-25.0, 48.0, -36.0, 16.0, -3.0], [-3.0, -10.0, 18.0, -6.0, 1.0]]) / (12.0 * h)
    out[:2] = ends @ signal[:5]
    out[-2:] = (-ends @ signal[:-6:-1])[::-1]
    return out


def savgol(
    signal: Float[Array, "n j"], rate_hz: float, cutoff_hz: float, periodic: bool = False
) -> Float[Array, "n j"]:
    """Savitzky-Golay slope: cubic over half a period of the cut-off (at least five samples)."""
    from scipy.signal import savgol_filter

    window = 5 if not np.isfinite(cutoff_hz) else max(5, int(0.25 * rate_hz / cutoff_hz) * 2 + 1)
    if len(signal) < window:
        return central(signal, rate_hz, cutoff_hz, periodic)
    return np.asarray(
        savgol_filter(
            signal,
            window,
            3,
            deriv=1,
            delta=1.0 / rate_hz,
            axis=0,
            mode="wrap" if periodic else "interp",
        )
    )


def fourier(
    signal: Float[Array, "n j"], rate_hz: float, cutoff_hz: float, periodic: bool = False
) -> Float[Array, "n j"]:
    """Multiplication by i w in the Fourier domain: exact for band-limited periodic motion.

    A run that is not periodic is continued by its mirror image, exact if it starts and ends at
    standstill.
    """
    n = len(signal)
    if n < 2:
        return np.zeros_like(signal)
    continued = signal if periodic else np.concatenate([signal, signal[-2:0:-1]])
    frequency = np.fft.rfftfreq(len(continued), 1.0 / rate_hz)
    factor = 2j * np.pi * frequency
    if len(continued) % 2 == 0:
        factor[-1] = 0.0  # the Nyquist line has no derivative on the grid
    spectrum = np.fft.rfft(continued, axis=0) * factor[:, None]
    return np.fft.irfft(spectrum, len(continued), axis=0)[:n]


Differentiation = Callable[[Array, float, float, bool], Array]

DIFFERENTIATIONS: dict[str, Differentiation] = {
    "central": central,
    "savgol": savgol,
    "fourier": fourier,
}
