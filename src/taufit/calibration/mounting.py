"""Mounting check: direction of gravity estimated from torque.

Torque is linear in gravity g as it is in the links' parameters,

    tau = (Y_0 + g_x Y_x + g_y Y_y + g_z Y_z) theta + friction, rotor, offset,

so for every direction of g the best theta follows by linear least squares, and the residual is
a function of two angles. Its minimum is the estimated direction of gravity. The nominal links are a
weak prior (100 % each), which decides between a direction and its opposite where motion is slow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import Gaussian
from taufit.dynamics import BaseParameters, base_parameters, engine, regressor
from taufit.fitting.selection.friction_terms import correlation_samples, gaussian_prior
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.robot.mounting import (
    MOUNTINGS,
    STANDARD_GRAVITY,
    gravity_in_base,
    parse_mounting,
)
from taufit.signals.samples import Samples
from taufit.terms import friction_model

# The declared mounting is wrong if gravity is this far from it [deg], this many standard deviations
# from it, and the cost falls by this many squared noise levels.
LIMIT_DEG = 5.0
LIMIT_STD = 4.0
LIMIT_GAIN = 50.0

# Widths of pre-sliding friction after a reversal [rad].
_WIDTHS = (3e-5, 3e-3, 3e-2)

_MAXIMUM_ROWS = 1500
_ROUNDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class GravityEstimate:
    """Direction of gravity estimated from a recording.

    Attributes:
        direction: Unit vector of gravity in the base frame.
        declared: Unit vector of gravity by the declared mounting.
        angle: Angle between the two [rad].
        std: Standard deviation of the estimated direction, along its least certain tangent [rad].
        gain: Cost of the declared direction minus that of the estimated one, in squared noise
            levels of independent samples.
        nrmse: Nrmse with the estimated direction, mean over joints.
    """

    direction: Float[Array, " 3"]
    declared: Float[Array, " 3"]
    angle: float
    std: float
    gain: float
    nrmse: float

    @property
    def contradicts_declared(self) -> bool:
        """Whether the declared mounting is rejected: above 5 degrees and 4 standard deviations."""
        return bool(
            np.degrees(self.angle) > LIMIT_DEG
            and self.angle > LIMIT_STD * self.std
            and self.gain > LIMIT_GAIN
        )

    @property
    def mounting(self) -> tuple[float, float, float]:
        """Roll, pitch and yaw of this direction [rad]; yaw has no effect and is 0."""
        x, y, z = self.direction
        return (float(np.arctan2(-y, -z)), float(np.arcsin(np.clip(x, -1.0, 1.0))), 0.0)

    @property
    def name(self) -> str:
        """Name of the estimated mounting: ground, ceiling, wall, or angles."""
        return mounting_name(self.direction)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "gravity_direction": self.direction.tolist(),
            "declared_direction": self.declared.tolist(),
            "angle_deg": float(np.degrees(self.angle)),
            "std_deg": float(np.degrees(self.std)),
            "gain": self.gain,
            "fits": self.name,
            "mounting_deg": np.degrees(self.mounting).round(2).tolist(),
            "wrong": self.contradicts_declared,
        }


def mounting_name(direction: Float[Array, " 3"], within_deg: float = 7.0) -> str:
    """Name of a direction of gravity in the base frame, with angles where it has no name."""
    unit = np.asarray(direction, float) / np.linalg.norm(direction)
    for name, angles in MOUNTINGS.items():
        nominal_direction = gravity_in_base(angles) / STANDARD_GRAVITY
        if np.degrees(np.arccos(np.clip(nominal_direction @ unit, -1.0, 1.0))) < within_deg:
            return name
    roll = np.degrees(np.arctan2(-unit[1], -unit[2]))
    pitch = np.degrees(np.arcsin(np.clip(unit[0], -1.0, 1.0)))
    angles_text = f"{round(roll)},{round(pitch)},0"
    elevation = np.degrees(np.arcsin(min(1.0, abs(unit[2]))))
    return f"a wall ({angles_text})" if elevation < within_deg else f"a tilt ({angles_text})"


def estimate_gravity(
    robot: Robot, samples: Samples, *, trust: float = 1.0
) -> GravityEstimate | None:
    """Estimate the direction of gravity from a recording.

    Args:
        robot: Nominal or fitted robot with the declared mounting and with masses.
        samples: Conditioned motion and torque.
        trust: Prior weight of the robot's links: 1 is a standard deviation of 100 %, 100 is 10 %.

    Returns:
        The estimate; None for unsigned torque, a robot without masses or fewer than 100 moving
        samples.
    """
    unsigned = samples.signed is not None and not np.all(samples.signed)
    if samples.joints != robot.joints or unsigned or not np.any(robot.parameters):
        return None
    rows = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
    if len(rows) < 100:
        return None
    return _DirectionGram(robot, samples, rows, trust).solve()


def mounting_findings(robot: Robot, samples: Samples, *, trust: float = 1.0) -> tuple[str, ...]:
    """Message if the direction of gravity contradicts the declared mounting; else empty."""
    estimate = estimate_gravity(robot, samples, trust=trust)
    return (
        (describe_mounting(estimate, robot),)
        if estimate is not None and estimate.contradicts_declared
        else ()
    )


def mounting_option(estimate: GravityEstimate, robot: Robot) -> str:
    """Value of --mounting for the estimated direction."""
    roll, pitch, _ = np.degrees(estimate.mounting)
    has_name = estimate.name in MOUNTINGS and estimate.name != mounting_name(robot.gravity)
    return estimate.name if has_name else f"{roll:.1f},{pitch:.1f},0"


def describe_mounting(estimate: GravityEstimate, robot: Robot) -> str:
    """Sentence about the estimated mounting, with the option to set."""
    declared, option = mounting_name(robot.gravity), mounting_option(estimate, robot)
    fits = option if estimate.name == declared else estimate.name
    return (
        f"gravity fits {fits}, you said {declared}: it comes from {np.degrees(estimate.angle):.0f} "
        f"deg (standard deviation {np.degrees(estimate.std):.1f}) off the declared direction. Give "
        f"--mounting {option}, or check the torque signs and the position offsets."
    )


class _DirectionGram:
    """Least squares for any direction of gravity, from one Gram matrix of all columns."""

    def __init__(self, robot: Robot, samples: Samples, moving_rows: Any, trust: float) -> None:
        self.robot, self.samples, self.trust = robot, samples, trust
        self.rows = moving_rows[:: max(1, len(moving_rows) // _MAXIMUM_ROWS)]
        joints, rows = robot.joints, self.rows
        motion = (samples.position[rows], samples.velocity[rows], samples.acceleration[rows])
        regressors = {
            name: engine(robot, gravity=gravity_in_base(angles)).regressor(*motion)
            for name, angles in (
                ("-z", (0.0, 0.0, 0.0)),
                ("+z", (np.pi, 0.0, 0.0)),
                ("-y", (np.pi / 2, 0.0, 0.0)),
                ("+x", (0.0, np.pi / 2, 0.0)),
            )
        }
        without_gravity = 0.5 * (regressors["-z"] + regressors["+z"])
        parts = [
            without_gravity,
            regressors["+x"] - without_gravity,
            without_gravity - regressors["-y"],
            regressors["+z"] - without_gravity,
        ]
        # Columns of other terms: rotors, pre-sliding friction, offsets.
        model = TorqueModel(
            robot, friction_model("presliding", _WIDTHS), rotor_inertia=True, offset=True
        )
        load = np.where(samples.keep, samples.torque, 0.0)
        motor = model.columns.drive_at(samples, load=load)[rows]
        other_columns = model.columns.term_columns(samples.acceleration[rows], motor)
        self.columns = np.concatenate([*parts, other_columns], -1)
        self.links = robot.layout.size
        self.torque = np.where(samples.keep[rows], samples.torque[rows], 0.0)
        self.keep = samples.keep[rows]
        prior, centre, self.prior_is_default = gaussian_prior(
            TorqueModel(robot, None, rotor_inertia=False, offset=False)
        )
        self.prior, self.centre = prior, centre
        self.squares = [
            (c.T @ c, c.T @ y, float(y @ y))
            for c, y in (
                (self.columns[self.keep[:, j], j], self.torque[self.keep[:, j], j])
                for j in range(joints)
            )
        ]
        count = np.maximum(self.keep.sum(axis=0), 1)
        self.scale = count / np.maximum([0.01 * square[2] for square in self.squares], 1e-12)
        self.weight = trust
        self._add_up()

    def _add_up(self) -> None:
        self.gram = sum(w * g for w, (g, _, _) in zip(self.scale, self.squares, strict=True))
        self.right = sum(w * r for w, (_, r, _) in zip(self.scale, self.squares, strict=True))
        self.power = float(
            sum(w * y for w, (_, _, y) in zip(self.scale, self.squares, strict=True))
        )

    def _combine_blocks(
        self, g: Float[Array, " 3"], gram: Float[Array, "c c"], right: Float[Array, " c"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Normal equations for a direction: the four blocks of link columns added up."""
        p = self.links
        factors = np.array([1.0, *g])
        blocks = gram[: 4 * p, : 4 * p].reshape(4, p, 4, p)
        links = np.einsum("a,aibj,b->ij", factors, blocks, factors)
        across = np.einsum("a,aij->ij", factors, gram[: 4 * p, 4 * p :].reshape(4, p, -1))
        square = np.block([[links, across], [across.T, gram[4 * p :, 4 * p :]]])
        return square, np.concatenate([factors @ right[: 4 * p].reshape(4, p), right[4 * p :]])

    def best(self, g: Float[Array, " 3"]) -> tuple[float, Float[Array, " p"]]:
        """Minimum cost for a direction of gravity, and its parameters."""
        square, right = self._combine_blocks(g, self.gram, self.right)
        p = self.links
        square[:p, :p] += self.weight * self.prior
        right[:p] += self.weight * self.prior @ self.centre
        constant = self.power + self.weight * float(self.centre @ self.prior @ self.centre)
        theta = Gaussian(square, right).mean(1e-10)
        return constant - float(right @ theta), theta

    def residuals(self, g: Float[Array, " 3"], theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        p = self.links
        full = np.concatenate([*(f * theta[:p] for f in (1.0, *g)), theta[p:]])
        return self.torque - self.columns @ full

    def solve(self) -> GravityEstimate | None:
        declared = self.robot.gravity / STANDARD_GRAVITY
        direction = declared
        correlation_length = 1.0
        for iteration in range(_ROUNDS):
            starts = [declared, direction] if iteration else [declared, *_directions()]
            costs = [self.best(d)[0] for d in starts]
            order = np.argsort(costs)[: 3 if iteration == 0 else 1]
            candidates = [self._descend(starts[i]) for i in order]
            direction = min(candidates, key=lambda d: self.best(d)[0])
            residual = self.residuals(direction, self.best(direction)[1])
            squares = np.sum(np.where(self.keep, residual, 0.0) ** 2, axis=0)
            count = np.maximum(self.keep.sum(axis=0), 1)
            floor = 1e-6 * np.array([square[2] for square in self.squares])
            self.scale = count / np.maximum(squares, np.maximum(floor, 1e-12))
            # Residuals of neighbouring rows are correlated: fewer independent samples than rows.
            run = self.samples.run[self.rows]
            correlation_length = float(np.mean(correlation_samples(residual, self.keep, run)))
            self.weight = self.trust * correlation_length
            self._add_up()
        cost, theta = self.best(direction)
        gain = (self.best(declared)[0] - cost) / correlation_length
        residual = self.residuals(direction, theta)
        used_joints = np.flatnonzero(self.keep.sum(axis=0) > 1)
        nrmse = [
            np.sqrt(np.mean(residual[self.keep[:, j], j] ** 2))
            / max(self.torque[self.keep[:, j], j].std(), 1e-12)
            for j in used_joints
        ]
        return GravityEstimate(
            direction,
            declared,
            float(np.arccos(np.clip(direction @ declared, -1.0, 1.0))),
            self._std(direction, correlation_length),
            max(float(gain), 0.0),
            float(np.mean(nrmse)) if nrmse else float("nan"),
        )

    def _curvature(
        self, direction: Float[Array, " 3"], step: float = 0.02
    ) -> tuple[Float[Array, " 2"], Float[Array, "2 2"], Float[Array, "2 3"]]:
        """Gradient and Hessian of the cost along two tangents, by central differences."""
        tangents = _tangents(direction)

        def cost(u: float, w: float) -> float:
            return self.best(_step_on_sphere(direction, u * tangents[0] + w * tangents[1]))[0]

        centre = cost(0, 0)
        right, left, up, down = cost(step, 0), cost(-step, 0), cost(0, step), cost(0, -step)
        mixed = (cost(step, step) - right - up + centre) / step**2
        slope = np.array([right - left, up - down]) / (2 * step)
        hessian = np.array(
            [
                [(right - 2 * centre + left) / step**2, mixed],
                [mixed, (up - 2 * centre + down) / step**2],
            ]
        )
        return slope, hessian, tangents

    def _descend(self, start: Float[Array, " 3"]) -> Float[Array, " 3"]:
        """Minimise the cost on the sphere by Newton's method with step halving."""
        direction, cost = start, self.best(start)[0]
        for _ in range(20):
            slope, hessian, tangents = self._curvature(direction)
            values, vectors = np.linalg.eigh(hessian)
            values = np.maximum(np.abs(values), 1e-6 * np.abs(values).max() + 1e-300)
            step = -(vectors / values) @ (vectors.T @ slope)
            size = float(np.linalg.norm(step))
            step *= min(1.0, 0.7 / max(size, 1e-300))
            for _ in range(8):
                trial = _step_on_sphere(direction, step @ tangents)
                trial_cost = self.best(trial)[0]
                if trial_cost < cost:
                    break
                step = 0.4 * step
            else:
                break
            direction, has_converged = trial, cost - trial_cost < 1e-6 * abs(trial_cost) + 1e-9
            cost = trial_cost
            if has_converged or np.linalg.norm(step) < 1e-4:
                break
        return direction

    def _std(self, direction: Float[Array, " 3"], correlation_length: float) -> float:
        """Std along the least certain tangent; cost is -2 ln L times the length."""
        _, hessian, _ = self._curvature(direction)
        smallest_curvature = float(np.min(np.linalg.eigvalsh(hessian)))
        return (
            float(np.sqrt(2.0 * correlation_length / smallest_curvature))
            if smallest_curvature > 0.0
            else float(np.pi)
        )


def _directions() -> list[Float[Array, " 3"]]:
    """Unit vectors to the 26 faces, edges and corners of a cube."""
    grid = np.array(np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1], [-1.0, 0, 1])).reshape(3, -1).T
    grid = grid[np.any(grid != 0.0, axis=1)]
    return list(grid / np.linalg.norm(grid, axis=1)[:, None])


def _tangents(direction: Float[Array, " 3"]) -> Float[Array, "2 3"]:
    farthest_axis = np.eye(3)[int(np.argmin(np.abs(direction)))]
    first = np.cross(direction, farthest_axis)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(direction, first)])


def _step_on_sphere(direction: Float[Array, " 3"], step: Float[Array, " 3"]) -> Float[Array, " 3"]:
    size = np.linalg.norm(step)
    if size < 1e-15:
        return direction
    return np.cos(size) * direction + np.sin(size) * step / size


@dataclass(frozen=True, slots=True, eq=False)
class RemountedModel:
    """Fitted model for another mounting.

    Attributes:
        model: Model with the new mounting; links, friction and offsets unchanged.
        unknown: Base parameters that act in the new mounting and are not identifiable in the old
            one, as expressions; the model has them from the nominal robot.
        names: Their leading parameters, e.g. "link_1.hx".
        values: Their values in the model.
        torque_per_unit: Largest torque of one unit of each in each joint over random poses [N m
            per unit].
        statement: Summary of the above.
    """

    model: FittedModel
    unknown: tuple[str, ...]
    names: tuple[str, ...]
    values: Float[Array, " u"]
    torque_per_unit: Float[Array, "u j"]
    statement: str


def move_model(model: FittedModel, mounting: str | tuple[float, float, float]) -> RemountedModel:
    """Change the mounting of a fitted model and list the base parameters unknown there.

    Only the direction of gravity changes. With B and B' the base parameters of the old and the new
    mounting, a new one is known if its row of B' lies in the row space of B; if axis 1 was vertical
    and no longer is, two are unknown.
    """
    require_fitted(model, "move the model")
    angles = parse_mounting(mounting) if isinstance(mounting, str) else mounting
    moved = model.with_robot(model.robot.with_mounting(angles))
    # Rotor inertias are confounded with link parameters, so both bases include them.
    before, after = (
        base_parameters(TorqueModel(robot, None, rotor_inertia=True, offset=False))
        for robot in (model.robot, moved.robot)
    )
    rows = _new_rows(before, after)
    names = tuple(after.names[i] for i in rows)
    expressions = tuple(_expression(after, i) for i in rows)
    parts = model.layout.split(model.values)
    link_values = np.concatenate([parts.links.ravel(), parts.rotors])
    values = after.mapping[rows] @ link_values
    rng = np.random.default_rng(0)
    shape = (400, model.robot.joints)
    q = rng.uniform(-np.pi, np.pi, shape)
    columns = regressor(moved.robot, q, np.zeros(shape), np.zeros(shape))
    effect = np.abs(columns[..., after.columns[rows]]).max(axis=0).T if rows else np.zeros((0, 0))
    old_name, new_name = mounting_name(model.robot.gravity), mounting_name(moved.robot.gravity)
    if not rows:
        statement = (
            f"from {old_name} to {new_name}: every base parameter that acts there is known from "
            "the old "
            "mounting; torques are predicted as well as before."
        )
    else:
        sizes = "; ".join(
            f"{text} (taken as {value:.4g}; an error of 0.1 changes the torque of joint "
            f"{int(np.argmax(row)) + 1} by up to {0.1 * row.max():.3g} N m)"
            for text, value, row in zip(expressions, values, effect, strict=True)
        )
        statement = (
            f"from {old_name} to {new_name}: {len(rows)} base parameters act there that no motion "
            "in the "
            f"old mounting can show, and the model has them from the nominal robot: {sizes}. "
            "Record a run in the new mounting and fit both together to know them."
        )
    # Other base parameters act in the new mounting: their covariance is unknown.
    record = replace(model.training, base=None, std=None).with_warnings(f"moved {statement}")
    moved = moved.with_training(record)
    return RemountedModel(moved, expressions, names, values, effect, statement)


def _new_rows(before: BaseParameters, after: BaseParameters) -> list[int]:
    """Rows of the new mapping that extend the row space of the old one.

    The choice is not unique; rows farthest from the old row space are taken first.
    """
    basis = np.linalg.qr(before.mapping.T)[0]
    rows: list[int] = []
    size = np.linalg.norm(after.mapping, axis=1)
    while True:
        remainder = after.mapping - (after.mapping @ basis) @ basis.T
        fraction = np.linalg.norm(remainder, axis=1) / size
        i = int(np.argmax(fraction))
        if fraction[i] < 1e-6:
            return sorted(rows)
        rows.append(i)
        basis = np.column_stack([basis, remainder[i] / np.linalg.norm(remainder[i])])


def _expression(base: BaseParameters, row: int) -> str:
    from taufit.regression.estimate import expression

    return expression(base, row)
