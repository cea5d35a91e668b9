"""The intake of a model's own robot: what its training says about gains, delay and sizes."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import Range
from taufit.signals.motion_intervals import STANDSTILL_SPEED
from taufit.signals.stream import StreamConditioner
from taufit.signals.stream.conditioner import GAP_S

UNITS = ("N m", "A")
# A spike is at least this share of its channel's range, of the widest channel's, and this large:
# 1 mrad, a few times the slowest motion, any torque.
_OWN, _WIDEST = 0.02, 0.005
_LEAST = (1e-3, 5.0 * STANDSTILL_SPEED, 1e-6)
# Torque and velocity beyond this many times what training and limits know are no measurements.
_IMPOSSIBLE = 10.0
_LARGEST = 1e12


def intake_of(
    model: FittedModel,
    *,
    unit: str = "N m",
    gain: Float[Array, " j"] | None = None,
    coupling: Float[Array, "j j"] | None = None,
) -> StreamConditioner:
    """The intake for samples of the robot a model was fitted to.

    Args:
        model: Fitted.
        unit: Of the torque channel, "N m" or "A"; amperes take the model's drive gains.
        gain: Joint torque per unit of the torque channel, where it is known otherwise.
        coupling: Of the motors; the robot's by default.
    """
    if unit not in UNITS:
        raise RecordingError(f"torque in {unit!r} is not known; there are {', '.join(UNITS)}.")
    robot, conditioning = model.robot, model.training.conditioning
    if gain is None and unit == "A":
        gain = conditioning.gain
        if gain is None:
            raise RecordingError(
                "the torque channel is in amperes and the model was fitted to torques in N m: the "
                "drive gains are not known. Fit the model to recordings in amperes, or give gains."
            )
    floor, largest = _sizes(model)
    if gain is not None:
        # The channel is judged as it comes.
        largest[2 * robot.joints :] /= np.maximum(np.abs(gain), 1e-12)
    return StreamConditioner(
        robot.joints,
        robot=robot.name,
        gain=gain,
        coupling=model.columns.coupling if coupling is None else coupling,
        delay_s=conditioning.delay_s,
        floor=floor,
        maximum=largest,
        max_gap_s=max(GAP_S, 3.5 / conditioning.rate_hz),
    )


def _sizes(model: FittedModel) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Per channel, what is large enough for a spike, and what is too large for a measurement."""
    ranges, joints = model.training.ranges, model.robot.joints
    floor, largest = np.empty(3 * joints), np.full(3 * joints, _LARGEST)
    each = (ranges.position, ranges.velocity, ranges.torque)
    for k, (span, least) in enumerate(zip(each, _LEAST, strict=True)):
        own = slice(k * joints, (k + 1) * joints)
        width = _width(span, joints)
        floor[own] = np.maximum(np.maximum(_OWN * width, _WIDEST * width.max()), least)
    limits = model.robot.limits
    known_ranges = ((ranges.velocity, limits.velocity), (ranges.torque, limits.torque))
    for k, (span, most) in enumerate(known_ranges):
        if span is None:
            continue
        own = slice((k + 1) * joints, (k + 2) * joints)
        reach = np.maximum(np.abs(span.low), np.abs(span.high))
        known = np.where(np.isfinite(most), np.abs(most), 0.0)
        # The arm carries more than in training, and some joints moved little there.
        largest[own] = _IMPOSSIBLE * np.maximum(np.maximum(reach, known), 0.1 * reach.max())
    return floor, np.where(largest > 0.0, largest, _LARGEST)


def _width(span: Range | None, joints: int) -> Array:
    return np.zeros(joints) if span is None else np.asarray(span.high - span.low, float)


def required_temperature(temperature: Float[Array, " j"] | None) -> Float[Array, " j"]:
    """Temperatures for a model whose friction depends on them."""
    if temperature is None:
        raise RecordingError(
            "this model's friction depends on temperature and the samples have none. "
            "Record joint temperatures, or fit a model without them."
        )
    return temperature
