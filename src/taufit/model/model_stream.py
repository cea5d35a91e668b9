"""Stream conditioning for a fitted model: gains, delay and channel ranges from its training."""

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
# Smallest spike: fraction of its channel's range, fraction of the widest channel's, and absolute
# (1 mrad, a few times the slowest motion, any torque).
_CHANNEL_FRACTION, _WIDEST_FRACTION = 0.02, 0.005
_MIN_SPIKES = (1e-3, 5.0 * STANDSTILL_SPEED, 1e-6)
# Factor on training range and limits above which torque and velocity are invalid.
_IMPOSSIBLE_FACTOR = 10.0
_MAX_VALUE = 1e12


def stream_conditioner(
    model: FittedModel,
    *,
    unit: str = "N m",
    gain: Float[Array, " j"] | None = None,
    coupling: Float[Array, "j j"] | None = None,
) -> StreamConditioner:
    """Build the stream conditioner for the robot of a fitted model.

    Args:
        model: Fitted model.
        unit: Unit of the torque channel, "N m" or "A"; amperes use the model's drive gains.
        gain: Joint torque per unit of the torque channel, if known otherwise.
        coupling: Coupling matrix of the motors; the robot's by default.
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
    floor, largest = _spike_sizes(model)
    if gain is not None:
        # Limits in units of the raw channel.
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


def _spike_sizes(model: FittedModel) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Smallest spike and largest valid value of each channel."""
    ranges, joints = model.training.ranges, model.robot.joints
    floor, largest = np.empty(3 * joints), np.full(3 * joints, _MAX_VALUE)
    channel_ranges = (ranges.position, ranges.velocity, ranges.torque)
    for k, (span, minimum) in enumerate(zip(channel_ranges, _MIN_SPIKES, strict=True)):
        channels = slice(k * joints, (k + 1) * joints)
        width = _width(span, joints)
        floor[channels] = np.maximum(
            np.maximum(_CHANNEL_FRACTION * width, _WIDEST_FRACTION * width.max()), minimum
        )
    limits = model.robot.limits
    ranges_and_limits = ((ranges.velocity, limits.velocity), (ranges.torque, limits.torque))
    for k, (span, limit) in enumerate(ranges_and_limits):
        if span is None:
            continue
        channels = slice((k + 1) * joints, (k + 2) * joints)
        largest_in_training = np.maximum(np.abs(span.low), np.abs(span.high))
        finite_limit = np.where(np.isfinite(limit), np.abs(limit), 0.0)
        # Payloads may exceed training, and some joints may have moved little there.
        largest[channels] = _IMPOSSIBLE_FACTOR * np.maximum(
            np.maximum(largest_in_training, finite_limit), 0.1 * largest_in_training.max()
        )
    return floor, np.where(largest > 0.0, largest, _MAX_VALUE)


def _width(span: Range | None, joints: int) -> Array:
    return np.zeros(joints) if span is None else np.asarray(span.high - span.low, float)


def require_temperature(temperature: Float[Array, " j"] | None) -> Float[Array, " j"]:
    """Return temperatures for temperature-dependent friction; raise if there are none."""
    if temperature is None:
        raise RecordingError(
            "this model's friction depends on temperature and the samples have none. "
            "Record joint temperatures, or fit a model without them."
        )
    return temperature
