"""What a monitor can listen to: recordings played back, robots that are on, any samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import stream_conditioner
from taufit.payload.stream import playback, require_side
from taufit.recording import Recording
from taufit.recording.joint_order import require_joints
from taufit.signals.stream import StreamConditioner
from taufit.wire.source import Source, SourceDescription

# Samples of a robot are asked for this often [s].
_READ_S = 0.05
Row = tuple[float, Array, Array | None, Array, Array | None, Array | None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A source, checked against the model.

    Attributes:
        rows: Arguments of an intake's `push`, one sample after the other; None where a robot was
            silent for a moment.
        intake: For its torque channel.
        gain_std: Relative standard deviation of the drive gains, or None where unknown.
        warnings: What the user should know.
    """

    rows: Iterator[Row | None]
    intake: StreamConditioner
    gain_std: Float[Array, " j"] | None
    warnings: tuple[str, ...] = ()


def open_rows(model: FittedModel, source: Recording | Source | Iterable[Any], unit: str) -> Opened:
    """What a source delivers; refused where it is not of the model's robot and drives.

    Args:
        model: Fitted.
        source: A recording, a robot that is on, or tuples of `Monitor.update`'s arguments.
        unit: Of the torque in such tuples.
    """
    if isinstance(source, Recording):
        played = playback(model, source)
        return Opened(iter(played.rows()), played.intake, played.gain_std, played.warnings)
    if isinstance(source, Source):
        description = source.connect()
        try:
            intake, gain_std = _checked(model, description)
        except BaseException:
            source.close()
            raise
        return Opened(_robot_rows(source), intake, gain_std)
    gain_std = model.training.conditioning.relative_gain_std if unit == "A" else None
    return Opened((_filled(row) for row in source), stream_conditioner(model, unit=unit), gain_std)


def _checked(
    model: FittedModel, description: SourceDescription
) -> tuple[StreamConditioner, Float[Array, " j"] | None]:
    robot = model.robot
    require_joints(description.joints, robot.joints, name="the source", robot=robot.name)
    require_side(model, description.torque_source, "the source")
    if description.torque_kind not in ("torque", "current"):
        raise RecordingError(
            f"the source's torque channel is {description.torque_kind!r}; torque or current with "
            "the "
            "arm's own weight in it is needed. Choose another channel of the controller."
        )
    if description.torque_kind == "torque":
        return stream_conditioner(model), None
    return stream_conditioner(model, unit="A"), model.training.conditioning.relative_gain_std


def _robot_rows(source: Source) -> Iterator[Row | None]:
    """Samples until the source gives up; it is closed when nobody wants more."""
    try:
        while True:
            block = source.read(_READ_S)
            if block is None:
                yield None
                continue
            values = block.values
            columns = [
                values.get(name)
                for name in ("position", "velocity", "signal", "temperature", "commanded_velocity")
            ]
            for i, time in enumerate(block.time):
                position, velocity, signal, warm, told = (
                    None if column is None else column[i] for column in columns
                )
                assert position is not None and signal is not None
                yield float(time), position, velocity, signal, warm, told
    finally:
        source.close()


def _filled(row: Any) -> Row:
    """A tuple of update's arguments with None for those it lacks."""
    given = tuple(row)
    if not 4 <= len(given) <= 6:
        raise RecordingError(
            f"a sample has {len(given)} parts; time, position, velocity and torque are needed, "
            "temperature and commanded velocity may follow."
        )
    time, position, velocity, torque, warm, told = (*given, None, None)[:6]
    return float(time), position, velocity, torque, warm, told
