"""Robot and servo, advanced tick by tick, for complete runs and for stepwise control."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.excitation import Motion
from taufit.robot import Robot
from taufit.sim import sensor_model
from taufit.sim.controller import Controller, effective_inertia, error_growth, require_stable
from taufit.sim.effects import Effects, Elasticity, per_joint
from taufit.sim.effects_check import require_valid_effects
from taufit.sim.friction_table import (
    TEMPERATURE_RANGE,
    FrictionTable,
    no_friction,
    slow_parts,
    steady_friction,
    tabulate_friction,
)
from taufit.sim.mujoco_arm import build_arm, principal_inertia
from taufit.sim.position_waves import PositionWaves, compensator_torque
from taufit.sim.simulation_loop import OUTPUTS, TICK_S, advance, mujoco_arrays
from taufit.terms import has_memory

# Standstill before the first row, in which the servo takes the weight [s].
SETTLE_S = 0.4
# Speed below which friction compensation is faded out [rad/s].
_STANDSTILL_SPEED = 0.02


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
        top_speed = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, np.pi)
        random = rng.uniform(-1.0, 1.0, (3, 41, robot.joints))
        random[:, 0] = 0.0
        position = np.clip(home + 1.2 * random[0], robot.limits.lower, robot.limits.upper)
        velocity, acceleration = 0.5 * top_speed * random[1], 4.0 * random[2]
        return cls(position, velocity, acceleration, 1.3 * top_speed + 0.2, position)


@dataclass(frozen=True, slots=True, eq=False)
class PlantStart:
    """Initial state of a plant.

    Attributes:
        position, velocity, acceleration: Initial joint state.
        starts_in_motion: Whether the robot is already in motion; else it has rested long.
        tick: Number of the first tick.
    """

    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    starts_in_motion: bool = False
    tick: int = -round(SETTLE_S / TICK_S)

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
        self.is_coupled = not np.array_equal(robot.drives.coupling, np.eye(self.joints))
        if self.is_coupled and effects.elasticity is not None:
            raise TaufitError("elasticity of coupled drives is not simulated; leave one out.")
        require_valid_effects(effects, self.joints)
        elasticity = effects.elasticity
        self.rotor = robot.rotor_inertias.copy()
        if elasticity is not None:
            elastic_rotor = per_joint(elasticity.rotor, self.joints, "elasticity rotor")
            self.rotor = np.where(self.rotor > 0.0, self.rotor, elastic_rotor)
        self.arm = build_arm(
            robot,
            rotor=np.zeros(self.joints) if elasticity is not None else self.rotor,
            payload=timeline[0][1],
        )
        known_payload = timeline[0][1] if controller.knows_payload else None
        self.model_arm = build_arm(
            controller.model or robot,
            rotor=self.rotor if controller.model is None else None,
            payload=known_payload,
        )
        heaviest = max((total for _, total in timeline), key=lambda total: float(total[0]))
        self.loaded_arm = build_arm(robot, rotor=self.rotor, payload=heaviest)
        q = envelope.position
        # Motor speeds, v_m = C v.
        self.top_speed = np.abs(robot.drives.coupling) @ envelope.top_speed
        torque = self.loaded_arm.torque(q, envelope.velocity, envelope.acceleration)
        # tau = C' tau_m, so a motor carries C^-T tau.
        self.to_motors = np.ascontiguousarray(np.linalg.inv(robot.drives.coupling).T, float)
        torque = torque @ self.to_motors.T
        self.top_load = 1.5 * np.abs(torque).max(0) + 1.0
        some_poses = q[::4]
        self.model_mass = self.model_arm.mass_matrix(some_poses)
        self.mass = np.concatenate([self.loaded_arm.mass_matrix(some_poses), self.model_mass])
        self._set_gains(elasticity, envelope.poses)
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
        diverged_tick = advance(self.arm, self.arrays, steps, self.substeps, compiled=compiled)
        if diverged_tick >= 0:
            raise InfeasibleError(
                f"the simulated arm ran away {(self.tick + diverged_tick) * TICK_S:.3f} s after "
                "the start; "
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
            forward = forward + self.controller.friction * self.friction_compensation(velocity)
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
        model_robot = self.controller.model
        has_compensators = model_robot is None or bool(model_robot.compensators)
        return torque + self.compensator_torque(position) if has_compensators else torque

    def compensator_torque(self, position: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Torque of gravity compensators on the drives; negative where they help [N m]."""
        return compensator_torque(self.effects.friction, self.robot.drives.coupling, position)

    def set_payload(self, parameters: Float[Array, " 10"]) -> None:
        """Set the payload of the last link from now on (zeros for none)."""
        row = _payload_row(parameters)
        x = self.arrays
        x["payload_mass"][0], x["payload_ipos"][:] = row[0], row[1:4]
        x["payload_iquat"][:], x["payload_inertia"][:] = row[4:8], row[8:11]

    def _set_gains(self, elasticity: Elasticity | None, poses: Float[Array, "n j"]) -> None:
        if elasticity is None:
            self._set_rigid_gains(poses)
            return
        kp, kd, _ = self.gains = self.controller.gains(self.model_mass)
        joints = self.joints
        if elasticity.encoder not in ("motor", "link"):
            raise TaufitError(f"elasticity: encoder is motor or link, not {elasticity.encoder!r}.")
        k = np.diag(per_joint(elasticity.stiffness, joints, "elasticity stiffness"))
        d = np.diag(per_joint(elasticity.damping, joints, "elasticity damping"))
        bodies = np.zeros((len(self.mass), 2 * joints, 2 * joints))
        bodies[:, :joints, :joints] = self.mass - np.diag(self.rotor)
        bodies[:, joints:, joints:] = np.diag(self.rotor)
        stiffness = np.block([[k, -k], [-k, k + np.diag(kp)]])
        damping = np.block([[d, -d], [-d, d + np.diag(kd)]])
        natural_frequency = np.sqrt(_largest_eigenvalue(bodies, stiffness))
        substeps = np.ceil(
            2.0 * max(natural_frequency, _largest_eigenvalue(bodies, damping)) * TICK_S
        )
        if substeps > 50:
            raise InfeasibleError(
                f"a joint stiffness of {k.max():.3g} N m/rad vibrates at "
                f"{natural_frequency / 6.283:.4g} Hz "
                "with these links, too fast to simulate. Lower stiffness or damping, or leave "
                "elasticity out."
            )
        self.substeps = int(substeps)
        require_stable(bodies, stiffness, damping, TICK_S / self.substeps)

    def _set_rigid_gains(self, poses: Float[Array, "n j"]) -> None:
        """Set gains for the typical pose, or for the smallest inertia if those are unstable."""
        self.substeps = 1
        unloaded_mass = self.model_arm.mass_matrix(poses)
        mass = np.concatenate([self.loaded_arm.mass_matrix(poses), unloaded_mass])
        for gains in (
            self.controller.gains(self.model_mass),
            self.controller.gains(unloaded_mass, 0.0),
        ):
            self.gains = gains
            if error_growth(mass, np.diag(gains[0]), np.diag(gains[1]), TICK_S) <= 1.0:
                return
        require_stable(mass, np.diag(gains[0]), np.diag(gains[1]), TICK_S)

    def _set_friction(self) -> None:
        effects, joints = self.effects, self.joints
        friction, thermal = effects.friction, effects.thermal
        # Temperature for which the friction compensation is set.
        self.compensation_temperature = (
            self.temperature if thermal is None else float(np.mean(thermal.reference))
        )
        self.scale = np.ones(joints)
        self.slip = np.ones(joints)
        if friction is None:
            self.table: FrictionTable = no_friction(joints)
            return
        self.scale += friction.scatter * sensor_model.random_stream(
            self.seed, "friction"
        ).standard_normal(joints)
        self.table = tabulate_friction(
            friction, thermal, self.top_speed, self.top_load, self.scale, self.temperature
        )
        # A shorter reversal would be too stiff for the step.
        inertia = effective_inertia(self.mass).min(0) if effects.elasticity is None else self.rotor
        step = TICK_S / self.substeps
        age = 1.0 + per_joint(friction.breakaway, joints, "breakaway")
        highest = self.table.level[..., : len(self.table.speed_grid[0]) // 2].max((1, 2, 3, 4))
        highest = highest + per_joint(friction.load_factor, joints, "load_factor") * self.top_load
        floor = np.maximum(4.0 * highest * age * step**2 / inertia, 1e-9)
        model_width = friction.model.memory[0] if has_memory(friction.model) else 0.0
        width = np.maximum(per_joint(friction.presliding, joints, "presliding"), model_width)
        self.slip = np.maximum(width, floor)

    def _arrays(self, start: PlantStart) -> dict[str, Any]:
        """Arrays of the loop that do not change between calls of `advance`."""
        effects, robot, joints = self.effects, self.robot, self.joints
        friction, thermal = effects.friction, effects.thermal
        elasticity = effects.elasticity
        zeros, ones = np.zeros(joints), np.ones(joints)
        table = self.table

        def per_joint_setting(
            part: Any, name: str, default: Float[Array, " j"]
        ) -> Float[Array, " j"]:
            return default.copy() if part is None else per_joint(getattr(part, name), joints, name)

        waves = PositionWaves.of(effects, self.scale)
        limit = np.full(joints, np.inf)
        if effects.saturation is not None:
            limit = effects.saturation * robot.limits.torque
            if not np.all(limit > 0.0):
                raise TaufitError("saturation is a positive share of the robot's torque limits.")
        slow, slow_width = np.zeros((joints, 0)), np.zeros(0)
        if friction is not None:
            slow, slow_width = slow_parts(friction, joints)
        q, v, a = (x[None] for x in (start.position, start.velocity, start.acceleration))
        h = TICK_S / self.substeps
        initial = thermal.initial if thermal is not None and thermal.initial is not None else None
        ambient = thermal.ambient if thermal is not None else self.temperature
        temperature = (
            np.full(joints, ambient) if initial is None else per_joint(initial, joints, "initial")
        )
        loads = [
            (np.round(time / TICK_S), *_payload_row(total)) for time, total in self.timeline[1:]
        ]
        pulses = [(p.start, p.duration, *p.force, *p.moment) for p in effects.pushes]
        return {
            **mujoco_arrays(self.arm),
            "stiffness": self.gains[0],
            "damping": self.gains[1],
            "integral_gain": self.gains[2],
            "torque_limit": limit,
            "flags": np.array(
                [
                    friction is not None,
                    thermal is not None,
                    elasticity is not None,
                    self.is_coupled,
                ],
                int,
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
            "warmth": np.array(TEMPERATURE_RANGE),
            "slip": self.slip,
            "load_friction": per_joint_setting(friction, "load_factor", zeros) * self.scale,
            "breakaway": per_joint_setting(friction, "breakaway", zeros),
            "rest": np.array(
                [1.0, 1.0] if friction is None else [friction.dwell, friction.distance]
            ),
            "offset": per_joint_setting(friction, "offset", zeros),
            "ripple_cycles": waves.cycles,
            "ripple_amplitude": waves.amplitude,
            "ripple_phase": waves.phase,
            "ripple_low": waves.low,
            "ripple_high": waves.high,
            "heating_waves": np.array([float(waves.heating)]),
            "rotor": self.rotor,
            "spring": per_joint_setting(elasticity, "stiffness", zeros),
            "spring_damping": per_joint_setting(elasticity, "damping", zeros),
            "heat_capacity": per_joint_setting(thermal, "capacity", ones),
            "heat_capacity_housing": per_joint_setting(thermal, "housing", ones),
            "conductance": per_joint_setting(thermal, "conductance", zeros),
            "conductance_ambient": per_joint_setting(thermal, "ambient_conductance", zeros),
            "copper": per_joint_setting(thermal, "copper", zeros),
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
            "age": np.zeros(joints) if start.starts_in_motion else np.ones(joints),
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

    def friction_compensation(self, velocity: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Friction compensation of the controller at the joints [N m]."""
        friction, coupling = self.effects.friction, self.robot.drives.coupling
        assert friction is not None
        if not velocity.any():
            return np.zeros_like(velocity)
        speed = velocity @ coupling.T
        # Faded out towards standstill, where the sign of velocity is uncertain.
        fade = np.tanh(np.abs(speed) / _STANDSTILL_SPEED)
        return (fade * steady_friction(friction, speed, self.compensation_temperature)) @ coupling


def _payload_row(parameters: Float[Array, " 10"]) -> tuple[float, ...]:
    mass, centre, quaternion, moments = principal_inertia(parameters)
    return (mass, *centre, *quaternion, *moments)


def _largest_eigenvalue(bodies: Float[Array, "n k k"], matrix: Float[Array, "k k"]) -> float:
    """Largest magnitude of an eigenvalue of bodies^-1 matrix; infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.linalg.solve(bodies, matrix[None])
    if not np.isfinite(product).all():
        return np.inf
    return float(np.abs(np.linalg.eigvals(product)).max())
