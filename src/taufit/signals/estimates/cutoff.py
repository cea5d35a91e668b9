"""A cut-off from the spectrum: the signal that is lost balances the noise that is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError

LOWEST_HZ, LEAST_CAP_HZ, HIGHEST_HZ = 1.0, 5.0, 30.0


def choose_cutoff(
    velocities: Sequence[Float[Array, "_ j"]],
    torques: Sequence[Float[Array, "_ j"]],
    rate_hz: float,
) -> tuple[float, str]:
    """The cut-off of the zero-phase low-pass with the smallest expected error, and why.

    With signal S(f) and noise N(f) in the spectrum of acceleration or torque, a filter of gain H(f)
    leaves the mean square error

        E = sum (1 - H)^2 S + H^2 N.

    N is the level in the upper part of the spectrum (from velocity to acceleration it grows with
    f^2), S what stands out of it at least twofold. E, relative to the signal, is summed over
    acceleration and torque of every moving joint.

    Args:
        velocities: On the uniform grid, before any low-pass, run by run.
        torques: Likewise.
        rate_hz: Of the grid.
    """
    frequency, motion = _spectrum(velocities, rate_hz)
    _, effort = _spectrum(torques, rate_hz)
    omega2 = np.square(2.0 * np.pi * frequency)[:, None]
    moving = motion.sum(axis=0) > 1e-6 * motion.sum()
    if not moving.any() or motion.sum() == 0.0:
        raise RecordingError(
            "the cut-off cannot be chosen from the spectrum: nothing moves. Give one in hertz."
        )
    upper = (frequency > 0.28 * rate_hz) & (frequency < 0.42 * rate_hz)
    motion_noise = np.median(motion[upper], axis=0)
    effort_noise = np.median(effort[upper], axis=0)
    acceleration = np.where(motion > 2.0 * motion_noise, motion - motion_noise, 0.0) * omega2
    torque = np.where(effort > 2.0 * effort_noise, effort - effort_noise, 0.0)
    # Offsets and the slow change of gravity pass any filter; they only hide the rest.
    torque = np.where(frequency[:, None] < 0.05, 0.0, torque)

    # Far above the motion, what stands out of the noise is vibration no rigid arm explains.
    share = np.cumsum(np.where(motion > 2.0 * motion_noise, motion, 0.0)[:, moving].sum(axis=1))
    motion_hz = float(frequency[np.searchsorted(share, 0.999 * share[-1])]) if share[-1] else 0.0
    highest = min(max(LEAST_CAP_HZ, 8.0 * motion_hz), HIGHEST_HZ, 0.25 * rate_hz)
    candidates = np.geomspace(LOWEST_HZ, highest, 120)
    gain = 1.0 / (1.0 + (frequency[None, :] / candidates[:, None]) ** 8)
    lost, left = np.square(1.0 - gain), np.square(gain)
    error = np.zeros(len(candidates))
    for signal, noise in ((acceleration, omega2 * motion_noise), (torque, effort_noise)):
        total = signal.sum(axis=0)
        counted = moving & (total > 0)
        noise = np.broadcast_to(noise, signal.shape)
        relative = (lost @ signal + left @ noise)[:, counted] / total[counted]
        error += relative.sum(axis=1)
    cutoff = float(candidates[int(np.argmin(error))])
    # Rounded to two digits: the minimum is flat, and a file should not look finer than it is.
    digits = 1 - int(np.floor(np.log10(cutoff)))
    cutoff = min(round(cutoff, digits), highest)

    above = (torque[:, moving] > 0).mean(axis=1) > 0.5
    noise_hz = float(frequency[above].max(initial=0.0))
    why = (
        "more would only let vibration in (eight times the motion)"
        if cutoff > 0.99 * highest
        else "here the signal lost and the noise left are smallest together"
    )
    return cutoff, (
        f"cut-off {cutoff:.3g} Hz from the spectrum: 99.9 % of the velocity lies below "
        f"{motion_hz:.2g} Hz, torque stands out of its noise up to {noise_hz:.2g} Hz; {why}"
    )


def _spectrum(
    runs: Sequence[Float[Array, "_ j"]], rate_hz: float
) -> tuple[Float[Array, " f"], Float[Array, "f j"]]:
    """Power spectral density averaged over runs, weighted by their lengths."""
    from scipy.signal import welch

    longest = max(len(run) for run in runs)
    segment = int(min(longest, max(64, 8.0 * rate_hz)))
    total, weight = 0.0, 0.0
    frequency = np.empty(0)
    for run in runs:
        if len(run) < min(segment, longest):
            continue
        frequency, density = welch(run, rate_hz, nperseg=segment, detrend="linear", axis=0)
        total, weight = total + len(run) * density, weight + len(run)
    return frequency, np.asarray(total / weight)
