"""Normal equations of hypotheses, fold by fold, and their least-squares solution.

With W the rigid columns, F the drive columns of each joint, and n_j independent rows per joint,

    cost(theta, phi) = sum_j n_j log(|tau_j - W_j theta - F_j phi_j|^2 / |tau_j|^2)
                       + (theta - theta0)' Q (theta - theta0)

is minimised by reweighted least squares. Friction with negative power summed over the rows, and
rotors of negative inertia, are not accepted: their columns are left out. Sums over folds add up,
so leaving one out is a subtraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import Gaussian, inverse_at_unit_diagonal
from taufit.core.parameters import LinkLayout

_ROUNDS = 3
# Nrmse below this is noise and no further evidence.
NRMSE_FLOOR = 0.01
# Drive columns of a joint (friction, rotor, offset), and the friction columns among them.
DRIVE_COLUMNS, FRICTION_COLUMNS = 8, 6
_RIDGE = 1e-9 * np.eye(DRIVE_COLUMNS)


@dataclass(frozen=True, slots=True, eq=False)
class NormalEquations:
    """Sums over the rows of each fold and joint.

    Attributes:
        square: Gram matrix of the columns: links first, then the drive.
        right: Products of columns and torque.
        power: Sum of squared torque.
        total: Sum of torque.
        friction_power: Products of friction columns and velocity.
        count: Number of rows.
    """

    square: Float[Array, "f j c c"]
    right: Float[Array, "f j c"]
    power: Float[Array, "f j"]
    total: Float[Array, "f j"]
    friction_power: Float[Array, "f j d"]
    count: Float[Array, "f j"]

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.square - other.square,
            self.right - other.right,
            self.power - other.power,
            self.total - other.total,
            self.friction_power - other.friction_power,
            self.count - other.count,
        )

    @property
    def pooled(self) -> NormalEquations:
        """Sum over all folds."""
        return NormalEquations(
            self.square.sum(axis=0, keepdims=True),
            self.right.sum(axis=0, keepdims=True),
            self.power.sum(axis=0, keepdims=True),
            self.total.sum(axis=0, keepdims=True),
            self.friction_power.sum(axis=0, keepdims=True),
            self.count.sum(axis=0, keepdims=True),
        )

    def fold(self, f: int) -> NormalEquations:
        """Sums of one fold."""
        rows = slice(f, f + 1)
        return NormalEquations(
            self.square[rows],
            self.right[rows],
            self.power[rows],
            self.total[rows],
            self.friction_power[rows],
            self.count[rows],
        )

    @property
    def torque_variation(self) -> Float[Array, " j"]:
        """Squared torque about its mean, over all folds."""
        count = np.maximum(self.count.sum(axis=0), 1.0)
        return np.maximum(self.power.sum(axis=0) - self.total.sum(axis=0) ** 2 / count, 1e-12)

    def residual_squares(
        self, theta: Float[Array, " p"], phi: Float[Array, "j o"]
    ) -> Float[Array, " j"]:
        """Sum of squared residuals over all folds."""
        x = np.concatenate([np.broadcast_to(theta, (len(phi), len(theta))), phi], axis=1)
        folded = np.einsum("fjab,jb->ja", self.square, x)
        linear = np.einsum("fja,ja->j", self.right, x)
        return np.maximum(self.power.sum(axis=0) - 2.0 * linear + np.sum(x * folded, axis=1), 0.0)


def normal_equations(
    rigid: Float[Array, "n j p"],
    drive: Float[Array, "n j o"],
    torque: Float[Array, "n j"],
    velocity: Float[Array, "n j"],
    keep: Bool[Array, "n j"],
    fold: Int[Array, " n"],
    folds: int,
    layout: LinkLayout,
) -> NormalEquations:
    """Sums of rows; rows with keep = False are excluded."""
    joints, p = torque.shape[1], rigid.shape[2]
    c = p + drive.shape[2]
    square, right = np.zeros((folds, joints, c, c)), np.zeros((folds, joints, c))
    power, total, count = (np.zeros((folds, joints)) for _ in range(3))
    friction_power = np.zeros((folds, joints, FRICTION_COLUMNS))
    for j in range(joints):
        # Links that a joint does not move do not load it.
        links = layout.columns_of_joint(j)
        live = np.r_[links, p:c].astype(int)
        kept = slice(None) if np.all(keep[:, j]) else np.flatnonzero(keep[:, j])
        columns = np.concatenate([rigid[:, j, links], drive[:, j]], axis=1)[kept]
        joint_torque, speed, fold_of_row = torque[kept, j], velocity[kept, j], fold[kept]
        for f in range(folds):
            rows = np.flatnonzero(fold_of_row == f) if folds > 1 else slice(None)
            block, y = columns[rows], joint_torque[rows]
            square[f, j][np.ix_(live, live)], right[f, j, live] = block.T @ block, block.T @ y
            power[f, j], total[f, j], count[f, j] = float(y @ y), float(y.sum()), len(y)
            friction = block[:, len(block.T) - drive.shape[2] :]
            friction_power[f, j] = speed[rows] @ friction[:, :FRICTION_COLUMNS]
    return NormalEquations(square, right, power, total, friction_power, count)


@dataclass(frozen=True, slots=True, eq=False)
class NormalSolution:
    """Solution of the normal equations for one prior.

    Attributes:
        links: theta.
        drive: phi of each joint.
        squares: Squared residuals per joint.
        distance: Squared distance from the prior mean under Q.
        has_load: Whether the prior allows a load of the last link.
    """

    links: Float[Array, " p"]
    drive: Float[Array, "j o"]
    squares: Float[Array, " j"]
    distance: float
    has_load: bool = False


def solve(
    sums: NormalEquations,
    independent: Float[Array, " j"],
    priors: Sequence[Float[Array, "p p"]],
    centre: Float[Array, " p"],
) -> list[NormalSolution]:
    """Parameters of least cost, for each prior precision Q."""
    pooled = sums.pooled if len(sums.power) > 1 else sums
    eliminated: dict[bytes, _EliminatedDrive] = {}

    def eliminate(allowed: Bool[Array, "j o"]) -> _EliminatedDrive:
        key = allowed.tobytes()
        if key not in eliminated:
            eliminated[key] = _eliminate_drive(pooled, allowed, len(centre))
        return eliminated[key]

    return [_solve_for_prior(pooled, independent, prior, centre, eliminate) for prior in priors]


def _solve_for_prior(
    pooled: NormalEquations,
    independent: Float[Array, " j"],
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    eliminate: Callable[[Bool[Array, "j o"]], _EliminatedDrive],
) -> NormalSolution:
    spread = pooled.torque_variation
    squares = 0.05 * spread
    joints = len(spread)
    allowed = np.ones((joints, DRIVE_COLUMNS), bool)
    theta, phi = centre, np.zeros((joints, DRIVE_COLUMNS))
    for _ in range(_ROUNDS):
        theta, phi = _solve_weighted(eliminate(allowed), independent / squares, prior, centre)
        allowed[
            np.einsum("jd,jd->j", pooled.friction_power[0], phi[:, :FRICTION_COLUMNS]) < 0.0,
            :FRICTION_COLUMNS,
        ] = False
        allowed[phi[:, FRICTION_COLUMNS] < 0.0, FRICTION_COLUMNS] = False
        squares = np.maximum(pooled.residual_squares(theta, phi), NRMSE_FLOOR**2 * spread)
    distance = float((theta - centre) @ prior @ (theta - centre))
    return NormalSolution(theta, phi, squares, distance)


def covariance(
    sums: NormalEquations,
    independent: Float[Array, " j"],
    prior: Float[Array, "p p"],
    fitted: NormalSolution,
) -> Float[Array, "p p"]:
    """Covariance of the links, with the accepted drive columns marginalised."""
    eliminated = _eliminate_drive(sums.pooled, fitted.drive != 0.0, len(prior))
    square = prior + np.tensordot(independent / fitted.squares, eliminated.square, 1)
    return inverse_at_unit_diagonal(square, 1e-10)


def residual_lower_bound(sums: NormalEquations) -> Float[Array, " j"]:
    """Squared residuals of each joint with independent links: a lower bound for any parameters."""
    pooled = sums.pooled
    out = np.zeros(pooled.power.shape[1])
    for j in range(len(out)):
        square, right = pooled.square[0, j], pooled.right[0, j]
        size = np.sqrt(np.maximum(np.diag(square), 1e-300))
        live = size > 1e-9 * max(float(size.max()), 1e-300)
        scaled = square[np.ix_(live, live)] / np.outer(size[live], size[live])
        values, vectors = np.linalg.eigh(scaled)
        positive = values > 1e-10 * max(float(values[-1]), 1e-300)
        projected = vectors[:, positive].T @ (right[live] / size[live])
        out[j] = pooled.power[0, j] - float(np.sum(projected**2 / values[positive]))
    return np.maximum(out, NRMSE_FLOOR**2 * pooled.torque_variation)


@dataclass(frozen=True, slots=True, eq=False)
class _EliminatedDrive:
    """Normal equations of every joint with its allowed drive columns eliminated."""

    square: Float[Array, "j p p"]
    right: Float[Array, "j p"]
    inverse: Float[Array, "j o o"]
    coupling: Float[Array, "j p o"]
    target: Float[Array, "j o"]


def _eliminate_drive(
    pooled: NormalEquations, allowed: Bool[Array, "j o"], p: int
) -> _EliminatedDrive:
    square, right = pooled.square[0], pooled.right[0]
    pairs = allowed[:, :, None] & allowed[:, None, :]
    inner = np.where(pairs, square[:, p:, p:], 0.0)
    size = np.sqrt(np.maximum(np.diagonal(inner, axis1=1, axis2=2), 0.0))
    size[size == 0.0] = 1.0
    outer = size[:, :, None] * size[:, None, :]
    inverse = np.where(pairs, np.linalg.pinv(inner / outer + _RIDGE), 0.0) / outer
    coupling, target = square[:, :p, p:], right[:, p:]
    gain = coupling @ inverse
    return _EliminatedDrive(
        square[:, :p, :p] - gain @ coupling.transpose(0, 2, 1),
        right[:, :p] - np.einsum("jpo,jo->jp", gain, target),
        inverse,
        coupling,
        target,
    )


def _solve_weighted(
    joints: _EliminatedDrive,
    weight: Float[Array, " j"],
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
) -> tuple[Float[Array, " p"], Float[Array, "j o"]]:
    """Solution theta and phi of the weighted least squares; phi of columns left out is zero."""
    precision = prior + np.tensordot(weight, joints.square, 1)
    theta = Gaussian(precision, prior @ centre + weight @ joints.right).mean(1e-10)
    drive_target = joints.target - np.einsum("jpo,p->jo", joints.coupling, theta)
    return theta, np.einsum("job,jb->jo", joints.inverse, drive_target)
