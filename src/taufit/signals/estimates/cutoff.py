"""Cut-off frequency from the spectrum: trade-off between lost signal and remaining noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError

LOWEST_HZ, LOWEST_MAXIMUM_HZ, HIGHEST_HZ = 1.0, 5.0, 30.0


def choose_cutoff(
    velocities: Sequence[Float[Array, "_ j"]],
    torques: Sequence[Float[Array, "_ j"]],
    rate_hz: float,
) -> tuple[float, str]:
    """Cut-off of the zero-phase low-pass with the smallest expected error, and its reason.

    With signal S(f) and noise N(f) in the spectrum of acceleration or torque, a filter of gain H(f)
    leaves the mean square error

        E = sum (1 - H)^2 S + H^2 N.

    N is the level in the upper part of the spectrum (from velocity to acceleration it grows with
    f^2), S the spectrum above twice that level. E, relative to the signal, is summed over
    acceleration and torque of every moving joint.

    Args:
        velocities: Velocity per run on the uniform grid, unfiltered.
        torques: Torque per run on the uniform grid, unfiltered.
        rate_hz: Rate of the grid [Hz].
    """
    frequency, velocity_spectrum = _spectrum(velocities, rate_hz)
    _, torque_spectrum = _spectrum(torques, rate_hz)
    omega2 = np.square(2.0 * np.pi * frequency)[:, None]
    moving = velocity_spectrum.sum(axis=0) > 1e-6 * velocity_spectrum.sum()
    if not moving.any() or velocity_spectrum.sum() == 0.0:
        raise RecordingError(
            "the cut-off cannot be chosen from the spectrum: nothing moves. Give one in hertz."
        )
    is_high_frequency = (frequency > 0.28 * rate_hz) & (frequency < 0.42 * rate_hz)
    velocity_noise = np.median(velocity_spectrum[is_high_frequency], axis=0)
    torque_noise = np.median(torque_spectrum[is_high_frequency], axis=0)
    acceleration = (
        np.where(velocity_spectrum > 2.0 * velocity_noise, velocity_spectrum - velocity_noise, 0.0)
        * omega2
    )
    torque = np.where(torque_spectrum > 2.0 * torque_noise, torque_spectrum - torque_noise, 0.0)
    # Offsets and slow gravity torque pass any filter and would dominate the sum.
    torque = np.where(frequency[:, None] < 0.05, 0.0, torque)

    # Power above the noise, far above the motion's frequencies, is vibration of flexible parts.
    cumulative_power = np.cumsum(
        np.where(velocity_spectrum > 2.0 * velocity_noise, velocity_spectrum, 0.0)[:, moving].sum(
            axis=1
        )
    )
    motion_hz = (
        float(frequency[np.searchsorted(cumulative_power, 0.999 * cumulative_power[-1])])
        if cumulative_power[-1]
        else 0.0
    )
    highest = min(max(LOWEST_MAXIMUM_HZ, 8.0 * motion_hz), HIGHEST_HZ, 0.25 * rate_hz)
    candidates = np.geomspace(LOWEST_HZ, highest, 120)
    gain = 1.0 / (1.0 + (frequency[None, :] / candidates[:, None]) ** 8)
    signal_loss, noise_gain = np.square(1.0 - gain), np.square(gain)
    error = np.zeros(len(candidates))
    for signal, noise in ((acceleration, omega2 * velocity_noise), (torque, torque_noise)):
        total = signal.sum(axis=0)
        joints_used = moving & (total > 0)
        noise = np.broadcast_to(noise, signal.shape)
        relative = (signal_loss @ signal + noise_gain @ noise)[:, joints_used] / total[joints_used]
        error += relative.sum(axis=1)
    cutoff = float(candidates[int(np.argmin(error))])
    # Two digits suffice, since the minimum is flat.
    digits = 1 - int(np.floor(np.log10(cutoff)))
    cutoff = min(round(cutoff, digits), highest)

    is_above_noise = (torque[:, moving] > 0).mean(axis=1) > 0.5
    noise_hz = float(frequency[is_above_noise].max(initial=0.0))
    reason = (
        "more would only let vibration in (eight times the motion)"
        if cutoff > 0.99 * highest
        else "here the signal lost and the noise left are smallest together"
    )
    return cutoff, (
        f"cut-off {cutoff:.3g} Hz from the spectrum: 99.9 % of the velocity lies below "
        f"{motion_hz:.2g} Hz, torque stands out of its noise up to {noise_hz:.2g} Hz; {reason}"
    )


def _spectrum(
    runs: Sequence[Float[Array, "_ j"]], rate_hz: float
) -> tuple[Float[Array, " f"], Float[Array, "f j"]]:
    """Power spectral density averaged over runs, weighted by their lengths."""
    from scipy.signal import welch

    max_length = max(len(run) for run in runs)
    segment = int(min(max_length, max(64, 8.0 * rate_hz)))
    total, weight = 0.0, 0.0
    frequency = np.empty(0)
    for run in runs:
        if len(run) < min(segment, max_length):
            continue
        frequency, density = welch(run, rate_hz, nperseg=segment, detrend="linear", axis=0)
        total, weight = total + len(run) * density, weight + len(run)
    return frequency, np.asarray(total / weight)
