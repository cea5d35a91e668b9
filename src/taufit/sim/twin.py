"""Simulated robot: MuJoCo dynamics, a controller that follows a motion, and real-world effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.excitation import Motion
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.recording import Recording
from taufit.robot import Robot
from taufit.sim import sensor_model
from taufit.sim.controller import Controller
from taufit.sim.effects import DriveFriction, Effects, per_joint
from taufit.sim.effects_check import require_valid_effects
from taufit.sim.effects_file import effects_to_dict
from taufit.sim.payload import CarriedPayload, payload_timeline, require_valid_payload
from taufit.sim.plant import SETTLE_S, OperatingRange, Plant, PlantStart
from taufit.sim.simulation_loop import OUTPUTS, TICK_S

if TYPE_CHECKING:
    from taufit.sim.stepped_twin import SteppedTwin

_CHUNK = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class TrueMotion:
    """True states of the robot at the sampling times, before measurement.

    Attributes:
        time: True sampling times [s].
        position, velocity, acceleration: States of the links.
        motor_torque: Motor torque, at the joint side of the gear [N m].
        link_torque: Torque on the links, behind gear, friction and rotor [N m].
        friction: Friction, ripple and offset [N m].
        temperature: Joint temperatures [degC].
        drive_position, drive_velocity: Motor side of the joint spring, if there is one.
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    motor_torque: Float[Array, "n j"]
    link_torque: Float[Array, "n j"]
    friction: Float[Array, "n j"]
    temperature: Float[Array, "n j"]
    drive_position: Float[Array, "n j"]
    drive_velocity: Float[Array, "n j"]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRun:
    """Result of a simulated run.

    Attributes:
        recording: Recording as a real robot would give it.
        trace: True states at every sample.
        truth: Ground truth: parameters, effects, gains, payload; plain data for the sidecar.
    """

    recording: Recording
    trace: TrueMotion
    truth: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """Simulated robot.

    Attributes:
        robot: Kinematics, mounting, drives and the true inertial parameters.
        effects: Effects on top of the rigid bodies; default: all off.
        controller: Controller that follows the motion.
        rate_hz: Rows per second, up to 1000 [Hz].
        temperature: Joint temperature without thermal effect [degC].
        name: Name of the preset, for the sidecar.

    Example:
        >>> import taufit
        >>> from taufit.sim import random_fourier
        >>> robot = taufit.read_robot("ur3e")
        >>> taufit.Twin.typical(robot).run(random_fourier(robot, seed=0)).recording.joints
        6
    """

    robot: Robot
    effects: Effects = field(default_factory=Effects)
    controller: Controller = field(default_factory=Controller)
    rate_hz: float = 500.0
    temperature: float = 30.0
    name: str = ""

    def __repr__(self) -> str:
        name = f"{self.robot.name} ({self.name})" if self.name else self.robot.name
        return f"Twin({name}: {self.robot.joints} joints, {self.rate_hz:g} Hz)"

    @classmethod
    def from_model(
        cls, model: FittedModel, effects: Effects | None = None, **settings: Any
    ) -> Twin:
        """Simulated robot with the parameters of a fitted model.

        The model's friction, offset and temperature dependence replace those of `effects`.
        """
        require_fitted(model, "simulate an arm")
        parts = model.layout.split(np.asarray(model.values, float))
        robot = model.robot.with_parameters(parts.links)
        if model.has("rotor"):
            robot = robot.with_rotor_inertias(parts.rotors)
        effects = effects or Effects()
        effects = replace(
            effects,
            friction=DriveFriction(
                model.term_sum,
                parts.drive,
                model.joint_shape if model.term_sum.shapes else None,
                parts.offsets,
            ),
        )
        if effects.thermal is not None:
            thermal = replace(effects.thermal, coulomb_slope=0.0, viscous_slope=0.0)
            effects = replace(effects, thermal=thermal)
        return cls(robot, effects, **settings)

    @classmethod
    def typical(cls, robot: Robot, **settings: Any) -> Twin:
        """Simulated robot with rotor inertia, friction and noise typical of its size."""
        from taufit.sim.preset import typical_effects, typical_rotor

        arm = typical_rotor(robot)
        return cls(arm, typical_effects(arm), **settings)

    def run(
        self,
        motion: Motion,
        *,
        seed: int = 0,
        payload: CarriedPayload | tuple[CarriedPayload, ...] = (),
        rate_hz: float | None = None,
        rest: tuple[float, float] = (0.5, 0.5),
        compiled: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> SimulatedRun:
        """Play a motion and record it.

        Args:
            motion: Motion to follow. One that does not start at rest begins in motion.
            seed: Seed of all random values; the same seed gives the same recording.
            payload: Payload from the start, or picked and dropped on the way.
            rate_hz: Mean number of rows per second [Hz]; None: that of the twin.
            rest: Standstill recorded before and after the motion [s].
            compiled: Use the compiled loop if available.
            progress: Called repeatedly with the fraction of the run done.
        """
        payloads = (payload,) if isinstance(payload, CarriedPayload) else tuple(payload)
        simulation = _Simulation(self, motion, seed, payloads, rate_hz, rest)
        return simulation.run(compiled, progress)

    def start(
        self,
        home: Float[Array, " j"],
        *,
        seed: int = 0,
        payload: CarriedPayload | tuple[CarriedPayload, ...] = (),
        rate_hz: float | None = None,
        envelope: OperatingRange | None = None,
    ) -> SteppedTwin:
        """Start the robot at rest in a pose, to be commanded step by step.

        Args:
            home: Start pose.
            seed: Seed of all random values, as for `run`.
            payload: Payload from the start, or picked and dropped on the way.
            rate_hz: Control steps per second [Hz]; the period is a multiple of 1 ms.
            envelope: Expected operating range; None: the limits about `home`.
        """
        from taufit.sim.stepped_twin import SteppedTwin

        payloads = (payload,) if isinstance(payload, CarriedPayload) else tuple(payload)
        return SteppedTwin(self, home, seed, payloads, rate_hz or self.rate_hz, envelope)


class _Simulation:
    """One run: checks, plant and measurement."""

    def __init__(
        self,
        twin: Twin,
        motion: Motion,
        seed: int,
        payloads: tuple[CarriedPayload, ...],
        rate_hz: float | None,
        standstill: tuple[float, float],
    ) -> None:
        self.twin, self.motion, self.seed, self.payloads = twin, motion, seed, payloads
        self.rate_hz = twin.rate_hz if rate_hz is None else rate_hz
        robot = twin.robot
        self.joints = robot.joints
        if motion.joints != self.joints:
            raise TaufitError(
                f"the motion moves {motion.joints} joints; {robot.name} has {self.joints}."
            )
        if not 0.0 < self.rate_hz <= 1.0 / TICK_S:
            raise TaufitError(f"a rate of {self.rate_hz:g} Hz is not possible: up to 1000 Hz.")
        if min(standstill) < 0.0 or not np.all(np.isfinite(standstill)):
            raise TaufitError("rest before and after the motion is given in seconds, not negative.")
        require_valid_effects(twin.effects, self.joints)
        self.timing = twin.effects.timing
        if rate_hz is not None and self.timing is not None:
            self.timing = self.timing.at_rate(rate_hz)
        require_valid_payload(robot, payloads)
        self.timeline = payload_timeline(payloads)
        ends = motion.at(np.array([0.0, motion.duration]))
        moving = np.abs(ends[1]).max(1) > 1e-3
        self.starts_in_motion = bool(moving[0])
        self.rest_before = 0.0 if moving[0] else standstill[0]
        self.rest_after = 0.0 if moving[1] else standstill[1]
        # A motion that begins in motion starts with the reference already moving.
        self.lead_time = twin.controller.delay if self.starts_in_motion else 0.0
        self.duration = self.rest_before + motion.duration + self.rest_after - self.lead_time
        self._check_limits()
        q, v, a = (x[0] for x in motion.at(np.array([0.0 if self.starts_in_motion else -SETTLE_S])))
        start = PlantStart(q, v, a, True, 0) if self.starts_in_motion else PlantStart(q, v, a)
        envelope = OperatingRange.of_motion(motion, self.top_speed)
        self.plant = Plant(
            robot,
            twin.effects,
            twin.controller,
            envelope,
            start,
            self.timeline,
            seed,
            twin.temperature,
        )
        self._check_holding(envelope)

    def _check_limits(self) -> None:
        limits, names = self.twin.robot.limits, self.twin.robot.joint_names
        time = np.arange(0.0, self.motion.duration + TICK_S, 2 * TICK_S).clip(
            0, self.motion.duration
        )
        q, v, a = self.motion.at(time)
        if not all(np.all(np.isfinite(x)) for x in (q, v, a)):
            raise InfeasibleError("the motion has a position or derivative that is not finite.")
        tolerance = 1e-6
        for quantity, unit, value, low, high in (
            ("position", "rad", q, limits.lower, limits.upper),
            ("velocity", "rad/s", v, -limits.velocity, limits.velocity),
            ("acceleration", "rad/s^2", a, -limits.acceleration, limits.acceleration),
        ):
            excess = np.maximum(value - high, low - value)
            if excess.max() > tolerance:
                row, joint = np.unravel_index(int(excess.argmax()), excess.shape)
                raise InfeasibleError(
                    f"the motion leaves the limits of {names[joint]}: {quantity} "
                    f"{value[row, joint]:.4g} {unit} at {time[row]:.3f} s, allowed "
                    f"{low[joint]:.4g} to {high[joint]:.4g}. Plan one within limits with "
                    "`taufit design`."
                )
        self.top_speed = np.abs(v).max(0)

    def _check_holding(self, envelope: OperatingRange) -> None:
        """InfeasibleError for a payload that the drives cannot hold along the motion."""
        time = np.linspace(0.0, self.motion.duration, len(envelope.position))
        limit = self.twin.robot.limits.torque
        zeros = 0.0 * envelope.position
        weight = self.plant.loaded_arm.torque(envelope.position, zeros, zeros)
        holding = np.abs(weight + self.plant.compensator_torque(envelope.position))
        if np.any(holding > limit):
            row, joint = np.unravel_index(int((holding / limit).argmax()), holding.shape)
            heaviest = max(float(total[0]) for _, total in self.timeline)
            raise InfeasibleError(
                f"{self.twin.robot.joint_names[joint]} needs {holding[row, joint]:.4g} N m to hold "
                f"the arm and its payload of {heaviest:.4g} kg at {time[row]:.2f} s of the "
                f"motion; its limit is {limit[joint]:.4g} N m. Use a lighter payload or another "
                "motion."
            )

    def _reference(self, ticks: Int[Array, " n"]) -> list[Float[Array, "n j"]]:
        """Position, velocity and feed-forward reference of the controller at some ticks."""
        delay = self.twin.controller.delay
        q, v, a = self.motion.at(ticks * TICK_S - self.rest_before + self.lead_time - delay)
        return [np.ascontiguousarray(q), np.ascontiguousarray(v), self.plant.feedforward(q, v, a)]

    def run(self, compiled: bool, progress: Callable[[float], None] | None) -> SimulatedRun:
        ticks = sensor_model.sampling_ticks(self.duration, self.rate_hz, self.timing, self.seed)
        states_by_name: dict[str, list[Float[Array, "n j"]]] = {name: [] for name in OUTPUTS}
        tick, end = self.plant.tick, int(ticks[-1]) + 1
        while tick < end:
            steps = min(_CHUNK, end - tick)
            kept_ticks = (ticks[(ticks >= tick) & (ticks < tick + steps)] - tick).astype(np.int64)
            q, v, forward = self._reference(np.arange(tick, tick + steps))
            states = self.plant.advance(q, v, forward, kept_ticks, compiled=compiled)
            for name in OUTPUTS:
                states_by_name[name].append(states[name])
            tick += steps
            if progress is not None:
                progress(max(tick, 0) / end)
        trace = TrueMotion(
            ticks * TICK_S,
            **{name: np.concatenate(parts) for name, parts in states_by_name.items()},
        )
        not_finite = [name for name in OUTPUTS if not np.all(np.isfinite(getattr(trace, name)))]
        if not_finite:
            raise InfeasibleError(
                f"the simulation gave numbers that are not finite ({', '.join(not_finite)}); "
                "nothing was "
                "written. Check the effects' settings."
            )
        run = self._measure(ticks, trace)
        run.truth["housing_end"] = self.plant.arrays["housing"].tolist()
        return run

    def _signal(
        self, ticks: Int[Array, " n"], trace: TrueMotion, side: str, gain: Float[Array, " j"]
    ) -> Float[Array, "n j"]:
        """Torque or current with measurement errors."""
        sensing = self.twin.effects.sensing
        if side not in ("motor", "link"):
            raise TaufitError(f"torque is taken on the motor or the link side, not {side!r}.")
        torque = trace.motor_torque
        if side == "link":
            share = sensing.friction_share if sensing is not None else 0.0
            torque = trace.link_torque + share * trace.friction
        torque = torque + sensor_model.torque_noise(sensing, ticks, torque, self.seed)
        if side == "motor":
            # tau = C' tau_m, so the motors give C'^-1 tau.
            torque = np.linalg.solve(self.twin.robot.drives.coupling.T, torque.T).T
        signal = torque / gain
        if sensing is None:
            return signal
        signal = sensor_model.quantise(signal, per_joint(sensing.quantum, self.joints, "quantum"))
        return np.abs(signal) if sensing.absolute else signal

    def _measure(self, ticks: Int[Array, " n"], trace: TrueMotion) -> SimulatedRun:
        twin, seed, joints = self.twin, self.seed, self.joints
        effects, robot = twin.effects, twin.robot
        sensing, elastic, thermal = effects.sensing, effects.elasticity, effects.thermal
        drives = robot.drives
        side = (sensing.side if sensing is not None else "") or drives.side
        ratio = sensor_model.true_gain_ratio(sensing, joints, seed)
        gain = drives.gain if side == "motor" else np.ones(joints)
        signal = self._signal(ticks, trace, side, gain * ratio)
        motor_encoder = elastic is None or elastic.encoder == "motor"
        position, velocity = sensor_model.measure_encoder(
            effects.encoder,
            trace.drive_position if motor_encoder else trace.position,
            trace.drive_velocity if motor_encoder else trace.velocity,
            seed,
        )
        commanded = self.motion.at(ticks * TICK_S - self.rest_before + self.lead_time)
        target = self.plant.target_torque(*commanded)
        current = target
        if effects.friction is not None:
            current = target + twin.controller.friction * self.plant.friction_compensation(
                commanded[1]
            )
        in_amperes = side == "motor" and bool(np.any(drives.gain != 1.0))
        temperature = None
        if thermal is not None:
            step = np.full(joints, thermal.resolution)
            temperature = sensor_model.quantise(trace.temperature, step)
        rows = sensor_model.recorded_rows(len(ticks), effects.timing, seed)
        stamps = sensor_model.time_stamps(ticks, effects.timing, seed)
        # The recording declares the setting of the controller, not the truth.
        declared = None if self.payloads else 0.0
        if len(self.timeline) == 1 and twin.controller.knows_payload:
            declared = float(self.timeline[0][1][0])
        recording = Recording(
            time=stamps[rows],
            position=position[rows],
            signal=signal[rows],
            velocity=None if velocity is None else velocity[rows],
            acceleration=(
                trace.acceleration[rows]
                if effects.encoder is not None and effects.encoder.acceleration
                else None
            ),
            signal_unit="A" if in_amperes else "N m",
            torque_source=(
                "joint_torque_sensor"
                if side == "link"
                else "motor_current"
                if in_amperes
                else "motor_torque"
            ),
            signed=np.full(joints, not (sensing is not None and sensing.absolute)),
            gain=gain.copy(),
            gain_std=drives.gain_std.copy() if side == "motor" else np.zeros(joints),
            coupling=None if np.array_equal(drives.coupling, np.eye(joints)) else drives.coupling,
            commanded_position=commanded[0][rows],
            commanded_velocity=commanded[1][rows],
            commanded_acceleration=commanded[2][rows],
            target_current=(current / drives.gain)[rows] if in_amperes else None,
            target_torque=target[rows],
            temperature=None if temperature is None else temperature[rows],
            payload=declared,
            meta={
                "robot": robot.name,
                "joint_names": list(robot.joint_names),
                "mounting": list(robot.mounting),
                "rate_hz": self.rate_hz,
                "source": "taufit simulate",
            },
        )
        return SimulatedRun(recording, trace, self._truth(trace, ratio, side))

    def _truth(self, trace: TrueMotion, ratio: Float[Array, " j"], side: str) -> dict[str, Any]:
        twin = self.twin
        reference = self.motion.at(
            trace.time - self.rest_before + self.lead_time - twin.controller.delay
        )[0]
        error = trace.drive_position - reference
        return {
            "preset": twin.name,
            "seed": self.seed,
            "robot": twin.robot.to_dict(),
            "rotor_inertia": self.plant.rotor.tolist(),
            "effects": effects_to_dict(twin.effects),
            "friction_scale": self.plant.scale.tolist(),
            "presliding": self.plant.slip.tolist() if twin.effects.friction is not None else None,
            "gain_ratio": ratio.tolist(),
            "torque_side": side,
            "payload": [
                {
                    "from": None if not np.isfinite(time) else time,
                    "parameters": total.tolist(),
                }
                for time, total in self.timeline
            ],
            "controller": {
                "bandwidth_hz": np.asarray(twin.controller.bandwidth_hz).tolist(),
                "delay": twin.controller.delay,
                "stiffness": self.plant.gains[0].tolist(),
                "damping": self.plant.gains[1].tolist(),
            },
            "tracking_error_rms": np.sqrt((error**2).mean(0)).tolist(),
            "temperature_end": trace.temperature[-1].tolist(),
        }


__all__ = ["CarriedPayload", "SimulatedRun", "TrueMotion", "Twin"]
