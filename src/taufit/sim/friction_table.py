"""Friction models as look-up tables for the inner loop: torque over speed, load, temperature."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.sim.effects import DriveFriction, Thermal, per_joint
from taufit.terms import MEMORY, TermInput, has_memory, needs, steady_friction_model

SPEED_POINTS, LOAD_POINTS = 600, 33
TEMPERATURE_RANGE = (-20.0, 120.0)
TEMPERATURE_POINTS = 29


@dataclass(frozen=True, slots=True, eq=False)
class FrictionTable:
    """Table of F(|v|, |load|, T) per joint and direction, with linear interpolation.

    Attributes:
        level: [joint, direction, load, temperature, speed], directions + and -.
        speed_grid: Speeds, spaced like asinh: dense near standstill [rad/s].
        speed_scale, speed_span: grid = scale sinh(span i / (SPEEDS - 1)).
        top_load: Load of the last entry [N m].
    """

    level: Float[Array, "j 2 l w s"]
    speed_grid: Float[Array, "j s"]
    speed_scale: Float[Array, " j"]
    speed_span: Float[Array, " j"]
    top_load: Float[Array, " j"]


def no_friction(joints: int) -> FrictionTable:
    """Table for drives without friction."""
    ones = np.ones(joints)
    grid = np.tile(np.array([0.0, 1.0]), (joints, 1))
    return FrictionTable(np.zeros((joints, 2, 1, 1, 2)), grid, ones, ones, ones)


def tabulate_friction(
    friction: DriveFriction,
    thermal: Thermal | None,
    top_speed: Float[Array, " j"],
    top_load: Float[Array, " j"],
    scale: Float[Array, " j"],
    temperature: float = 30.0,
) -> FrictionTable:
    """Make the table of a friction model.

    Args:
        friction: Model and coefficients.
        thermal: Temperature dependence, or None.
        top_speed: Largest expected speed; extrapolated linearly beyond [rad/s].
        top_load: Largest expected load; constant beyond [N m].
        scale: Friction of this run relative to the coefficients.
        temperature: Joint temperature without thermal effect [degC].
    """
    joints = len(top_speed)
    model = steady_friction_model(friction.model)
    coefficients = np.asarray(friction.coefficients, float)
    if coefficients.shape != (joints, len(model.parameters)):
        names = ", ".join(term.name for term in model.parameters)
        raise TaufitError(
            f"friction needs {joints} rows of {len(model.parameters)} coefficients ({names}); "
            f"found {coefficients.shape}."
        )
    shape = np.zeros((joints, 0)) if friction.shape is None else np.asarray(friction.shape, float)
    if shape.shape != (joints, len(model.shapes)):
        names = ", ".join(item.name for item in model.shapes) or "none"
        raise TaufitError(
            f"friction needs {joints} rows of {len(model.shapes)} shapes ({names}); "
            f"found {shape.shape}."
        )
    load_points = LOAD_POINTS if needs(model, "load") else 1
    temperature_points = TEMPERATURE_POINTS if thermal is not None else 1
    speed_scale = 1e-3 * top_speed
    speed_span = np.arcsinh(top_speed / speed_scale)
    grid = speed_scale[:, None] * np.sinh(speed_span[:, None] * np.linspace(0.0, 1.0, SPEED_POINTS))
    levels = np.empty((joints, 2, load_points, temperature_points, SPEED_POINTS))
    slopes = np.zeros((3, joints))
    temperatures = (
        np.array([temperature])
        if thermal is None
        else np.linspace(*TEMPERATURE_RANGE, TEMPERATURE_POINTS)
    )
    if thermal is not None:
        slopes[0] = per_joint(thermal.coulomb_slope, joints, "coulomb_slope")
        slopes[1] = per_joint(thermal.viscous_slope, joints, "viscous_slope")
        slopes[2] = per_joint(thermal.reference, joints, "reference")
    for i in range(joints):
        # sign(0) is 0; friction at standstill is the limit for small speeds.
        speed = np.maximum(grid[i], 1e-9 * top_speed[i])
        # All loads and temperatures in one call; one temperature if the model does not use it.
        used_temperatures = temperatures if needs(model, "temperature") else temperatures[:1]
        load, temperature_grid, speed_column = (
            x.ravel()
            for x in np.meshgrid(
                np.linspace(0.0, top_load[i], load_points), used_temperatures, speed, indexing="ij"
            )
        )
        temperature_rise = (temperatures - slopes[2, i])[:, None]
        for side, sign in enumerate((1.0, -1.0)):
            inputs = TermInput(sign * speed_column, load=load, temperature=temperature_grid)
            columns = model.columns(inputs, shape[i])
            value = sign * (columns @ coefficients[i]).reshape(
                load_points, len(used_temperatures), SPEED_POINTS
            )
            _check_drag(value, speed, i, temperatures=used_temperatures)
            torque = value + (slopes[0, i] + slopes[1, i] * speed) * temperature_rise
            levels[i, side] = scale[i] * np.maximum(torque, 0.0)
    return FrictionTable(levels, grid, speed_scale, speed_span, top_load)


def _check_drag(
    value: Float[Array, "l w s"],
    speed: Float[Array, " s"],
    joint: int,
    temperatures: Float[Array, " w"],
) -> None:
    """InfeasibleError for negative friction, which would drive the joint."""
    is_checked = (
        np.ones(len(temperatures), bool)
        if len(temperatures) == 1
        else (temperatures > 0) & (temperatures < 60)
    )
    checked = value[:, is_checked]
    if not np.all(np.isfinite(checked)):
        raise InfeasibleError(f"friction of joint {joint + 1} is not finite everywhere.")
    if checked.min() < -0.005 * max(float(checked.max()), 1e-9):
        worst_speed = speed[np.unravel_index(int(checked.argmin()), checked.shape)[-1]]
        raise InfeasibleError(
            f"friction of joint {joint + 1} would drive it: {checked.min():.3g} N m at "
            f"{worst_speed:.3g} rad/s. "
            "Use coefficients with which friction resists, for example a fit with "
            "--estimator consistent_sdp."
        )


def slow_parts(
    friction: DriveFriction, joints: int
) -> tuple[Float[Array, "j e"], Float[Array, " e"]]:
    """Torques and widths of the slow parts of friction, including those of the model."""
    widths = np.array(friction.slow_widths, float)
    torque = np.zeros((joints, 0)) if friction.slow is None else np.asarray(friction.slow, float)
    if torque.shape != (joints, len(widths)) or np.any(widths <= 0.0):
        raise TaufitError(
            f"slow friction needs {joints} rows, one number per entry of slow_widths, all widths "
            f"positive; found {torque.shape} for {len(widths)} widths."
        )
    if has_memory(friction.model):
        memory_columns = [
            k for k, term in enumerate(friction.model.parameters) if term.group == MEMORY
        ]
        torque = np.concatenate(
            [torque, np.asarray(friction.coefficients, float)[:, memory_columns]], 1
        )
        widths = np.concatenate([widths, friction.model.memory[1:]])
    return torque, widths


def steady_friction(
    friction: DriveFriction,
    velocity: Float[Array, "n j"],
    temperature: float = 30.0,
) -> Float[Array, "n j"]:
    """Steady-state friction without load, the feed-forward of a controller [N m]."""
    n, joints = velocity.shape
    shape = np.zeros((joints, 0)) if friction.shape is None else np.asarray(friction.shape, float)
    torque = np.empty_like(velocity)
    for i in range(joints):
        inputs = TermInput(velocity[:, i], load=np.zeros(n), temperature=np.full(n, temperature))
        torque[:, i] = (
            steady_friction_model(friction.model).columns(inputs, shape[i])
            @ friction.coefficients[i]
        )
    return torque
