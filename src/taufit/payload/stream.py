"""A recording as the stream of samples it was: clean, in newton metres, at its own time stamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import RecordingError
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording, in_order
from taufit.signals.drive_gains import joint_gains
from taufit.signals.noise import noise_std, too_noisy
from taufit.signals.outliers import bridged, find_outliers

# Gains that differ from the model's by more than this make the arm's own torque another one.
_SAME_GAINS = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Motion and joint torque, sample by sample.

    Attributes:
        time: From the first sample [s].
        position, velocity, torque: Of the joints; nan where missing.
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


def stream(model: TorqueModel, recording: Recording) -> Stream:
    """A recording of the model's own robot, ready to be fed to a filter.

    A recording in amperes whose map gives no gains in numbers gets the model's, since it is the
    same robot. Velocities that were not measured are central differences of position.
    """
    name = str(recording.meta.get("file") or recording.meta.get("name") or "the recording")
    robot = model.robot
    try:
        recording = in_order(recording, robot.joint_names)
    except RecordingError:
        raise RecordingError(
            f"{name} has {recording.joints} joints and {robot.name} has {robot.joints}: this is a "
            "recording of another robot. Give the model of the robot that was recorded."
        ) from None
    if recording.signed is not None and not np.all(recording.signed):
        raise RecordingError(
            f"{name} has torques without a sign; a payload cannot be told from friction there. "
            "Record signed torques."
        )
    side = "link" if recording.torque_source == "joint_torque_sensor" else "motor"
    if side != robot.drives.side:
        raise RecordingError(
            f"{name} has torque from the {side} side of the gear, the model was fitted to the "
            f"{robot.drives.side} side. Fit a model to recordings of the same kind."
        )
    warnings: list[str] = []
    torque, gain_std = _torque(model, recording, name, warnings)
    time = np.asarray(recording.time, float)
    good = np.isfinite(time)
    # Several samples with one stamp: the first counts.
    first = np.concatenate(
        [[True], np.diff(np.maximum.accumulate(np.where(good, time, -np.inf))) > 0]
    )
    good &= first
    if np.count_nonzero(good) < 20:
        raise RecordingError(f"{name} has fewer than 20 samples with rising time stamps.")
    time = time[good]
    position = np.array(recording.position[good], float)
    torque = torque[good]
    if recording.velocity is None or np.isnan(recording.velocity).all(axis=0).any():
        velocity = np.gradient(position, time, axis=0)
        warnings.append("velocity was not recorded: it is the derivative of position.")
    else:
        velocity = np.array(recording.velocity[good], float)
    spikes = 0
    for values, least in ((position, 1e-3), (velocity, 5e-3), (torque, 0.0)):
        complete = np.isfinite(values).all(axis=1)
        if complete.sum() < 20:
            raise RecordingError(f"{name} has a channel without values. Check the column map.")
        found = np.zeros(values.shape, bool)
        found[complete] = find_outliers(values[complete], least=least)
        if found.any():
            spikes += int(found.sum())
            values[complete] = bridged(time[complete], values[complete], found[complete])
    whole = np.isfinite(position).all(axis=1) & np.isfinite(velocity).all(axis=1)
    worse = too_noisy(noise_std(velocity[whole]), noise_std(position[whole]))
    # As in the fit: position says more about motion than such a velocity does.
    velocity[:, worse] = np.gradient(position[:, worse], time, axis=0)
    if spikes:
        warnings.append(f"{spikes} single spikes of {name} were bridged.")
    delay = float(model.meta.get("conditioning", {}).get("delay_s") or 0.0)
    if delay:
        position, velocity = (
            np.stack([np.interp(time - delay, time, c) for c in x.T], 1)
            for x in (position, velocity)
        )
    parts = (
        recording.commanded_position,
        recording.commanded_velocity,
        recording.commanded_acceleration,
    )
    commanded = None
    if all(part is not None for part in parts):
        commanded = tuple(np.asarray(part, float)[good] for part in parts)
    warm = recording.temperature
    return Stream(
        time - time[0],
        position,
        velocity,
        torque,
        None if warm is None else np.asarray(warm, float)[good],
        gain_std,
        commanded,  # type: ignore[arg-type]
        float(time[0]),
        name,
        tuple(warnings),
    )


def _torque(
    model: TorqueModel, recording: Recording, name: str, warnings: list[str]
) -> tuple[Array, Array | None]:
    """tau = C' (K s), and the relative standard deviation of K where it is known."""
    conditioning = model.meta.get("conditioning", {})
    known = conditioning.get("gain")
    own = recording.gain
    lacking = own is None or not np.all(np.isfinite(own))
    amperes = recording.signal_unit != "N m"
    if lacking and amperes and known is not None:
        value, std = np.array(known, float), conditioning.get("gain_std")
        relative = None if std is None else np.abs(np.array(std, float) / value)
    else:
        gains = joint_gains([recording], None)[0][0]
        value = gains.value
        relative = None if gains.exact else np.abs(gains.std / gains.value)
        if known is not None and not gains.exact:
            off = np.abs(value / np.array(known, float) - 1.0)
            if off.max() > _SAME_GAINS:
                j = int(off.argmax())
                warnings.append(
                    f"the drive gain of joint {j + 1} is {value[j]:.4g} in {name} and "
                    f"{known[j]:.4g} in the model: the arm's own torque is then off by "
                    f"{100 * off[j]:.1f} %. Use one column map for both."
                )
        if known is None and not gains.exact:
            warnings.append(
                f"{name} is in amperes and the model was fitted to torques in N m: the drive "
                "gains are taken from the recording alone."
            )
    torque = np.asarray(recording.signal, float) * value
    if recording.coupling is not None:
        torque = torque @ np.asarray(recording.coupling, float)
    return torque, relative
