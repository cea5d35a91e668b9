"""What a model leaves over, described: how strong, how slow, and what repeats with position.

The residual of a joint is taken as torque that repeats with its position plus noise of density S,

    r(t) = sum_k a_k cos(c_k q) + b_k sin(c_k q) + noise,

so that a later run knows what to expect of the same arm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.signals.samples import Samples

# Cycles per turn (or per metre) of torque that repeats with position.
RIPPLE_CYCLES = (2.0, 4.0, 8.0, 16.0)
# Part of the residual's standard deviation that ripple may have before anything is known.
RIPPLE_SHARE = 0.7
# Motions have their power below this [Hz]; noise is measured where they are.
_BAND_HZ = 2.0
_SHORTEST_S = 4.0


def ripple_columns(position: Float[Array, " n"]) -> Float[Array, "n k"]:
    """cos and sin of each of the cycles, in turn."""
    angle = position[:, None] * np.array(RIPPLE_CYCLES)
    out = np.empty((len(position), 2 * len(RIPPLE_CYCLES)))
    out[:, ::2], out[:, 1::2] = np.cos(angle), np.sin(angle)
    return out


def residual_structure(samples: Samples, residual: Float[Array, "n j"]) -> dict[str, Any]:
    """Noise density and ripple of each joint, as plain data for a model file.

    Args:
        samples: What was fitted.
        residual: Measured minus predicted torque.
    """
    joints = samples.joints
    density = np.zeros(joints)
    coefficients = np.zeros((joints, 2 * len(RIPPLE_CYCLES)))
    covariance = np.zeros((joints, 2 * len(RIPPLE_CYCLES), 2 * len(RIPPLE_CYCLES)))
    for j in range(joints):
        keep = samples.keep[:, j] & samples.in_motion
        left = np.where(keep, residual[:, j], 0.0)
        columns = ripple_columns(samples.position[:, j]) * keep[:, None]
        rms = float(np.sqrt(np.sum(left**2) / max(np.count_nonzero(keep), 1)))
        if rms == 0.0 or not np.isfinite(rms):
            density[j] = 0.0
            continue
        prior = np.eye(columns.shape[1]) * len(RIPPLE_CYCLES) / (RIPPLE_SHARE * rms) ** 2
        density[j] = _density(left, keep, samples)
        # The first density still holds the ripple; the second does not.
        for _ in range(2):
            weight = 1.0 / (density[j] * samples.rate_hz)
            covariance[j] = np.linalg.inv(weight * (columns.T @ columns) + prior)
            coefficients[j] = covariance[j] @ (weight * (columns.T @ left))
            density[j] = _density(left - columns @ coefficients[j], keep, samples)
    return {
        "noise_density": density.tolist(),
        "ripple": {
            "cycles": list(RIPPLE_CYCLES),
            "coefficients": coefficients.tolist(),
            "covariance": covariance.tolist(),
        },
    }


def _density(left: Array, keep: Array, samples: Samples) -> float:
    """Power per hertz (two-sided) where motions have theirs [(N m)^2 s]."""
    total = seconds = 0.0
    for run in samples.run_slices():
        length = run.stop - run.start
        kept = np.count_nonzero(keep[run]) / samples.rate_hz
        if kept < _SHORTEST_S:
            continue
        spectrum = np.abs(np.fft.rfft(left[run]) / samples.rate_hz) ** 2
        frequency = np.fft.rfftfreq(length, 1.0 / samples.rate_hz)
        band = (frequency > 0.0) & (frequency <= min(_BAND_HZ, samples.cutoff_hz))
        # |integral of r exp(-iwt)|^2 is the density times the seconds kept.
        total += float(spectrum[band].mean())
        seconds += kept
    if seconds == 0.0:
        return float(np.var(left[keep]) * 0.1) if np.any(keep) else 0.0
    return total / seconds
