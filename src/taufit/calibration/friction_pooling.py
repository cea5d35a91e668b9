"""Friction curves of several joints together: their coefficients scatter around common ones.

With the level L of a joint's friction, its coefficients c are

    c_k = unit_k (mean_k + deviation_k),    deviation_k ~ N(0, scatter_k^2)

where unit_k is L, over the fastest tested speed to the power of the term, and 1 for friction by
load. `mean`, `scatter` and the shape parameters common to the joints maximise the evidence of all
strokes (the marginal likelihood [Bishop2006]). A joint then takes from the others what its own
strokes do not show, and one that clearly differs keeps its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from operator import attrgetter

import numpy as np

from taufit.calibration.friction_curve import (
    count_parameters,
    shape_jacobian,
    shape_prior,
    weighted_columns,
)
from taufit.calibration.friction_pairs import FrictionPairs
from taufit.calibration.friction_test import (
    FrictionFit,
    assemble_fit,
    droppable_terms,
    solve_passive,
)
from taufit.calibration.passivity import PassivityConstraints, passivity_constraints
from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.threads import one_blas_thread
from taufit.terms import LOAD
from taufit.terms.friction import Friction

# Priors, in levels of friction: of a mean coefficient, and of the logarithm of a scatter. Chosen on
# simulated arms of plain, power-law and Stribeck friction, equal and drawn by joint (seeds 11 to
# 13); the benchmark scores two of these arms on other seeds.
_MEAN_STD = 1.5
_USUAL_SCATTER, _SCATTER_LOG_STD = 0.3, 1.5
# Standard deviation of the logarithm of a joint's shape parameters around the common ones.
_SHAPE_LOG_STD = 0.1
_STARTS, _GRID_POINTS, _MAX_EVALUATIONS = 4, 7, 3000
# A coefficient whose variance is above this fraction of its prior's is that of the other joints.
_BORROWED_FRACTION = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _PooledJoint:
    """Data of one joint.

    Attributes:
        pairs: Friction pairs whose residuals have a standard deviation of one.
        unit: Unit of each coefficient.
        constraints: Passivity up to the top speed of the joint; None: not constrained.
    """

    pairs: FrictionPairs
    unit: Float[Array, " k"]
    constraints: PassivityConstraints | None


@dataclass(frozen=True, slots=True, eq=False)
class _PooledRobot:
    """Coefficients common to the joints, at given shapes and scatters.

    Attributes:
        cost: -2 ln(evidence), with the priors of mean, scatter and shape.
        active: Terms that were not dropped.
        mean, scatter: Of the active coefficients, in their units.
        mean_covariance: Of the mean.
        shape: Shape parameters.
    """

    cost: float
    active: Bool[Array, " k"]
    mean: Float[Array, " k"]
    scatter: Float[Array, " k"]
    mean_covariance: Float[Array, "k k"]
    shape: Float[Array, " s"]


@one_blas_thread
def pool_friction(
    pairs_by_joint: Sequence[FrictionPairs],
    model: Friction,
    top_speeds: Sequence[float | None],
    *,
    passive: bool = True,
) -> list[FrictionFit]:
    """Fit one friction model to all joints, whose coefficients scatter around common ones.

    Args:
        pairs_by_joint: Weighted friction pairs, one entry per joint.
        model: Friction model; terms that lower the score are dropped in all joints.
        top_speeds: Speed up to which friction must not fall, per joint [rad/s].
        passive: Constrain the viscous part not to fall with speed.
    """
    fastest = max(float(pairs.velocity.max()) for pairs in pairs_by_joint)
    joints = []
    for pairs, top_speed in zip(pairs_by_joint, top_speeds, strict=True):
        limit = max(top_speed or 0.0, 2.0 * float(pairs.velocity.max()))
        joints.append(
            _PooledJoint(
                _scale_to_noise(pairs),
                _units(model, fastest, float(np.median(pairs.torque))),
                passivity_constraints(model, limit) if passive else None,
            )
        )
    constraints = None
    if passive:
        limit = max(2.0 * fastest, *(speed or 0.0 for speed in top_speeds))
        rows = passivity_constraints(model, limit).rows * _units(model, fastest, 1.0)
        constraints = PassivityConstraints(rows)
    strokes = sum(len(np.unique(pairs.labels)) for pairs in pairs_by_joint)

    def score(robot: _PooledRobot) -> float:
        """-2 ln(evidence) with the penalty of the BIC."""
        # The joint with the largest load: on others a shape may have no effect.
        pairs = max(pairs_by_joint, key=lambda pairs: float(np.abs(pairs.load).max()))
        count = count_parameters(pairs, model, robot.shape, robot.active)
        return robot.cost + count * float(np.log(strokes))

    robot = _search_from_grid(joints, model, constraints)
    for i in _optional_terms(model):
        active = robot.active.copy()
        active[i] = False
        if i not in droppable_terms(model, robot.active) or not active.any():
            continue
        smaller = _maximise_evidence(joints, model, constraints, active, robot)
        if score(smaller) < score(robot):
            robot = smaller
    share = score(robot) / len(joints)
    return [replace(_fit_joint(joint, model, robot), score=share) for joint in joints]


def _optional_terms(model: Friction) -> list[int]:
    """Terms in the order in which they may be dropped: high powers of speed first."""
    return sorted(range(len(model.parameters)), key=lambda i: -model.parameters[i].power)


def _units(model: Friction, fastest: float, level: float) -> Float[Array, " k"]:
    """Unit of each coefficient."""
    return np.array(
        [1.0 if term.group == LOAD else level / fastest**term.power for term in model.parameters]
    )


def _scale_to_noise(pairs: FrictionPairs) -> FrictionPairs:
    """Pairs with weights that give strokes of one speed a scatter of one.

    The scatter is that around a mean per speed and a slope by load, whatever the friction model.
    """
    weight = pairs.weight
    assert weight is not None
    labels, speeds = pairs.labels, pairs.tested_speeds
    square = np.bincount(labels, weight**2)
    used = square > 0

    def stroke_mean(x: Array) -> Array:
        return np.bincount(labels, weight**2 * x)[used] / square[used]

    speed = np.argmin(np.abs(np.log(stroke_mean(pairs.velocity)[:, None] / speeds)), axis=1)
    columns = (
        np.column_stack([speed[:, None] == np.arange(len(speeds)), stroke_mean(np.abs(pairs.load))])
        * np.sqrt(square[used])[:, None]
    )
    target = np.sqrt(square[used]) * stroke_mean(pairs.torque)
    solution, _, rank, _ = np.linalg.lstsq(columns, target)
    degrees = len(target) - int(rank)
    if degrees < 8:
        return pairs
    variance = float(np.sum((target - columns @ solution) ** 2)) / degrees
    return replace(pairs, weight=weight / np.sqrt(max(variance, 1.0)))


def _search_from_grid(
    joints: Sequence[_PooledJoint], model: Friction, constraints: PassivityConstraints | None
) -> _PooledRobot:
    """Maximise the evidence from the best points of a grid of shapes."""
    axes = [np.geomspace(s.start[0], s.start[-1], _GRID_POINTS) for s in model.shapes]
    active = np.ones(len(model.parameters), bool)
    usual = np.full(len(active), _USUAL_SCATTER)
    grid = [
        _robot(joints, model, constraints, active, np.array(shape), usual)
        for shape in product(*axes)
    ]
    starts: list[_PooledRobot] = []
    for point in sorted(grid, key=attrgetter("cost")):
        if all(np.abs(np.log(point.shape / other.shape)).max() > 0.6 for other in starts):
            starts.append(point)
        if len(starts) == _STARTS:
            break
    solutions = [_maximise_evidence(joints, model, constraints, active, x) for x in starts]
    return min(solutions, key=attrgetter("cost"))


def _maximise_evidence(
    joints: Sequence[_PooledJoint],
    model: Friction,
    constraints: PassivityConstraints | None,
    active: Bool[Array, " k"],
    start: _PooledRobot,
) -> _PooledRobot:
    """Search shapes and scatters of the active terms from one start."""
    from scipy.optimize import minimize

    count = len(model.shapes)
    low, high = (np.log([getattr(s, end) for s in model.shapes]) for end in ("lower", "upper"))

    def robot(logs: Array) -> _PooledRobot:
        shape = np.exp(np.clip(logs[:count], low, high))
        return _robot(joints, model, constraints, active, shape, np.exp(logs[count:]))

    logs = np.log(np.r_[start.shape, start.scatter[active[start.active]]])
    options = {"xatol": 1e-2, "fatol": 1e-2, "maxfev": _MAX_EVALUATIONS, "adaptive": True}
    solution = minimize(lambda x: robot(x).cost, logs, method="Nelder-Mead", options=options)
    return robot(solution.x)


def _robot(
    joints: Sequence[_PooledJoint],
    model: Friction,
    constraints: PassivityConstraints | None,
    active: Bool[Array, " k"],
    shape: Float[Array, " s"],
    scatter: Float[Array, " m"],
) -> _PooledRobot:
    """Evidence and best mean.

    With G = A'A and b = A'y of a joint, T = diag(scatter^2) and M = 1 + T G,

        -2 ln p(y | mean) = y'y - b'M^-1 T b + ln det M - 2 mean'M^-T b + mean'G M^-1 mean
    """
    variance = scatter**2
    identity = np.eye(len(scatter))
    precision, right = identity / _MEAN_STD**2, np.zeros(len(scatter))
    cost = float(np.sum((np.log(scatter / _USUAL_SCATTER) / _SCATTER_LOG_STD) ** 2))
    cost += float(np.sum((shape_prior(joints[0].pairs, model) @ np.log(shape)) ** 2))
    for joint in joints:
        columns = weighted_columns(joint.pairs, model, shape, active) * joint.unit[active]
        target = joint.pairs.target
        gram, b = columns.T @ columns, columns.T @ target
        m = identity + variance[:, None] * gram
        inverse = np.linalg.inv(m)
        seen = gram @ inverse
        precision += 0.5 * (seen + seen.T)
        right += inverse.T @ b
        cost += float(target @ target - b @ inverse @ (variance * b))
        cost += float(np.linalg.slogdet(m)[1])
    triangle = np.linalg.cholesky(precision).T
    mean = solve_passive(triangle, np.linalg.solve(triangle.T, right), constraints, active)
    cost += float(mean @ precision @ mean - 2.0 * mean @ right)
    return _PooledRobot(cost, active, mean, scatter, np.linalg.inv(precision), shape)


def _fit_joint(joint: _PooledJoint, model: Friction, robot: _PooledRobot) -> FrictionFit:
    """Coefficients and shapes of one joint, with the common ones as prior."""
    from scipy.optimize import least_squares

    active = robot.active
    prior_std = robot.scatter * joint.unit[active]
    prior_target = robot.mean / robot.scatter

    def rows(pairs: FrictionPairs, shape: Array) -> tuple[Array, Array]:
        columns = weighted_columns(pairs, model, shape, active)
        return np.vstack([columns, np.diag(1.0 / prior_std)]), np.r_[pairs.target, prior_target]

    def coefficients(pairs: FrictionPairs, shape: Array) -> Array:
        return solve_passive(*rows(pairs, shape), joint.constraints, active)

    def residual(logs: Array) -> Array:
        columns, target = rows(joint.pairs, np.exp(logs))
        solution = solve_passive(columns, target, joint.constraints, active)
        distance = (logs - np.log(robot.shape)) / _SHAPE_LOG_STD
        return np.r_[target - columns @ solution, distance]

    shape = robot.shape
    if len(shape):
        low, high = (np.log([getattr(s, end) for s in model.shapes]) for end in ("lower", "upper"))
        start = np.clip(np.log(shape), low + 1e-9, high - 1e-9)
        shape = np.exp(least_squares(residual, start, bounds=(low, high), method="dogbox").x)
    c = coefficients(joint.pairs, shape)
    jacobian = np.column_stack(
        [
            weighted_columns(joint.pairs, model, shape, active),
            shape_jacobian(joint.pairs, model, shape, active, c),
        ]
    )
    std = np.r_[prior_std, _SHAPE_LOG_STD * shape]
    covariance = np.linalg.inv(jacobian.T @ jacobian + np.diag(std**-2))
    # The means are estimated, too.
    from_mean = covariance[:, : len(c)] / prior_std / robot.scatter
    covariance += from_mean @ robot.mean_covariance @ from_mean.T
    fit = assemble_fit(
        joint.pairs, model, shape, active, lambda pairs: coefficients(pairs, shape), covariance
    )
    borrowed = fit.coefficient_std[active] ** 2 > _BORROWED_FRACTION * prior_std**2
    is_load = np.array([term.group == LOAD for term in model.parameters])[active]
    if np.any(borrowed & is_load):
        message = (
            "friction by load is not shown by this joint's strokes; taken as in the other joints"
        )
        return replace(fit, warnings=(*fit.warnings, message))
    return fit
