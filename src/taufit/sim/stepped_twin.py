"""Simulated robot under external control: one control step in, one measured sample out.

With the commands of a motion it gives, sample by sample, the recording of `Twin.run` with the same
seed and operating range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.sim import sensor_model
from taufit.sim.effects import per_joint
from taufit.sim.payload import CarriedPayload, payload_timeline, require_valid_payload
from taufit.sim.plant import SETTLE_S, OperatingRange, Plant, PlantStart
from taufit.sim.simulation_loop import TICK_S

if TYPE_CHECKING:
    from taufit.sim.twin import Twin


@dataclass(frozen=True, slots=True, eq=False)
class ControlSample:
    """Measurement at the beginning of a control step.

    Attributes:
        time: Time since the start [s].
        position, velocity: Encoder values.
        signal: Torque channel, in the unit of the recording.
        temperature: Joint temperatures [degC].
        torque: True motor torque [N m].
        acceleration: True acceleration [rad/s^2].
        target_torque: Torque of the controller's model for the command [N m].
        target_current: Torque with friction compensation, in the unit of the recording.
    """

    time: float
    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    signal: Float[Array, " j"]
    temperature: Float[Array, " j"]
    torque: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    target_torque: Float[Array, " j"]
    target_current: Float[Array, " j"]


class SteppedTwin:
    """Simulated robot that is commanded step by step; made by `Twin.start`."""

    def __init__(
        self,
        twin: Twin,
        home: Float[Array, " j"],
        seed: int,
        payloads: tuple[CarriedPayload, ...],
        rate_hz: float,
        envelope: OperatingRange | None,
    ) -> None:
        robot, effects = twin.robot, twin.effects
        home = np.asarray(home, float)
        if home.shape != (robot.joints,) or not np.all(np.isfinite(home)):
            raise TaufitError(f"a pose of {robot.name} has {robot.joints} finite numbers.")
        self.ticks = round(1.0 / (rate_hz * TICK_S))
        if self.ticks < 1 or abs(self.ticks * TICK_S * rate_hz - 1.0) > 1e-9:
            raise TaufitError(
                f"a control step of {1e3 / rate_hz:g} ms is not possible: the twin moves in whole "
                "milliseconds (1000, 500, 250, 125, 100 Hz, ...)."
            )
        require_valid_payload(robot, payloads)
        self.plant = Plant(
            robot,
            effects,
            twin.controller,
            envelope or OperatingRange.of_limits(robot, home),
            PlantStart.at_rest(home),
            payload_timeline(payloads),
            seed,
            twin.temperature,
        )
        self.twin, self.rate_hz = twin, rate_hz
        self.sensors = Sensors(twin, seed)
        delay = round(twin.controller.delay / TICK_S)
        zeros = np.zeros((delay, robot.joints))
        forward = self.plant.feedforward(home[None], 0.0 * home[None], 0.0 * home[None])
        self._delayed = [np.tile(home, (delay, 1)), zeros, np.repeat(forward, delay, 0)]
        settle = np.tile(home, (round(SETTLE_S / TICK_S), 1))
        self._keep = np.zeros(1, np.int64)
        self.plant.advance(settle, 0 * settle, np.repeat(forward, len(settle), 0), self._keep[:0])

    @property
    def time(self) -> float:
        """Time of the next step [s]."""
        return self.plant.tick * TICK_S

    def step(
        self,
        position: Float[Array, "t j"],
        velocity: Float[Array, "t j"],
        acceleration: Float[Array, "t j"],
    ) -> ControlSample:
        """Command one control step, a row per millisecond; returns the sample at its beginning."""
        plant, robot = self.plant, self.twin.robot
        tick = plant.tick
        torque = plant.target_torque(position, velocity, acceleration)
        forward = torque
        if self.twin.effects.friction is not None:
            forward = torque + self.twin.controller.friction * plant.friction_compensation(velocity)
        references = [
            np.concatenate([old, new])
            for old, new in zip(self._delayed, (position, velocity, forward), strict=True)
        ]
        count = len(position)
        self._delayed = [line[count:] for line in references]
        states = plant.advance(
            references[0][:count], references[1][:count], references[2][:count], self._keep
        )
        row = {name: values[0] for name, values in states.items()}
        q, v, signal, temperature = self.sensors.read(tick, row)
        gain = robot.drives.gain if self.sensors.side == "motor" else np.ones(robot.joints)
        return ControlSample(
            time=tick * TICK_S,
            position=q,
            velocity=v,
            signal=signal,
            temperature=temperature,
            torque=row["motor_torque"],
            acceleration=row["acceleration"],
            target_torque=torque[0],
            target_current=forward[0] / gain,
        )

    def set_payload(self, payload: CarriedPayload | None) -> None:
        """Set the payload of the last link from now on, or None."""
        self.plant.set_payload(np.zeros(10) if payload is None else payload.parameters)


class Sensors:
    """Sensor model applied row by row, with the same random streams as a complete run."""

    def __init__(self, twin: Twin, seed: int) -> None:
        robot, effects = twin.robot, twin.effects
        self.twin, joints = twin, robot.joints
        sensing, encoder = effects.sensing, effects.encoder
        if sensing is not None and sensing.relative:
            raise TaufitError(
                "relative noise is a share of a whole run's torque, which is not known while it "
                "runs; give `white` in N m instead."
            )
        self.side = (sensing.side if sensing is not None else "") or robot.drives.side
        if self.side not in ("motor", "link"):
            raise TaufitError(f"torque is taken on the motor or the link side, not {self.side!r}.")
        ratio = sensor_model.true_gain_ratio(sensing, joints, seed)
        self.gain = ratio * (robot.drives.gain if self.side == "motor" else 1.0)
        self.sensing, self.encoder = sensing, encoder
        zero = np.zeros(joints)
        self.white = zero if sensing is None else per_joint(sensing.white, joints, "white")
        self.coloured = zero if sensing is None else per_joint(sensing.coloured, joints, "coloured")
        self.quantum = zero if sensing is None else per_joint(sensing.quantum, joints, "quantum")
        self.encoder_noise, self.encoder_steps = np.zeros((2, joints)), np.zeros((2, joints))
        if encoder is not None:
            self.encoder_noise[0] = per_joint(encoder.noise, joints, "encoder noise")
            self.encoder_noise[1] = per_joint(encoder.velocity_noise, joints, "velocity noise")
            self.encoder_steps[0] = per_joint(encoder.quantum, joints, "encoder quantum")
            self.encoder_steps[1] = per_joint(encoder.velocity_quantum, joints, "velocity quantum")
        self.noise, self.last_tick = zero, 0
        self.is_first = True
        self.streams = {
            name: sensor_model.random_stream(seed, name)
            for name in ("white", "coloured", "encoder", "velocity")
        }
        self.motor_from_joint = np.linalg.inv(robot.drives.coupling.T)
        self.is_coupled = not np.array_equal(robot.drives.coupling, np.eye(joints))

    def read(
        self, tick: int, row: dict[str, Float[Array, " j"]]
    ) -> tuple[Float[Array, " j"], Float[Array, " j"], Float[Array, " j"], Float[Array, " j"]]:
        """Position, velocity, torque channel and temperature of one state."""
        elastic, thermal = self.twin.effects.elasticity, self.twin.effects.thermal
        side = "drive_" if elastic is None or elastic.encoder == "motor" else ""
        q, v = self._measure_encoder(row[f"{side}position"], row[f"{side}velocity"])
        temperature = row["temperature"]
        if thermal is not None and thermal.resolution > 0.0:
            temperature = np.round(temperature / thermal.resolution) * thermal.resolution
        return q, v, self._signal(tick, row), temperature

    def _signal(self, tick: int, row: dict[str, Float[Array, " j"]]) -> Float[Array, " j"]:
        torque = row["motor_torque"]
        sensing = self.sensing
        if self.side == "link":
            share = sensing.friction_share if sensing is not None else 0.0
            torque = row["link_torque"] + share * row["friction"]
        if np.any(self.white):
            torque = torque + self.white * self.streams["white"].standard_normal(len(torque))
        if np.any(self.coloured) and sensing is not None:
            drive = self.streams["coloured"].standard_normal(len(torque))
            if self.is_first:
                self.noise = drive
            else:
                elapsed_ticks = tick - self.last_tick
                correlation = np.exp(-2.0 * np.pi * sensing.corner_hz * TICK_S * elapsed_ticks)
                self.noise = correlation * self.noise + np.sqrt(1.0 - correlation**2) * drive
            torque = torque + self.coloured * self.noise
        self.is_first, self.last_tick = False, tick
        if self.side == "motor" and self.is_coupled:
            torque = self.motor_from_joint @ torque
        signal = torque / self.gain
        if np.any(self.quantum):
            signal = sensor_model.quantise(signal, self.quantum)
        return np.abs(signal) if sensing is not None and sensing.absolute else signal

    def _measure_encoder(
        self, q: Float[Array, " j"], v: Float[Array, " j"]
    ) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        if self.encoder is None:
            return q, v
        joints = len(q)
        q = q + self.encoder_noise[0] * self.streams["encoder"].standard_normal(joints)
        is_dead = np.abs(v) < self.encoder.velocity_dead
        v = v + self.encoder_noise[1] * self.streams["velocity"].standard_normal(joints)
        if self.encoder_steps.any():
            q = sensor_model.quantise(q, self.encoder_steps[0])
            v = sensor_model.quantise(v, self.encoder_steps[1])
        return q, np.where(is_dead, 0.0, v)
