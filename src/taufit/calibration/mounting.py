"""Which way is down, judged by the torques: whether an arm is mounted as declared.

Torque is linear in gravity g as it is in the links' parameters,

    tau = (Y_0 + g_x Y_x + g_y Y_y + g_z Y_z) theta + friction, rotor, offset,

so for every direction of g the best theta follows by linear least squares, and the residual is
a function of two angles. Its minimum is the direction gravity comes from; the nominal links stand
by as a weak prior (100 % each), which decides between a direction and its opposite where motion is
slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
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

# Gravity this far from where it was declared is another mounting, if the recording shows it to
# this many standard deviations and gains this much by it [deg, 1, squared noise levels].
LIMIT_DEG = 5.0
LIMIT_STD = 4.0
LIMIT_GAIN = 50.0

# Displacements over which friction may build up after a reversal [rad].
_WIDTHS = (3e-5, 3e-3, 3e-2)

_MOST_ROWS = 1500
_ROUNDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Gravity:
    """Where gravity comes from, as a recording says.

    Attributes:
        direction: Of gravity in the base frame, a unit vector.
        declared: The direction the robot's mounting says.
        angle: Between the two [rad].
        std: Standard deviation of the direction found, in its least certain sense [rad].
        gain: By how much the declared direction explains less, in squared noise levels of
            independent samples.
        left: Share of the torque that is unexplained with the direction found, mean over joints.
    """

    direction: Float[Array, " 3"]
    declared: Float[Array, " 3"]
    angle: float
    std: float
    gain: float
    left: float

    @property
    def wrong(self) -> bool:
        """Whether the declared mounting is refuted: 5 degrees, 4 standard deviations."""
        return bool(
            np.degrees(self.angle) > LIMIT_DEG
            and self.angle > LIMIT_STD * self.std
            and self.gain > LIMIT_GAIN
        )

    @property
    def mounting(self) -> tuple[float, float, float]:
        """Roll and pitch that give this direction [rad]; yaw about the vertical has no effect."""
        x, y, z = self.direction
        return (float(np.arctan2(-y, -z)), float(np.arcsin(np.clip(x, -1.0, 1.0))), 0.0)

    @property
    def name(self) -> str:
        """The mounting that fits: ground, ceiling, wall, or angles."""
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
            "wrong": self.wrong,
        }


def mounting_name(direction: Float[Array, " 3"], within_deg: float = 7.0) -> str:
    """A word for a direction of gravity in the base frame, with the angles where it needs them."""
    unit = np.asarray(direction, float) / np.linalg.norm(direction)
    for name, angles in MOUNTINGS.items():
        own = gravity_in_base(angles) / STANDARD_GRAVITY
        if np.degrees(np.arccos(np.clip(own @ unit, -1.0, 1.0))) < within_deg:
            return name
    roll = np.degrees(np.arctan2(-unit[1], -unit[2]))
    pitch = np.degrees(np.arcsin(np.clip(unit[0], -1.0, 1.0)))
    described = f"{round(roll)},{round(pitch)},0"
    side = np.degrees(np.arcsin(min(1.0, abs(unit[2]))))
    return f"a wall ({described})" if side < within_deg else f"a tilt ({described})"


def estimate_gravity(robot: Robot, samples: Samples, *, trust: float = 1.0) -> Gravity | None:
    """The direction of gravity a recording shows, or None where it cannot tell.

    Args:
        robot: Nominal or fitted, with the mounting that was declared. One without masses cannot
            tell.
        samples: Conditioned motion and torque.
        trust: In the robot's links: 1 is 100 % each, 100 is 10 %.
    """
    unsigned = samples.signed is not None and not np.all(samples.signed)
    if samples.joints != robot.joints or unsigned or not np.any(robot.parameters):
        return None
    picked = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
    if len(picked) < 100:
        return None
    return _DirectionGram(robot, samples, picked, trust).solve()


def mounting_findings(robot: Robot, samples: Samples, *, trust: float = 1.0) -> tuple[str, ...]:
    """A sentence where gravity does not come from where the mounting says; else nothing."""
    found = estimate_gravity(robot, samples, trust=trust)
    return (describe_mounting(found, robot),) if found is not None and found.wrong else ()


def mounting_option(found: Gravity, robot: Robot) -> str:
    """What was found as --mounting takes it."""
    roll, pitch, _ = np.degrees(found.mounting)
    named = found.name in MOUNTINGS and found.name != mounting_name(robot.gravity)
    return found.name if named else f"{roll:.1f},{pitch:.1f},0"


def describe_mounting(found: Gravity, robot: Robot) -> str:
    """What was found, in a sentence."""
    said, option = mounting_name(robot.gravity), mounting_option(found, robot)
    fits = option if found.name == said else found.name
    return (
        f"gravity fits {fits}, you said {said}: it comes from {np.degrees(found.angle):.0f} "
        f"deg (standard deviation {np.degrees(found.std):.1f}) off the declared direction. Give "
        f"--mounting {option}, or check the torque signs and the position offsets."
    )


class _DirectionGram:
    """Everything that does not depend on the direction: one Gram matrix of all columns."""

    def __init__(self, robot: Robot, samples: Samples, picked: Any, trust: float) -> None:
        self.robot, self.samples, self.trust = robot, samples, trust
        self.rows = picked[:: max(1, len(picked) // _MOST_ROWS)]
        joints, rows = robot.joints, self.rows
        motion = (samples.position[rows], samples.velocity[rows], samples.acceleration[rows])
        at = {
            name: engine(robot, gravity=gravity_in_base(angles)).regressor(*motion)
            for name, angles in (
                ("-z", (0.0, 0.0, 0.0)),
                ("+z", (np.pi, 0.0, 0.0)),
                ("-y", (np.pi / 2, 0.0, 0.0)),
                ("+x", (0.0, np.pi / 2, 0.0)),
            )
        }
        still = 0.5 * (at["-z"] + at["+z"])
        parts = [still, at["+x"] - still, still - at["-y"], at["+z"] - still]
        # What is not the links': rotors, friction that builds up after reversals, offsets.
        model = TorqueModel(
            robot, friction_model("presliding", _WIDTHS), rotor_inertia=True, offset=True
        )
        load = np.where(samples.keep, samples.torque, 0.0)
        motor = model.columns.drive_at(samples, load=load)[rows]
        rest = model.columns.term_columns(samples.acceleration[rows], motor)
        self.columns = np.concatenate([*parts, rest], -1)
        self.links = robot.layout.size
        self.torque = np.where(samples.keep[rows], samples.torque[rows], 0.0)
        self.keep = samples.keep[rows]
        prior, centre, self.guessed = gaussian_prior(
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

    def _folded(
        self, g: Float[Array, " 3"], gram: Float[Array, "c c"], right: Float[Array, " c"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Normal equations for a direction: the four blocks of links added up."""
        p = self.links
        factors = np.array([1.0, *g])
        blocks = gram[: 4 * p, : 4 * p].reshape(4, p, 4, p)
        links = np.einsum("a,aibj,b->ij", factors, blocks, factors)
        across = np.einsum("a,aij->ij", factors, gram[: 4 * p, 4 * p :].reshape(4, p, -1))
        square = np.block([[links, across], [across.T, gram[4 * p :, 4 * p :]]])
        return square, np.concatenate([factors @ right[: 4 * p].reshape(4, p), right[4 * p :]])

    def best(self, g: Float[Array, " 3"]) -> tuple[float, Float[Array, " p"]]:
        """Residual with gravity from a direction, and the parameters that leave it."""
        square, right = self._folded(g, self.gram, self.right)
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

    def solve(self) -> Gravity | None:
        declared = self.robot.gravity / STANDARD_GRAVITY
        found = declared
        apart = 1.0
        for turn in range(_ROUNDS):
            starts = [declared, found] if turn else [declared, *_directions()]
            costs = [self.best(d)[0] for d in starts]
            order = np.argsort(costs)[: 3 if turn == 0 else 1]
            tried = [self._descend(starts[i]) for i in order]
            found = min(tried, key=lambda d: self.best(d)[0])
            residual = self.residuals(found, self.best(found)[1])
            squares = np.sum(np.where(self.keep, residual, 0.0) ** 2, axis=0)
            count = np.maximum(self.keep.sum(axis=0), 1)
            floor = 1e-6 * np.array([square[2] for square in self.squares])
            self.scale = count / np.maximum(squares, np.maximum(floor, 1e-12))
            # Residuals of neighbouring rows are correlated: fewer independent ones than rows.
            run = self.samples.run[self.rows]
            apart = float(np.mean(correlation_samples(residual, self.keep, run)))
            self.weight = self.trust * apart
            self._add_up()
        cost, theta = self.best(found)
        gain = (self.best(declared)[0] - cost) / apart
        residual = self.residuals(found, theta)
        shown = np.flatnonzero(self.keep.sum(axis=0) > 1)
        share = [
            np.sqrt(np.mean(residual[self.keep[:, j], j] ** 2))
            / max(self.torque[self.keep[:, j], j].std(), 1e-12)
            for j in shown
        ]
        return Gravity(
            found,
            declared,
            float(np.arccos(np.clip(found @ declared, -1.0, 1.0))),
            self._std(found, apart),
            max(float(gain), 0.0),
            float(np.mean(share)) if share else float("nan"),
        )

    def _curvature(
        self, at: Float[Array, " 3"], step: float = 0.02
    ) -> tuple[Float[Array, " 2"], Float[Array, "2 2"], Float[Array, "2 3"]]:
        """Slope and second derivative of the cost in two tangents, by central differences."""
        tangents = _tangents(at)

        def cost(u: float, w: float) -> float:
            return self.best(_moved(at, u * tangents[0] + w * tangents[1]))[0]

        here = cost(0, 0)
        right, left, up, down = cost(step, 0), cost(-step, 0), cost(0, step), cost(0, -step)
        mixed = (cost(step, step) - right - up + here) / step**2
        slope = np.array([right - left, up - down]) / (2 * step)
        hessian = np.array(
            [
                [(right - 2 * here + left) / step**2, mixed],
                [mixed, (up - 2 * here + down) / step**2],
            ]
        )
        return slope, hessian, tangents

    def _descend(self, start: Float[Array, " 3"]) -> Float[Array, " 3"]:
        """Newton's method on the sphere, with steps that go down."""
        at, cost = start, self.best(start)[0]
        for _ in range(20):
            slope, hessian, tangents = self._curvature(at)
            values, vectors = np.linalg.eigh(hessian)
            values = np.maximum(np.abs(values), 1e-6 * np.abs(values).max() + 1e-300)
            step = -(vectors / values) @ (vectors.T @ slope)
            size = float(np.linalg.norm(step))
            step *= min(1.0, 0.7 / max(size, 1e-300))
            for _ in range(8):
                trial = _moved(at, step @ tangents)
                new = self.best(trial)[0]
                if new < cost:
                    break
                step = 0.4 * step
            else:
                break
            at, done = trial, cost - new < 1e-6 * abs(new) + 1e-9
            cost = new
            if done or np.linalg.norm(step) < 1e-4:
                break
        return at

    def _std(self, at: Float[Array, " 3"], apart: float) -> float:
        """In the least certain tangent; cost is minus twice the log-likelihood, `apart` times."""
        _, hessian, _ = self._curvature(at)
        least = float(np.min(np.linalg.eigvalsh(hessian)))
        return float(np.sqrt(2.0 * apart / least)) if least > 0.0 else float(np.pi)


def _directions() -> list[Float[Array, " 3"]]:
    """The 26 directions to faces, edges and corners of a cube."""
    grid = np.array(np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1], [-1.0, 0, 1])).reshape(3, -1).T
    grid = grid[np.any(grid != 0.0, axis=1)]
    return list(grid / np.linalg.norm(grid, axis=1)[:, None])


def _tangents(at: Float[Array, " 3"]) -> Float[Array, "2 3"]:
    least = np.eye(3)[int(np.argmin(np.abs(at)))]
    first = np.cross(at, least)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(at, first)])


def _moved(at: Float[Array, " 3"], step: Float[Array, " 3"]) -> Float[Array, " 3"]:
    size = np.linalg.norm(step)
    if size < 1e-15:
        return at
    return np.cos(size) * at + np.sin(size) * step / size


@dataclass(frozen=True, slots=True, eq=False)
class RemountedModel:
    """A model taken to another mounting.

    Attributes:
        model: With the new mounting; its links, friction and offsets as they were.
        unknown: Base parameters that act in the new mounting and that the old one cannot show, as
            expressions; the model has them from the nominal robot.
        names: Their leading parameters, e.g. "link_1.hx".
        values: What the model takes them to be.
        torque_per_unit: Largest torque one unit of each makes in each joint over random poses and
            motion [N m per unit].
        statement: All of this in words.
    """

    model: FittedModel
    unknown: tuple[str, ...]
    names: tuple[str, ...]
    values: Float[Array, " u"]
    torque_per_unit: Float[Array, "u j"]
    statement: str


def move_model(model: FittedModel, mounting: str | tuple[float, float, float]) -> RemountedModel:
    """The same arm mounted another way, and what is not known of it there.

    Only the direction of gravity changes. With B and B' the base parameters of the old and the new
    mounting, a new one is known if its row of B' lies in the row space of B; where axis 1 was
    vertical and no longer is, two are not.
    """
    require_fitted(model, "move the model")
    angles = parse_mounting(mounting) if isinstance(mounting, str) else mounting
    moved = model.with_robot(model.robot.with_mounting(angles))
    # Rotors hide among the links' columns, so they belong in the base of both mountings.
    before, after = (
        base_parameters(TorqueModel(robot, None, rotor_inertia=True, offset=False))
        for robot in (model.robot, moved.robot)
    )
    rows = _new_rows(before, after)
    names = tuple(after.names[i] for i in rows)
    expressions = tuple(_expression(after, i) for i in rows)
    parts = model.layout.split(model.values)
    known = np.concatenate([parts.links.ravel(), parts.rotors])
    values = after.mapping[rows] @ known
    rng = np.random.default_rng(0)
    shape = (400, model.robot.joints)
    q = rng.uniform(-np.pi, np.pi, shape)
    columns = regressor(moved.robot, q, np.zeros(shape), np.zeros(shape))
    effect = np.abs(columns[..., after.columns[rows]]).max(axis=0).T if rows else np.zeros((0, 0))
    said, now = mounting_name(model.robot.gravity), mounting_name(moved.robot.gravity)
    if not rows:
        described = (
            f"from {said} to {now}: every base parameter that acts there is known from the old "
            "mounting; torques are predicted as well as before."
        )
    else:
        sizes = "; ".join(
            f"{text} (taken as {value:.4g}; an error of 0.1 changes the torque of joint "
            f"{int(np.argmax(row)) + 1} by up to {0.1 * row.max():.3g} N m)"
            for text, value, row in zip(expressions, values, effect, strict=True)
        )
        described = (
            f"from {said} to {now}: {len(rows)} base parameters act there that no motion in the "
            f"old mounting can show, and the model has them from the nominal robot: {sizes}. "
            "Record a run in the new mounting and fit both together to know them."
        )
    # Other parameters act in the new mounting: what was known of the old ones' errors is not kept.
    record = replace(model.training, base=None, std=None).with_warnings(f"moved {described}")
    moved = moved.with_training(record)
    return RemountedModel(moved, expressions, names, values, effect, described)


def _new_rows(before: BaseParameters, after: BaseParameters) -> list[int]:
    """Rows of the new mapping that add something to the old one's row space.

    Which of the new rows are named is a matter of choice; those farthest from the old row space
    are, one after the other.
    """
    basis = np.linalg.qr(before.mapping.T)[0]
    rows: list[int] = []
    size = np.linalg.norm(after.mapping, axis=1)
    while True:
        rest = after.mapping - (after.mapping @ basis) @ basis.T
        share = np.linalg.norm(rest, axis=1) / size
        i = int(np.argmax(share))
        if share[i] < 1e-6:
            return sorted(rows)
        rows.append(i)
        basis = np.column_stack([basis, rest[i] / np.linalg.norm(rest[i])])


def _expression(base: BaseParameters, row: int) -> str:
    from taufit.regression.estimate import expression

    return expression(base, row)
