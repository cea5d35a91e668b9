"""Conversion of samples between signed and unsigned torque."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.recording import Recording
from taufit.signals import Samples, lowpass


def with_signs(
    samples: Samples, torque: Float[Array, "n j"], trusted: Bool[Array, " n"] | None = None
) -> Samples:
    """Samples with torque signed before the low-pass, as if recorded so.

    Args:
        samples: Samples with torque magnitudes.
        torque: Signed torque on the same grid, unfiltered if `raw_torque` exists [N m].
        trusted: Samples to be used further; None: all.
    """
    signed = joints_with_signs(samples)
    all_signed = np.ones(samples.joints, bool)
    keep = samples.keep if trusted is None else samples.keep & trusted[:, None]
    if samples.raw_torque is None:
        signed_torque = np.where(signed, samples.torque, torque)
        return replace(samples, torque=signed_torque, signed=all_signed, keep=keep)
    raw = np.where(signed, samples.raw_torque, torque)
    signed_torque = np.where(signed, samples.torque, lowpass(samples, raw))
    return replace(samples, torque=signed_torque, raw_torque=raw, signed=all_signed, keep=keep)


def sign_by_model(model: FittedModel, samples: Samples) -> Samples:
    """Magnitudes signed by the prediction of a fitted model, to score it on unsigned torque."""
    sign = np.where(predicted_torque(model, samples) >= 0.0, 1, -1)
    return with_signs(samples, sign * magnitudes(samples))


def without_signs(recording: Recording) -> Recording:
    """Copy of a recording with magnitudes only, if its signs are not to be used.

    A recording that declares signed joints is returned unchanged.
    """
    signed = recording.signed
    if signed is not None and not np.all(signed):
        return recording
    return replace(
        recording, signal=np.abs(recording.signal), signed=np.zeros(recording.joints, bool)
    )


def magnitudes(samples: Samples) -> Float[Array, "n j"]:
    """|torque|, unfiltered if available [N m]."""
    return np.abs(samples.torque if samples.raw_torque is None else samples.raw_torque)


def joints_with_signs(samples: Samples) -> Bool[Array, " j"]:
    """Joints with recorded torque signs."""
    if samples.signed is None:
        return np.zeros(samples.joints, bool)
    return np.asarray(samples.signed, bool)
