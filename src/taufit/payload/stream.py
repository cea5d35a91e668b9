"""A recording as a stream of conditioned samples: torque in N m, at the recorded time stamps.

The rows pass the same stream conditioning as the samples of a live robot, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import stream_conditioner
from taufit.recording import Recording, reorder_joints
from taufit.signals.cleaning import require_valid_channels
from taufit.signals.drive_gains import DriveGains, joint_gains
from taufit.signals.outliers import interpolate_outliers
from taufit.signals.stream import CleanSample, StreamConditioner

# Largest relative difference of drive gains between recording and model without a warning.
_GAIN_TOLERANCE = 0.005

_COMMANDED = ("commanded_position", "commanded_velocity", "commanded_acceleration")


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Motion and joint torque of a recording, sample by sample.

    Attributes:
        time: Time from the first sample [s].
        position, velocity, torque: Joint positions, velocities and torques.
        temperature: Joint temperatures [degC], or None.
        gain_std: Relative standard deviation of the drive gains; None if unknown.
        commanded: Commanded position, velocity and acceleration, if all were recorded.
        start: First time stamp [s].
        name: Name of the recording.
        warnings: Messages for the user.
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
        temperature = self.temperature
        for i in range(len(self.time)):
            yield (
                float(self.time[i]),
                self.position[i],
                self.velocity[i],
                self.torque[i],
                None if temperature is None else temperature[i],
            )


@dataclass(frozen=True, slots=True, eq=False)
class RecordingPlayback:
    """A recording of the model's robot, prepared for playback row by row.

    Attributes:
        recording: The recording, joints in the robot's order.
        conditioner: Stream conditioner for its torque channel.
        gain_std: Relative standard deviation of the drive gains; None if unknown.
        name: Name of the recording.
        warnings: Messages for the user.
    """

    recording: Recording
    conditioner: StreamConditioner
    gain_std: Float[Array, " j"] | None
    name: str
    warnings: tuple[str, ...]

    def rows(
        self,
    ) -> Iterator[tuple[float, Array, Array | None, Array, Array | None, Array | None]]:
        """Time, position, velocity, torque channel, temperature, commanded velocity as recorded."""
        recording = self.recording
        velocity, temperature, commanded_velocity = (
            recording.velocity,
            recording.temperature,
            recording.commanded_velocity,
        )
        for i, time in enumerate(np.asarray(recording.time, float)):
            yield (
                float(time),
                recording.position[i],
                None if velocity is None else velocity[i],
                recording.signal[i],
                None if temperature is None else temperature[i],
                None if commanded_velocity is None else commanded_velocity[i],
            )


def playback(model: FittedModel, recording: Recording) -> RecordingPlayback:
    """Prepare a recording for playback; raises if it is not of the model's robot and drives.

    A recording in amperes without numeric gains in its column map gets the model's gains.
    """
    name, robot = recording.name, model.robot
    recording = reorder_joints(recording, robot.joint_names, robot=robot.name)
    if recording.signed is not None and not np.all(recording.signed):
        raise RecordingError(
            f"{name} has torques without a sign. `taufit payload` finds the signs of a whole "
            "recording with its payload; a template, or samples one by one, need signed torques."
        )
    require_side(model, recording.torque_source, name)
    gains, gain_std, warnings = _gains(model, recording, name)
    require_valid_channels(recording, ("temperature", *_COMMANDED))
    conditioner = stream_conditioner(model, gain=gains.value, coupling=recording.coupling)
    forced = [
        f"the model was fitted by force although {text.rstrip('.')}. What it says about payloads "
        "and contacts may be far off."
        for text in model.training.contradictions
    ]
    return RecordingPlayback(recording, conditioner, gain_std, name, (*forced, *warnings))


def stream(model: FittedModel, recording: Recording) -> Stream:
    """Condition a recording of the model's robot sample by sample, for a payload filter.

    Velocities that were not measured are central differences of position.
    """
    source = playback(model, recording)
    conditioner, name, recording = source.conditioner, source.name, source.recording
    conditioned: list[CleanSample] = []
    for row in source.rows():
        conditioned += conditioner.push(*row)
    conditioned += conditioner.flush()
    if len(conditioned) < 20:
        raise RecordingError(f"{name} has fewer than 20 samples with rising time stamps.")
    warnings = list(source.warnings)
    if not conditioner.velocity_measured.all():
        warnings.append("velocity was not recorded: it is the derivative of position.")
    if conditioner.counts.spike:
        warnings.append(
            f"{conditioner.counts.spike} samples of {name} have single spikes far from their "
            "neighbours: left out"
        )
    time = np.array([sample.time for sample in conditioned])
    temperature = None
    if recording.temperature is not None:
        temperature = np.array([sample.temperature for sample in conditioned])
    return Stream(
        time - time[0],
        np.array([sample.position for sample in conditioned]),
        np.array([sample.velocity for sample in conditioned]),
        np.array([sample.torque for sample in conditioned]),
        temperature,
        source.gain_std,
        _commands_at(recording, np.array([sample.number for sample in conditioned])),
        float(time[0]),
        name,
        tuple(warnings),
    )


def _commands_at(recording: Recording, rows: Int[Array, " m"]) -> tuple[Array, Array, Array] | None:
    """Commanded position, velocity and acceleration at rows, interpolated over gaps; or None."""
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
    """Raise if torque is from the other side of the gear than in the model's training data."""
    side = "link" if torque_source == "joint_torque_sensor" else "motor"
    if side != model.robot.drives.side:
        raise RecordingError(
            f"{name} has torque from the {side} side of the gear, the model was fitted to the "
            f"{model.robot.drives.side} side. Fit a model to recordings of the same kind."
        )


def _gains(
    model: FittedModel, recording: Recording, name: str
) -> tuple[DriveGains, Array | None, list[str]]:
    """Drive gains K, their relative standard deviation (None if exact), and warnings."""
    conditioning = model.training.conditioning
    model_gain = conditioning.gain
    recorded_gain = recording.gain
    is_missing = recorded_gain is None or not np.all(np.isfinite(recorded_gain))
    if is_missing and recording.signal_unit != "N m" and model_gain is not None:
        model_gains = DriveGains.from_values(model_gain, conditioning.gain_std, "of the model")
        return model_gains, conditioning.relative_gain_std, []
    gains = joint_gains([recording], None)[0][0]
    if gains.is_torque:
        return gains, None, []
    warnings = []
    if model_gain is None:
        warnings.append(
            f"{name} is in amperes and the model was fitted to torques in N m: the drive "
            "gains are taken from the recording alone."
        )
    else:
        deviation = np.abs(gains.value / model_gain - 1.0)
        j = int(deviation.argmax())
        if deviation[j] > _GAIN_TOLERANCE:
            warnings.append(
                f"the drive gain of joint {j + 1} is {gains.value[j]:.4g} in {name} and "
                f"{model_gain[j]:.4g} in the model: the arm's own torque is then off by "
                f"{100 * deviation[j]:.1f} %. Use one column map for both."
            )
    return gains, np.abs(gains.std / gains.value), warnings
