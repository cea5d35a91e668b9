"""Robot and servo, advanced tick by tick, for complete runs and for stepwise control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.excitation import Motion
from taufit.robot import Robot
from taufit.sim import sensor_model
from taufit.sim.controller import Controller, check_stable, effective_inertia, growth
from taufit.sim.effects import Effects, Elasticity, per_joint
from taufit.sim.effects_check import check_effects
from taufit.sim.friction_table import (
    WARMTH,
    FrictionTable,
    no_friction,
    slow_parts,
    steady_friction,
    tabulate,
)
from taufit.sim.loop import OUTPUTS, TICK, advance, views
from taufit.sim.mujoco_arm import build_arm, principal
from taufit.sim.waves import Waves, held_torque
from taufit.terms import has_memory

# Standstill before the first row, in which the servo takes the weight [s].
SETTLE = 0.4
# Speed below which friction compensation is faded out [rad/s].
_STANDSTILL = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class OperatingRange:
    """Expected operating range: sets servo gains and the range of the friction table.

    Attributes:
        position, velocity, acceleration: States along the motion.
        top_speed: Largest expected joint speeds, with a margin [rad/s].
        poses: Dense poses along the motion, to find those with small inertia.
    """

    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    top_speed: Float[Array, " j"]
    poses: Float[Array, "m j"]

    @classmethod
    def of_motion(cls, motion: Motion, top_speed: Float[Array, " j"]) -> OperatingRange:
        """Range of one motion with given largest speeds."""
        q, v, a = motion.at(np.linspace(0.0, motion.duration, 41))
        poses, _, _ = motion.at(np.linspace(0.0, motion.duration, 201))
        return cls(q, v, a, 1.3 * top_speed + 0.2, poses)

    @classmethod
    def of_limits(cls, robot: Robot, home: Float[Array, " j"]) -> OperatingRange:
        """Range of any motion about a pose, up to the speed limits."""
        rng = np.random.default_rng(0)
        fastest = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, np.pi)
        spread = rng.uniform(-1.0, 1.0, (3, 41, robot.joints))
        spread[:, 0] = 0.0
        position = np.clip(home + 1.2 * spread[0], robot.limits.lower, robot.limits.upper)
        velocity, acceleration = 0.5 * fastest * spread[1], 4.0 * spread[2]
        return cls(position, velocity, acceleration, 1.3 * fastest + 0.2, position)


@dataclass(frozen=True, slots=True, eq=False)
class PlantStart:
    """Initial state of a plant.

    Attributes:
        position, velocity, acceleration: Initial joint state.
        flying: Whether the robot is already in motion; else it has rested long.
        tick: Number of the first tick.
    """

    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    flying: bool = False
    tick: int = -round(SETTLE / TICK)

    @classmethod
    def at_rest(cls, position: Float[Array, " j"]) -> PlantStart:
        zero = np.zeros(len(position))
        return cls(np.asarray(position, float), zero, zero)


class Plant:
    """Simulated robot: rigid bodies, drives and servo, from one tick to the next.

    Args:
        robot: Kinematics, mounting, drives and the true inertial parameters.
        effects: Effects on top of the rigid bodies.
        controller: Servo.
        envelope: Expected operating range.
        start: Initial state.
        timeline: Payload over time, from `payload.timeline`.
        seed: Seed of values drawn once per run (friction level).
        temperature: Joint temperature without thermal effect [degC].
    """

    def __init__(
        self,
        robot: Robot,
        effects: Effects,
        controller: Controller,
        envelope: OperatingRange,
        start: PlantStart,
        timeline: list[tuple[float, Float[Array, " 10"]]],
        seed: int = 0,
        temperature: float = 30.0,
    ) -> None:
        self.robot, self.effects, self.controller = robot, effects, controller
        self.timeline, self.seed, self.temperature = timeline, seed, temperature
        self.joints = robot.joints
        self.coupled = not np.array_equal(robot.drives.coupling, np.eye(self.joints))
        if self.coupled and effects.elasticity is not None:
            raise TaufitError("elasticity of coupled drives is not simulated; leave one out.")
        check_effects(effects, self.joints)
        elastic = effects.elasticity
        self.rotor = robot.rotor_inertias.copy()
        if elastic is not None:
            given = per_joint(elastic.rotor, self.joints, "elasticity rotor")
            self.rotor = np.where(self.rotor > 0.0, self.rotor, given)
        self.arm = build_arm(
            robot,
            rotor=np.zeros(self.joints) if elastic is not None else self.rotor,
            payload=timeline[0][1],
        )
        known = timeline[0][1] if controller.knows_payload else None
        self.model_arm = build_arm(
            controller.model or robot,
            rotor=self.rotor if controller.model is None else None,
            payload=known,
        )
        heaviest = max((total for _, total in timeline), key=lambda total: float(total[0]))
        self.loaded = build_arm(robot, rotor=self.rotor, payload=heaviest)
        q = envelope.position
        # Motor speeds, v_m = C v.
        self.top_speed = np.abs(robot.drives.coupling) @ envelope.top_speed
        torque = self.loaded.torque(q, envelope.velocity, envelope.acceleration)
        # tau = C' tau_m, so a motor carries C^-T tau.
        self.to_motors = np.ascontiguousarray(np.linalg.inv(robot.drives.coupling).T, float)
        torque = torque @ self.to_motors.T
        self.top_load = 1.5 * np.abs(torque).max(0) + 1.0
        few = q[::4]
        self.model_mass = self.model_arm.mass_matrix(few)
        self.mass = np.concatenate([self.loaded.mass_matrix(few), self.model_mass])
        self._set_gains(elastic, envelope.poses)
        self._set_friction()
        self.arrays = self._arrays(start)
        self.tick = start.tick

    def advance(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        forward: Float[Array, "n j"],
        keep: Int[Array, " m"],
        *,
        compiled: bool = True,
    ) -> dict[str, Float[Array, "m j"]]:
        """Follow a reference for n ticks and return the states at the start of the ticks `keep`.

        Args:
            position, velocity: Reference of the servo, one row per tick.
            forward: Feed-forward torque from `feedforward` [N m].
            keep: Ticks to return, counted from the first row.
            compiled: Use the compiled loop if available.
        """
        outputs = {f"out_{name}": np.empty((len(keep), self.joints)) for name in OUTPUTS}
        steps = len(position)
        self.arrays.update(
            reference_position=position,
            reference_velocity=velocity,
            feedforward=forward,
            keep=keep,
            start_tick=np.array([float(self.tick)]),
            **outputs,
        )
        failed = advance(self.arm, self.arrays, steps, self.substeps, compiled=compiled)
        if failed >= 0:
            raise InfeasibleError(
                f"the simulated arm ran away {(self.tick + failed) * TICK:.3f} s after the start; "
                "nothing was written. Lower the controller's bandwidth, or check the inertial "
                "parameters and the friction of this arm."
            )
        self.tick += steps
        return {name: outputs[f"out_{name}"] for name in OUTPUTS}

    def feedforward(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
    ) -> Float[Array, "n j"]:
        """Feed-forward torque of the controller, with friction compensation [N m]."""
        forward = self.target_torque(position, velocity, acceleration)
        if self.effects.friction is not None and self.controller.friction:
            forward = forward + self.controller.friction * self.steady(velocity)
        return forward

    def target_torque(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
    ) -> Float[Array, "n j"]:
        """Feed-forward torque without friction: the controller's robot with its compensators.

        A controller with another robot model knows compensators if that robot has some.
        """
        torque = self.model_arm.torque(position, velocity, acceleration)
        assumed = self.controller.model
        knows = assumed is None or bool(assumed.compensators)
        return torque + self.held(position) if knows else torque

    def held(self, position: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Torque of gravity compensators on the drives; negative where they help [N m]."""
        return held_torque(self.effects.friction, self.robot.drives.coupling, position)

    def carry(self, parameters: Float[Array, " 10"]) -> None:
        """Set the payload of the last link from now on (zeros for none)."""
        flat = _flat(parameters)
        x = self.arrays
        x["payload_mass"][0], x["payload_ipos"][:] = flat[0], flat[1:4]
        x["payload_iquat"][:], x["payload_inertia"][:] = flat[4:8], flat[8:11]

    def _set_gains(self, elastic: Elasticity | None, poses: Float[Array, "n j"]) -> None:
        if elastic is None:
            self._set_rigid_gains(poses)
            return
        kp, kd, _ = self.gains = self.controller.gains(self.model_mass)
        joints = self.joints
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

    def _set_rigid_gains(self, poses: Float[Array, "n j"]) -> None:
        """Set gains for the typical pose, or for the smallest inertia if those are unstable."""
        self.substeps = 1
        light = self.model_arm.mass_matrix(poses)
        mass = np.concatenate([self.loaded.mass_matrix(poses), light])
        for gains in (self.controller.gains(self.model_mass), self.controller.gains(light, 0.0)):
            self.gains = gains
            if growth(mass, np.diag(gains[0]), np.diag(gains[1]), TICK) <= 1.0:
                return
        check_stable(mass, np.diag(gains[0]), np.diag(gains[1]), TICK)

    def _set_friction(self) -> None:
        effects, joints = self.effects, self.joints
        friction, thermal = effects.friction, effects.thermal
        # Temperature for which the friction compensation is set.
        self.warmth = self.temperature if thermal is None else float(np.mean(thermal.reference))
        self.scale = np.ones(joints)
        self.slip = np.ones(joints)
        if friction is None:
            self.table: FrictionTable = no_friction(joints)
            return
        self.scale += friction.scatter * sensor_model.stream(self.seed, "friction").standard_normal(
            joints
        )
        self.table = tabulate(
            friction, thermal, self.top_speed, self.top_load, self.scale, self.temperature
        )
        # A shorter reversal would be too stiff for the step.
        carrying = effective_inertia(self.mass).min(0) if effects.elasticity is None else self.rotor
        step = TICK / self.substeps
        age = 1.0 + per_joint(friction.breakaway, joints, "breakaway")
        highest = self.table.level[..., : len(self.table.speed_grid[0]) // 2].max((1, 2, 3, 4))
        highest = highest + per_joint(friction.load_factor, joints, "load_factor") * self.top_load
        floor = np.maximum(4.0 * highest * age * step**2 / carrying, 1e-9)
        own = friction.model.memory[0] if has_memory(friction.model) else 0.0
        given = np.maximum(per_joint(friction.presliding, joints, "presliding"), own)
        self.slip = np.maximum(given, floor)

    def _arrays(self, start: PlantStart) -> dict[str, Any]:
        """Arrays of the loop that do not change between calls of `advance`."""
        effects, robot, joints = self.effects, self.robot, self.joints
        friction, thermal = effects.friction, effects.thermal
        elastic = effects.elasticity
        zero, one = np.zeros(joints), np.ones(joints)
        table = self.table

        def each(part: Any, name: str, otherwise: Float[Array, " j"]) -> Float[Array, " j"]:
            return (
                otherwise.copy() if part is None else per_joint(getattr(part, name), joints, name)
            )

        waves = Waves.of(effects, self.scale)
        limit = np.full(joints, np.inf)
        if effects.saturation is not None:
            limit = effects.saturation * robot.limits.torque
            if not np.all(limit > 0.0):
                raise TaufitError("saturation is a positive share of the robot's torque limits.")
        slow, slow_width = np.zeros((joints, 0)), np.zeros(0)
        if friction is not None:
            slow, slow_width = slow_parts(friction, joints)
        q, v, a = (x[None] for x in (start.position, start.velocity, start.acceleration))
        h = TICK / self.substeps
        warm = thermal.initial if thermal is not None and thermal.initial is not None else None
        ambient = thermal.ambient if thermal is not None else self.temperature
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
            "to_motors": self.to_motors,
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
            "ripple_cycles": waves.cycles,
            "ripple_amplitude": waves.amplitude,
            "ripple_phase": waves.phase,
            "heating_waves": np.array([float(waves.heating)]),
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
            "start_tick": np.array([start.tick], float),
            "q": q[0].copy(),
            "v_half": v[0] - 0.5 * h * a[0],
            "a_last": a[0].copy(),
            "theta": q[0].copy(),
            "theta_half": v[0] - 0.5 * h * a[0],
            "theta_last": a[0].copy(),
            "drive_before": robot.drives.coupling @ q[0],
            "bristle": np.sign(robot.drives.coupling @ v[0]),
            "age": np.zeros(joints) if start.flying else np.ones(joints),
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

    def steady(self, velocity: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Friction compensation of the controller at the joints [N m]."""
        friction, coupling = self.effects.friction, self.robot.drives.coupling
        assert friction is not None
        if not velocity.any():
            return np.zeros_like(velocity)
        speed = velocity @ coupling.T
        # Faded out towards standstill, where the sign of velocity is uncertain.
        fade = np.tanh(np.abs(speed) / _STANDSTILL)
        return (fade * steady_friction(friction, speed, self.warmth)) @ coupling


def _flat(parameters: Float[Array, " 10"]) -> tuple[float, ...]:
    mass, centre, quaternion, moments = principal(parameters)
    return (mass, *centre, *quaternion, *moments)
