"""Sources of the monitor: recordings, running robots, or any samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import stream_conditioner
from taufit.payload.stream import playback, require_side
from taufit.recording import Recording
from taufit.recording.joint_order import require_joints
from taufit.signals.stream import StreamConditioner
from taufit.wire.source import SampleBlock, Source, SourceDescription

# Polling period of a running robot [s].
_POLL_S = 0.05
Row = tuple[float, Array, Array | None, Array, Array | None, Array | None]


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """A source, checked against the model.

    Attributes:
        rows: Arguments of the conditioner's `push`, one sample after the other; None while a robot
            sends nothing.
        conditioner: Stream conditioner for its torque channel.
        gain_std: Relative standard deviation of the drive gains; None if unknown.
        warnings: Messages for the user.
    """

    rows: Iterator[Row | None]
    conditioner: StreamConditioner
    gain_std: Float[Array, " j"] | None
    warnings: tuple[str, ...] = ()


def open_monitor_source(
    model: FittedModel, source: Recording | Source | Iterable[Any], unit: str
) -> OpenedSource:
    """Open a source; raises if it is not of the model's robot and drives.

    Args:
        model: Fitted model.
        source: Recording, running robot, or tuples of arguments of `Monitor.update`.
        unit: Unit of the torque in such tuples.
    """
    if isinstance(source, Recording):
        recording_playback = playback(model, source)
        return OpenedSource(
            iter(recording_playback.rows()),
            recording_playback.conditioner,
            recording_playback.gain_std,
            recording_playback.warnings,
        )
    if isinstance(source, Source):
        description = source.connect()
        try:
            conditioner, gain_std = matching_conditioner(model, description)
        except BaseException:
            source.close()
            raise
        return OpenedSource(_robot_rows(source), conditioner, gain_std)
    gain_std = model.training.conditioning.relative_gain_std if unit == "A" else None
    return OpenedSource(
        (_complete_row(row) for row in source), stream_conditioner(model, unit=unit), gain_std
    )


def matching_conditioner(
    model: FittedModel, description: SourceDescription
) -> tuple[StreamConditioner, Float[Array, " j"] | None]:
    """Conditioner and gain deviations of a source; raises if it is not of the model's robot."""
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
    """Samples until the source ends; it is closed at the end of the iteration."""
    try:
        while True:
            block = source.read(_POLL_S)
            if block is None:
                yield None
                continue
            yield from block_rows(block)
    finally:
        source.close()


def block_rows(block: SampleBlock) -> Iterator[Row]:
    """Arguments of the conditioner's `push`, one sample after the other."""
    columns = [
        block.values.get(name)
        for name in ("position", "velocity", "signal", "temperature", "commanded_velocity")
    ]
    for i, time in enumerate(block.time):
        position, velocity, signal, temperature, commanded_velocity = (
            None if column is None else column[i] for column in columns
        )
        assert position is not None and signal is not None
        yield float(time), position, velocity, signal, temperature, commanded_velocity


def _complete_row(row: Any) -> Row:
    """Arguments of `Monitor.update`, missing ones as None."""
    values = tuple(row)
    if not 4 <= len(values) <= 6:
        raise RecordingError(
            f"a sample has {len(values)} parts; time, position, velocity and torque are needed, "
            "temperature and commanded velocity may follow."
        )
    time, position, velocity, torque, temperature, commanded_velocity = (*values, None, None)[:6]
    return float(time), position, velocity, torque, temperature, commanded_velocity
