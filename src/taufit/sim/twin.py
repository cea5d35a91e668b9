"""A simulated arm: MuJoCo's bodies, a controller that follows a motion, and what hurts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.errors import InfeasibleError, TaufitError
from taufit.excitation import Motion
from taufit.friction import NoFriction, Presliding
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording
from taufit.robot import Robot
from taufit.sim import measure
from taufit.sim.controller import Controller, check_stable, effective_inertia
from taufit.sim.effects import Effects, Elasticity, Friction, check_effects, per_joint
from taufit.sim.friction_table import (
    WARMTH,
    FrictionTable,
    no_friction,
    slow_parts,
    steady_friction,
    tabulate,
)
from taufit.sim.loop import OUTPUTS, TICK, advance, views
from taufit.sim.mujoco_arm import MujocoArm, build_arm, principal
from taufit.sim.payload import Carried, check_payload, timeline

_CHUNK = 20_000
_SETTLE = 0.4
# Speed below which a controller does not trust the sign of its velocity [rad/s].
_STANDSTILL = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What the arm really did at the instants of the rows, before anything was measured.

    Attributes:
        time: True instants [s].
        position, velocity, acceleration: Of the links.
        motor_torque: That the motors gave, at the joint side of the gear.
        link_torque: Behind gear, friction and rotor: what moves the links.
        friction: Friction, ripple and offset.
        temperature: Of the joints [degC].
        drive_position, drive_velocity: Before the spring, where there is one.
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
class Run:
    """One simulated run.

    Attributes:
        recording: What a robot's file would say.
        trace: What really happened, sample by sample.
        truth: What was true: parameters, effects, gains, payload; plain data for the sidecar.
    """

    recording: Recording
    trace: Trace
    truth: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A simulated arm.

    Attributes:
        robot: Kinematics, mounting, drives and the true inertial parameters.
        effects: On top of the rigid bodies; all off by default.
        controller: That follows the motion.
        rate_hz: Rows per second, up to 1000.
        temperature: Of every joint where there is no thermal effect [degC].
        name: Of the preset, for the sidecar.
    """

    robot: Robot
    effects: Effects = field(default_factory=Effects)
    controller: Controller = field(default_factory=Controller)
    rate_hz: float = 500.0
    temperature: float = 30.0
    name: str = ""

    @classmethod
    def from_model(
        cls, model: TorqueModel, effects: Effects | None = None, **settings: Any
    ) -> Twin:
        """An arm that behaves as a fitted model says.

        The model's friction, offset and temperature dependence replace those of `effects`.
        """
        if model.values is None:
            raise TaufitError("this model has no parameters yet: fit it first.")
        joints = model.robot.joints
        values = np.asarray(model.values, float)
        robot = model.robot.with_parameters(values[: 10 * joints])
        at = 10 * joints
        if model.rotor_inertia:
            links = tuple(
                replace(link, rotor_inertia=float(x))
                for link, x in zip(robot.links, values[at : at + joints], strict=True)
            )
            robot = replace(robot, links=links)
            at += joints
        effects = effects or Effects()
        terms = len(model.friction.terms) if model.friction else 0
        coefficients = values[at : at + joints * terms].reshape(joints, terms)
        offset = values[at + joints * terms :] if model.offset else np.zeros(joints)
        effects = replace(
            effects,
            friction=Friction(
                model.friction or NoFriction(),
                coefficients,
                model.joint_shape if model.friction and model.friction.shapes else None,
                offset,
            ),
        )
        if effects.thermal is not None:
            thermal = replace(effects.thermal, coulomb_slope=0.0, viscous_slope=0.0)
            effects = replace(effects, thermal=thermal)
        return cls(robot, effects, **settings)

    def run(
        self,
        motion: Motion,
        *,
        seed: int = 0,
        payload: Carried | tuple[Carried, ...] = (),
        rate_hz: float | None = None,
        rest: tuple[float, float] = (0.5, 0.5),
        compiled: bool = True,
        told: Callable[[float], None] | None = None,
    ) -> Run:
        """Play a motion and record it.

        Args:
            motion: To follow. One that does not start at rest is met in flight.
            seed: Of everything random; the same seed gives the same recording.
            payload: Carried from the start, or picked and dropped on the way.
            rate_hz: Rows per second; the twin's own where None.
            rest: Seconds of standstill recorded before and after the motion.
            compiled: Use the compiled loop where there is one.
            told: Called now and then with the share of the run that is done.
        """
        carried = (payload,) if isinstance(payload, Carried) else tuple(payload)
        return _Simulation(self, motion, seed, carried, rate_hz or self.rate_hz, rest).run(
            compiled, told
        )


class _Simulation:
    """One run in the making: checks, arrays for the loop, and the measuring."""

    def __init__(
        self,
        twin: Twin,
        motion: Motion,
        seed: int,
        carried: tuple[Carried, ...],
        rate_hz: float,
        rest: tuple[float, float],
    ) -> None:
        self.twin, self.motion, self.seed, self.carried = twin, motion, seed, carried
        self.rate_hz = rate_hz
        robot, effects = twin.robot, twin.effects
        self.joints = robot.joints
        self.coupled = not np.array_equal(robot.drives.coupling, np.eye(self.joints))
        if self.coupled and effects.elasticity is not None:
            raise TaufitError("elasticity of coupled drives is not simulated; leave one out.")
        if motion.joints != self.joints:
            raise TaufitError(
                f"the motion moves {motion.joints} joints; {robot.name} has {self.joints}."
            )
        if not 0.0 < rate_hz <= 1.0 / TICK:
            raise TaufitError(f"a rate of {rate_hz:g} Hz is not possible: up to 1000 Hz.")
        if min(rest) < 0.0 or not np.all(np.isfinite(rest)):
            raise TaufitError("rest before and after the motion is given in seconds, not negative.")
        check_effects(effects, self.joints)
        check_payload(robot, carried)
        self.timeline = timeline(carried)
        ends = motion.at(np.array([0.0, motion.duration]))
        moving = np.abs(ends[1]).max(1) > 1e-3
        self.flying = bool(moving[0])
        self.before = 0.0 if moving[0] else rest[0]
        self.after = 0.0 if moving[1] else rest[1]
        # A motion met in flight starts with the reference on its way already.
        self.lead = twin.controller.delay if self.flying else 0.0
        self.duration = self.before + motion.duration + self.after - self.lead
        self._check_limits()

        elastic = effects.elasticity
        self.rotor = robot.rotor_inertias.copy()
        if elastic is not None:
            given = per_joint(elastic.rotor, self.joints, "elasticity rotor")
            self.rotor = np.where(self.rotor > 0.0, self.rotor, given)
        self.arm = build_arm(
            robot,
            rotor=np.zeros(self.joints) if elastic is not None else self.rotor,
            payload=self.timeline[0][1],
        )
        believed = twin.controller.model or robot
        known = self.timeline[0][1] if twin.controller.knows_payload else None
        self.model_arm = build_arm(
            believed, rotor=self.rotor if twin.controller.model is None else None, payload=known
        )
        self._poses()
        self._set_gains(elastic)
        self._set_friction()

    def _check_limits(self) -> None:
        limits, names = self.twin.robot.limits, self.twin.robot.joint_names
        time = np.arange(0.0, self.motion.duration + TICK, 2 * TICK).clip(0, self.motion.duration)
        q, v, a = self.motion.at(time)
        if not all(np.all(np.isfinite(x)) for x in (q, v, a)):
            raise InfeasibleError("the motion has a position or derivative that is not finite.")
        slack = 1e-6
        for what, unit, value, low, high in (
            ("position", "rad", q, limits.lower, limits.upper),
            ("velocity", "rad/s", v, -limits.velocity, limits.velocity),
            ("acceleration", "rad/s^2", a, -limits.acceleration, limits.acceleration),
        ):
            beyond = np.maximum(value - high, low - value)
            if beyond.max() > slack:
                row, joint = np.unravel_index(int(beyond.argmax()), beyond.shape)
                raise InfeasibleError(
                    f"the motion leaves the limits of {names[joint]}: {what} "
                    f"{value[row, joint]:.4g} {unit} at {time[row]:.3f} s, allowed "
                    f"{low[joint]:.4g} to {high[joint]:.4g}. Plan one within limits with "
                    "`taufit design`."
                )
        self.top_speed = np.abs(v).max(0) * 1.3 + 0.2

    def _poses(self) -> None:
        """Inertia and torque on the way, for gains, tables and what the drives must bear."""
        time = np.linspace(0.0, self.motion.duration, 41)
        q, v, a = self.motion.at(time)
        heaviest = max((total for _, total in self.timeline), key=lambda total: float(total[0]))
        loaded = build_arm(self.twin.robot, rotor=self.rotor, payload=heaviest)
        torque = loaded.torque(q, v, a)
        self.top_load = 1.5 * np.abs(torque).max(0) + 1.0
        self.mass = np.concatenate([loaded.mass_matrix(q[::4]), self.model_arm.mass_matrix(q[::4])])
        self.model_mass = self.mass[len(self.mass) // 2 :]
        limit = self.twin.robot.limits.torque
        holding = np.abs(loaded.torque(q, 0 * v, 0 * a))
        if np.any(holding > limit):
            row, joint = np.unravel_index(int((holding / limit).argmax()), holding.shape)
            raise InfeasibleError(
                f"{self.twin.robot.joint_names[joint]} needs {holding[row, joint]:.4g} N m to hold "
                f"the arm and its payload of {heaviest[0]:.4g} kg at {time[row]:.2f} s of the "
                f"motion; its limit is {limit[joint]:.4g} N m. Use a lighter payload or another "
                "motion."
            )

    def _set_gains(self, elastic: Elasticity | None) -> None:
        kp, kd, ki = self.twin.controller.gains(self.model_mass)
        self.gains = (kp, kd, ki)
        joints = self.joints
        self.substeps = 1
        if elastic is None:
            check_stable(self.mass, np.diag(kp), np.diag(kd), TICK)
            return
        if elastic.encoder not in ("motor", "link"):
            raise TaufitError(f"elasticity: encoder is motor or link, not {elastic.encoder!r}.")
        k = np.diag(per_joint(elastic.stiffness, joints, "elasticity stiffness"))
        d = np.diag(per_joint(elastic.damping, joints, "elasticity damping"))
        bodies = np.zeros((len(self.mass), 2 * joints, 2 * joints))
        bodies[:, :joints, :joints] = self.mass - np.diag(self.rotor)
        bodies[:, joints:, joints:] = np.diag(self.rotor)
        stiffness = np.block([[k, -k], [-k, k + np.diag(kp)]])
        damping = np.block([[d, -d], [-d, d + np.diag(kd)]])
        fastest = np.sqrt(np.abs(np.linalg.eigvals(np.linalg.solve(bodies, stiffness[None]))).max())
        quickest = np.abs(np.linalg.eigvals(np.linalg.solve(bodies, damping[None]))).max()
        self.substeps = int(np.ceil(max(fastest / 0.5, quickest / 0.5) * TICK))
        if self.substeps > 50:
            raise InfeasibleError(
                f"a joint stiffness of {k.max():.3g} N m/rad vibrates at {fastest / 6.283:.4g} Hz "
                "with these links, too fast to simulate. Lower stiffness or damping, or leave "
                "elasticity out."
            )
        check_stable(bodies, stiffness, damping, TICK / self.substeps)

    def _set_friction(self) -> None:
        effects, joints = self.twin.effects, self.joints
        friction, thermal = effects.friction, effects.thermal
        # What the controller's friction compensation is set for.
        self.warmth = (
            self.twin.temperature if thermal is None else float(np.mean(thermal.reference))
        )
        self.scale = np.ones(joints)
        self.slip = np.ones(joints)
        if friction is None:
            self.table: FrictionTable = no_friction(joints)
            return
        self.scale += friction.scatter * measure.stream(self.seed, "friction").standard_normal(
            joints
        )
        self.table = tabulate(
            friction, thermal, self.top_speed, self.top_load, self.scale, self.twin.temperature
        )
        # Sharper than this the turn-over would be stiffer than the step can follow.
        carrying = effective_inertia(self.mass).min(0) if effects.elasticity is None else self.rotor
        step = TICK / self.substeps
        age = 1.0 + per_joint(friction.breakaway, joints, "breakaway")
        highest = self.table.level[..., : len(self.table.speed_grid[0]) // 2].max((1, 2, 3, 4))
        highest = highest + per_joint(friction.load_factor, joints, "load_factor") * self.top_load
        floor = np.maximum(4.0 * highest * age * step**2 / carrying, 1e-9)
        own = friction.model.widths[0] if isinstance(friction.model, Presliding) else 0.0
        given = np.maximum(per_joint(friction.presliding, joints, "presliding"), own)
        self.slip = np.maximum(given, floor)

    def _arrays(self) -> dict[str, Any]:
        """Everything the loop reads and writes that does not change from chunk to chunk."""
        twin, joints = self.twin, self.joints
        effects, robot = twin.effects, twin.robot
        friction, thermal, ripple = effects.friction, effects.thermal, effects.ripple
        elastic = effects.elasticity
        zero, one = np.zeros(joints), np.ones(joints)
        table = self.table

        def each(part: Any, name: str, otherwise: Float[Array, " j"]) -> Float[Array, " j"]:
            return (
                otherwise.copy() if part is None else per_joint(getattr(part, name), joints, name)
            )

        waves = 0 if ripple is None else len(ripple.cycles)
        amplitude = np.zeros((joints, waves))
        if ripple is not None:
            amplitude = np.broadcast_to(np.asarray(ripple.amplitude, float), (joints, waves)).copy()
        limit = np.full(joints, np.inf)
        if effects.saturation is not None:
            limit = effects.saturation * robot.limits.torque
            if not np.all(limit > 0.0):
                raise TaufitError("saturation is a positive share of the robot's torque limits.")
        slow, slow_width = np.zeros((joints, 0)), np.zeros(0)
        if friction is not None:
            slow, slow_width = slow_parts(friction, joints)
        start = -self.lead if self.flying else -_SETTLE
        q, v, a = self.motion.at(np.array([start - self.before]))
        if self.flying:
            q, v, a = self.motion.at(np.array([0.0]))
        h = TICK / self.substeps
        warm = thermal.initial if thermal is not None and thermal.initial is not None else None
        ambient = thermal.ambient if thermal is not None else twin.temperature
        temperature = (
            np.full(joints, ambient) if warm is None else per_joint(warm, joints, "initial")
        )
        loads = [(np.round(time / TICK), *_flat(total)) for time, total in self.timeline[1:]]
        pulses = [(p.start, p.duration, *p.force, *p.moment) for p in effects.pushes]
        return {
            **views(self.arm),
            "stiffness": self.gains[0],
            "damping": self.gains[1],
            "integral_gain": self.gains[2],
            "torque_limit": limit,
            "flags": np.array(
                [friction is not None, thermal is not None, elastic is not None, self.coupled], int
            ),
            "coupling": np.ascontiguousarray(robot.drives.coupling, float),
            "at_drive": np.zeros(joints),
            "speed_drive": np.zeros(joints),
            "drag_drive": np.zeros(joints),
            "slow_width": slow_width,
            "slow_torque": np.ascontiguousarray(slow * self.scale[:, None]),
            "slow_state": np.tile(
                np.sign(robot.drives.coupling @ v[0])[:, None], (1, len(slow_width))
            ),
            "table_sizes": np.array([table.level.shape[n] for n in (4, 2, 3)]),
            "table": table.level,
            "speed_grid": table.speed_grid,
            "speed_scale": table.speed_scale,
            "speed_span": table.speed_span,
            "top_load": table.top_load.astype(float),
            "warmth": np.array(WARMTH),
            "slip": self.slip,
            "load_friction": each(friction, "load_factor", zero) * self.scale,
            "breakaway": each(friction, "breakaway", zero),
            "rest": np.array(
                [1.0, 1.0] if friction is None else [friction.dwell, friction.distance]
            ),
            "offset": each(friction, "offset", zero),
            "ripple_cycles": np.array(() if ripple is None else ripple.cycles, float),
            "ripple_amplitude": amplitude,
            "ripple_phase": measure.stream(
                self.seed if ripple is None or not ripple.arm else int(ripple.arm), "ripple"
            ).uniform(0, 2 * np.pi, (joints, waves)),
            "rotor": self.rotor,
            "spring": each(elastic, "stiffness", zero),
            "spring_damping": each(elastic, "damping", zero),
            "heat_capacity": each(thermal, "capacity", one),
            "heat_capacity_housing": each(thermal, "housing", one),
            "conductance": each(thermal, "conductance", zero),
            "conductance_ambient": each(thermal, "ambient_conductance", zero),
            "copper": each(thermal, "copper", zero),
            "ambient": np.array([ambient, 1.0 if thermal is None else thermal.speed_up]),
            "pulses": np.array(pulses, float).reshape(-1, 8),
            "loads": np.array(loads, float).reshape(-1, 12),
            "tip": robot.tip[:3, 3].copy(),
            "start_tick": np.array([round(start / TICK) if not self.flying else 0], float),
            "q": q[0].copy(),
            "v_half": v[0] - 0.5 * h * a[0],
            "a_last": a[0].copy(),
            "theta": q[0].copy(),
            "theta_half": v[0] - 0.5 * h * a[0],
            "theta_last": a[0].copy(),
            "drive_before": robot.drives.coupling @ q[0],
            "bristle": np.sign(robot.drives.coupling @ v[0]),
            "age": np.zeros(joints) if self.flying else np.ones(joints),
            "integral": np.zeros(joints),
            "temperature": temperature.copy(),
            "housing": (
                temperature.copy()
                if thermal is None or thermal.initial_housing is None
                else per_joint(thermal.initial_housing, joints, "initial_housing")
            ),
            "load": self.model_arm.torque(q, v, a)[0],
            "command": np.zeros(joints),
            "loss": np.zeros(joints),
        }

    def _steady(self, velocity: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Friction the controller expects at the joints, from its drives' speeds."""
        friction, coupling = self.twin.effects.friction, self.twin.robot.drives.coupling
        assert friction is not None
        speed = velocity @ coupling.T
        # Faded out towards standstill, where the sign of a velocity means little.
        fade = np.tanh(np.abs(speed) / _STANDSTILL)
        return (fade * steady_friction(friction, speed, self.warmth)) @ coupling

    def _reference(self, ticks: Int[Array, " n"]) -> dict[str, Float[Array, "n j"]]:
        """Reference and feed-forward of the controller at some ticks."""
        controller, friction = self.twin.controller, self.twin.effects.friction
        time = ticks * TICK - self.before + self.lead - controller.delay
        q, v, a = self.motion.at(time)
        forward = self.model_arm.torque(q, v, a)
        if friction is not None and controller.friction:
            forward = forward + controller.friction * self._steady(v)
        return {
            "reference_position": np.ascontiguousarray(q),
            "reference_velocity": np.ascontiguousarray(v),
            "feedforward": forward,
        }

    def run(self, compiled: bool, told: Callable[[float], None] | None) -> Run:
        timing = self.twin.effects.timing
        ticks = measure.instants(self.duration, self.rate_hz, timing, self.seed)
        arrays = self._arrays()
        kept: dict[str, list[Float[Array, "n j"]]] = {name: [] for name in OUTPUTS}
        at, end = int(arrays["start_tick"][0]), int(ticks[-1]) + 1
        while at < end:
            steps = min(_CHUNK, end - at)
            here = ticks[(ticks >= at) & (ticks < at + steps)] - at
            outputs = {f"out_{name}": np.empty((len(here), self.joints)) for name in OUTPUTS}
            arrays.update(
                self._reference(np.arange(at, at + steps)), keep=here.astype(np.int64), **outputs
            )
            arrays["start_tick"] = np.array([float(at)])
            failed = advance(self.arm, arrays, steps, self.substeps, compiled=compiled)
            if failed >= 0:
                raise InfeasibleError(
                    f"the simulated arm ran away {(at + failed) * TICK:.3f} s after the start; "
                    "nothing was written. Lower the controller's bandwidth, or check the inertial "
                    "parameters and the friction of this arm."
                )
            for name in OUTPUTS:
                kept[name].append(outputs[f"out_{name}"])
            at += steps
            if told is not None:
                told(max(at, 0) / end)
        trace = Trace(ticks * TICK, **{name: np.concatenate(parts) for name, parts in kept.items()})
        wild = [name for name in OUTPUTS if not np.all(np.isfinite(getattr(trace, name)))]
        if wild:
            raise InfeasibleError(
                f"the simulation gave numbers that are not finite ({', '.join(wild)}); nothing was "
                "written. Check the effects' settings."
            )
        run = self._measured(ticks, trace)
        run.truth["housing_end"] = arrays["housing"].tolist()
        return run

    def _measured(self, ticks: Int[Array, " n"], trace: Trace) -> Run:
        twin, seed, joints = self.twin, self.seed, self.joints
        effects, robot = twin.effects, twin.robot
        sensing, elastic, thermal = effects.sensing, effects.elasticity, effects.thermal
        drives = robot.drives
        side = (sensing.side if sensing is not None else "") or drives.side
        if side not in ("motor", "link"):
            raise TaufitError(f"torque is taken on the motor or the link side, not {side!r}.")
        torque = trace.motor_torque
        if side == "link":
            share = sensing.friction_share if sensing is not None else 0.0
            torque = trace.link_torque + share * trace.friction
        torque = torque + measure.torque_noise(sensing, ticks, torque, seed)
        if side == "motor":
            # tau = C' tau_m, so the motors give C'^-1 tau.
            torque = np.linalg.solve(drives.coupling.T, torque.T).T
        ratio = measure.true_gain_ratio(sensing, joints, seed)
        gain = drives.gain if side == "motor" else np.ones(joints)
        signal = torque / (gain * ratio)
        if sensing is not None:
            signal = measure.stepped(signal, per_joint(sensing.quantum, joints, "quantum"))
            if sensing.absolute:
                signal = np.abs(signal)
        motor_encoder = elastic is None or elastic.encoder == "motor"
        position, velocity = measure.encoded(
            effects.encoder,
            trace.drive_position if motor_encoder else trace.position,
            trace.drive_velocity if motor_encoder else trace.velocity,
            seed,
        )
        commanded = self.motion.at(ticks * TICK - self.before + self.lead)
        target = self.model_arm.torque(*commanded)
        current = target
        if effects.friction is not None:
            current = target + twin.controller.friction * self._steady(commanded[1])
        in_amperes = side == "motor" and bool(np.any(drives.gain != 1.0))
        temperature = None
        if thermal is not None:
            step = np.full(joints, thermal.resolution)
            temperature = measure.stepped(trace.temperature, step)
        rows = measure.rows_kept(len(ticks), effects.timing, seed)
        stamps = measure.stamps(ticks, effects.timing, seed)
        # The file says what the controller was told, not what was true.
        told = None if self.carried else 0.0
        if len(self.timeline) == 1 and twin.controller.knows_payload:
            told = float(self.timeline[0][1][0])
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
            payload=told,
            meta={
                "robot": robot.name,
                "joint_names": list(robot.joint_names),
                "mounting": list(robot.mounting),
                "rate_hz": self.rate_hz,
                "source": "taufit simulate",
            },
        )
        return Run(recording, trace, self._truth(trace, ratio, side))

    def _truth(self, trace: Trace, ratio: Float[Array, " j"], side: str) -> dict[str, Any]:
        twin = self.twin
        reference = self.motion.at(trace.time - self.before + self.lead - twin.controller.delay)[0]
        error = trace.drive_position - reference
        return {
            "preset": twin.name,
            "seed": self.seed,
            "robot": twin.robot.to_dict(),
            "rotor_inertia": self.rotor.tolist(),
            "effects": twin.effects.to_dict(),
            "friction_scale": self.scale.tolist(),
            "presliding": self.slip.tolist() if twin.effects.friction is not None else None,
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
                "stiffness": self.gains[0].tolist(),
                "damping": self.gains[1].tolist(),
            },
            "tracking_error_rms": np.sqrt((error**2).mean(0)).tolist(),
            "temperature_end": trace.temperature[-1].tolist(),
        }


def _flat(parameters: Float[Array, " 10"]) -> tuple[float, ...]:
    mass, centre, quaternion, moments = principal(parameters)
    return (mass, *centre, *quaternion, *moments)


__all__ = ["Carried", "MujocoArm", "Run", "Trace", "Twin"]
