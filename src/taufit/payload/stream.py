"""A recording as the stream of samples it was: clean, in newton metres, at its own time stamps.

Its rows go through the same intake as those of a robot that is on, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import stream_conditioner
from taufit.recording import Recording, in_order
from taufit.signals.clean import check_channels
from taufit.signals.drive_gains import Gains, joint_gains
from taufit.signals.intake import CleanSample, StreamConditioner
from taufit.signals.outliers import interpolate_outliers

# Gains that differ from the model's by more than this make the arm's own torque another one.
_SAME_GAINS = 0.005

_COMMANDED = ("commanded_position", "commanded_velocity", "commanded_acceleration")


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Motion and joint torque, sample by sample.

    Attributes:
        time: From the first sample [s].
        position, velocity, torque: Of the joints.
        temperature: Or None.
        gain_std: Relative standard deviation of the drive gains, or None where unknown.
        commanded: Commanded position, velocity and acceleration, where all were recorded.
        start: First time stamp [s].
        name: Of the recording.
        warnings: What the user should know.
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    temperature: Float[Array, "n j"] | None
    gain_std: Float[Array, " j"] | None
    commanded: tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]] | None
    start: float
    name: str
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    def samples(self) -> Iterator[tuple[float, Array, Array, Array, Array | None]]:
        """Time, position, velocity, torque, temperature of each sample."""
        warm = self.temperature
        for i in range(len(self.time)):
            yield (
                float(self.time[i]),
                self.position[i],
                self.velocity[i],
                self.torque[i],
                None if warm is None else warm[i],
            )


@dataclass(frozen=True, slots=True, eq=False)
class RecordingPlayback:
    """A recording of the model's own robot, about to be heard row by row.

    Attributes:
        recording: Its joints in the robot's order.
        intake: For its torque channel.
        gain_std: Relative standard deviation of the drive gains, or None where unknown.
        name: Of the recording.
        warnings: What the user should know.
    """

    recording: Recording
    intake: StreamConditioner
    gain_std: Float[Array, " j"] | None
    name: str
    warnings: tuple[str, ...]

    def rows(
        self,
    ) -> Iterator[tuple[float, Array, Array | None, Array, Array | None, Array | None]]:
        """Time, position, velocity, torque channel, temperature, commanded velocity as recorded."""
        one = self.recording
        velocity, warm, told = one.velocity, one.temperature, one.commanded_velocity
        for i, time in enumerate(np.asarray(one.time, float)):
            yield (
                float(time),
                one.position[i],
                None if velocity is None else velocity[i],
                one.signal[i],
                None if warm is None else warm[i],
                None if told is None else told[i],
            )


def playback(model: FittedModel, recording: Recording) -> RecordingPlayback:
    """A recording ready to be heard; refused where it is not of the model's robot and drives.

    A recording in amperes whose map gives no gains in numbers gets the model's, since it is the
    same robot.
    """
    name, robot = recording.name, model.robot
    recording = in_order(recording, robot.joint_names, robot=robot.name)
    if recording.signed is not None and not np.all(recording.signed):
        raise RecordingError(
            f"{name} has torques without a sign. `taufit payload` finds the signs of a whole "
            "recording with its payload; a template, or samples one by one, need signed torques."
        )
    require_side(model, recording.torque_source, name)
    gains, gain_std, warnings = _gains(model, recording, name)
    check_channels(recording, ("temperature", *_COMMANDED))
    intake = stream_conditioner(model, gain=gains.value, coupling=recording.coupling)
    forced = [
        f"the model was fitted by force although {text.rstrip('.')}. What it says about payloads "
        "and contacts may be far off."
        for text in model.training.contradictions
    ]
    return RecordingPlayback(recording, intake, gain_std, name, (*forced, *warnings))


def stream(model: FittedModel, recording: Recording) -> Stream:
    """A recording of the model's own robot as the intake hears it, ready to be fed to a filter.

    Velocities that were not measured are central differences of position.
    """
    source = playback(model, recording)
    intake, name, recording = source.intake, source.name, source.recording
    heard: list[CleanSample] = []
    for row in source.rows():
        heard += intake.push(*row)
    heard += intake.flush()
    if len(heard) < 20:
        raise RecordingError(f"{name} has fewer than 20 samples with rising time stamps.")
    warnings = list(source.warnings)
    if not intake.measured.all():
        warnings.append("velocity was not recorded: it is the derivative of position.")
    if intake.counts.spike:
        warnings.append(
            f"{intake.counts.spike} samples of {name} have single spikes far from their "
            "neighbours: left out"
        )
    time = np.array([sample.time for sample in heard])
    warm = None
    if recording.temperature is not None:
        warm = np.array([sample.temperature for sample in heard])
    return Stream(
        time - time[0],
        np.array([sample.position for sample in heard]),
        np.array([sample.velocity for sample in heard]),
        np.array([sample.torque for sample in heard]),
        warm,
        source.gain_std,
        _commanded(recording, np.array([sample.number for sample in heard])),
        float(time[0]),
        name,
        tuple(warnings),
    )


def _commanded(recording: Recording, rows: Int[Array, " m"]) -> tuple[Array, Array, Array] | None:
    """Commanded position, velocity and acceleration at rows, holes bridged; None without them."""
    out = []
    for channel in _COMMANDED:
        values = getattr(recording, channel)
        if values is None:
            return None
        values = np.asarray(values, float)[rows]
        bad = ~np.isfinite(values)
        if bad.all(axis=0).any():
            return None
        out.append(interpolate_outliers(np.asarray(recording.time, float)[rows], values, bad))
    return out[0], out[1], out[2]


def require_side(model: FittedModel, torque_source: str, name: str) -> None:
    """Refuse torque from the other side of the gear than the model was fitted to."""
    side = "link" if torque_source == "joint_torque_sensor" else "motor"
    if side != model.robot.drives.side:
        raise RecordingError(
            f"{name} has torque from the {side} side of the gear, the model was fitted to the "
            f"{model.robot.drives.side} side. Fit a model to recordings of the same kind."
        )


def _gains(
    model: FittedModel, recording: Recording, name: str
) -> tuple[Gains, Array | None, list[str]]:
    """Drive gains K, their relative standard deviation where it is known, and warnings."""
    conditioning = model.training.conditioning
    known = conditioning.gain
    own = recording.gain
    lacking = own is None or not np.all(np.isfinite(own))
    if lacking and recording.signal_unit != "N m" and known is not None:
        given = Gains.given(known, conditioning.gain_std, "of the model")
        return given, conditioning.relative_gain_std, []
    gains = joint_gains([recording], None)[0][0]
    if gains.exact:
        return gains, None, []
    warnings = []
    if known is None:
        warnings.append(
            f"{name} is in amperes and the model was fitted to torques in N m: the drive "
            "gains are taken from the recording alone."
        )
    else:
        off = np.abs(gains.value / known - 1.0)
        j = int(off.argmax())
        if off[j] > _SAME_GAINS:
            warnings.append(
                f"the drive gain of joint {j + 1} is {gains.value[j]:.4g} in {name} and "
                f"{known[j]:.4g} in the model: the arm's own torque is then off by "
                f"{100 * off[j]:.1f} %. Use one column map for both."
            )
    return gains, np.abs(gains.std / gains.value), warnings
