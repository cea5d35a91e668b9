"""Samples whose torque gets its sign, or loses it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.recording import Recording
from taufit.signals import Samples, lowpass


def signed_samples(
    samples: Samples, torque: Float[Array, "n j"], trusted: Bool[Array, " n"] | None = None
) -> Samples:
    """The samples with their torque signed before the low-pass, as if it had been recorded so.

    Args:
        samples: With magnitudes.
        torque: Signed, on the same grid, not filtered where `raw_torque` is there.
        trusted: Samples to go on using; None for all.
    """
    signed = recorded_joints(samples)
    every = np.ones(samples.joints, bool)
    keep = samples.keep if trusted is None else samples.keep & trusted[:, None]
    if samples.raw_torque is None:
        new = np.where(signed, samples.torque, torque)
        return replace(samples, torque=new, signed=every, keep=keep)
    raw = np.where(signed, samples.raw_torque, torque)
    new = np.where(signed, samples.torque, lowpass(samples, raw))
    return replace(samples, torque=new, raw_torque=raw, signed=every, keep=keep)


def signed_by_model(model: FittedModel, samples: Samples) -> Samples:
    """Magnitudes signed as a fitted model predicts: to score it on recordings without signs."""
    sign = np.where(predicted_torque(model, samples) >= 0.0, 1, -1)
    return signed_samples(samples, sign * magnitudes(samples))


def without_signs(recording: Recording) -> Recording:
    """The recording as if only magnitudes had been recorded, where its signs are not to be used.

    A recording that says which joints carry their sign is left as it is.
    """
    signed = recording.signed
    if signed is not None and not np.all(signed):
        return recording
    return replace(
        recording, signal=np.abs(recording.signal), signed=np.zeros(recording.joints, bool)
    )


def magnitudes(samples: Samples) -> Float[Array, "n j"]:
    """|torque|, not filtered where that was kept."""
    return np.abs(samples.torque if samples.raw_torque is None else samples.raw_torque)


def recorded_joints(samples: Samples) -> Bool[Array, " j"]:
    """Joints whose torque carries its sign."""
    if samples.signed is None:
        return np.zeros(samples.joints, bool)
    return np.asarray(samples.signed, bool)
