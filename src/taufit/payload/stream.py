"""A recording as the stream of samples it was: clean, in newton metres, at its own time stamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.recording import Recording, in_order
from taufit.signals.clean import clean
from taufit.signals.drive_gains import Gains, joint_gains
from taufit.signals.resampling import interpolate

# Gains that differ from the model's by more than this make the arm's own torque another one.
_SAME_GAINS = 0.005

_COMMANDED = ("commanded_position", "commanded_velocity", "commanded_acceleration")


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Motion and joint torque, sample by sample.

    Attributes:
        time: From the first sample [s].
        position, velocity, torque: Of the joints; torque is nan where a value is missing.
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


def stream(model: FittedModel, recording: Recording) -> Stream:
    """A recording of the model's own robot, ready to be fed to a filter.

    A recording in amperes whose map gives no gains in numbers gets the model's, since it is the
    same robot. Velocities that were not measured are central differences of position.
    """
    name = recording.name
    robot = model.robot
    recording = in_order(recording, robot.joint_names, robot=robot.name)
    if recording.signed is not None and not np.all(recording.signed):
        raise RecordingError(
            f"{name} has torques without a sign; a payload cannot be distinguished from "
            "friction there. Record signed torques."
        )
    side = "link" if recording.torque_source == "joint_torque_sensor" else "motor"
    if side != robot.drives.side:
        raise RecordingError(
            f"{name} has torque from the {side} side of the gear, the model was fitted to the "
            f"{robot.drives.side} side. Fit a model to recordings of the same kind."
        )
    gains, gain_std, warnings = _gains(model, recording, name)
    cleaned = clean(recording, gains, extra=("temperature", *_COMMANDED))
    sections, start = [], -np.inf
    for section in cleaned.sections:
        # Time that jumps back is heard again from where it has not been yet.
        later = section.time > start
        if later.sum() > 1:
            sections.append((section, later))
            start = float(section.time[-1])
    time = np.concatenate([section.time[later] for section, later in sections])
    if len(time) < 20:
        raise RecordingError(f"{name} has fewer than 20 samples with rising time stamps.")
    columns = np.concatenate([section.columns[later] for section, later in sections])
    missing = np.concatenate([section.missing[later] for section, later in sections])
    velocity = np.concatenate([cleaned.velocity_of(section)[later] for section, later in sections])
    position, torque, warm = (
        cleaned.channel(channel, columns) for channel in ("position", "torque", "temperature")
    )
    assert position is not None and torque is not None
    if not cleaned.measured.all():
        warnings.append("velocity was not recorded: it is the derivative of position.")
    warnings += [str(finding) for finding in cleaned.findings if finding.kind == "outlier"]
    delay = model.training.conditioning.delay_s
    if delay:
        position, velocity = (interpolate(time, x, time - delay) for x in (position, velocity))
    commanded = [cleaned.channel(channel, columns) for channel in _COMMANDED]
    return Stream(
        time - time[0],
        position,
        velocity,
        # What was bridged because it was missing is no measurement.
        np.where(missing, np.nan, torque),
        warm,
        gain_std,
        None if any(x is None for x in commanded) else tuple(commanded),  # type: ignore[arg-type]
        float(time[0]),
        name,
        tuple(warnings),
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
