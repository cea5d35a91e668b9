"""Proofs over complete curves: limits, distances and tip speed, between samples too.

Every proof halves the intervals on which its bound is too weak, until the bound holds on all of
them or a sample violates the limit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taufit.clearance.curve import Curve, Intervals, intervals
from taufit.clearance.space import CollisionSpace
from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import inverse_dynamics, jacobian
from taufit.robot import JointLimits, Robot

# First intervals [s]; halved as often as a bound requires, but not beyond these limits.
STEP_S = 0.02
_MINIMUM_INTERVAL_S = 1e-9
_MAXIMUM_INTERVALS = 3_000_000
# Curves with more pieces than this are first proved in blocks of pieces.
_MANY_PIECES, _BLOCK_SIZE = 2000, 12
# Tolerances: position [rad], fraction of speed, acceleration and jerk limits, distances [m].
POSITION_TOLERANCE, LIMIT_TOLERANCE, DISTANCE_TOLERANCE_M = 1e-6, 1e-3, 1e-3
# Torque is sampled: it follows position, speed and acceleration, which are bounded in between.
_TORQUE_STEP_S, _TORQUE_SAMPLES, _TORQUE_TOLERANCE = 0.005, 20_000, 0.02


@dataclass(frozen=True, slots=True)
class LimitViolation:
    """Limit or distance that a curve violates, or that could not be proved.

    Attributes:
        name: Name, e.g. "speed of elbow_joint" or "link 3 and link 5".
        kind: "position", "speed", "acceleration", "jerk", "torque", "tip speed" or "distance".
        value: Value reached, in the unit of the limit; for a distance, the shortfall [m].
        limit: Limit; for a distance, the required clearance [m].
        time: Time [s].
        is_shown: Whether a sample shows it; else only the proof failed.
    """

    name: str
    kind: str
    value: float
    limit: float
    time: float
    is_shown: bool = True

    def __str__(self) -> str:
        if not self.is_shown:
            return f"{self.name} could not be proved near {self.time:.3f} s"
        if self.kind == "distance":
            distance_mm = 1e3 * (self.limit - self.value)
            return (
                f"{self.name} come within {distance_mm:.0f} mm at {self.time:.3f} s; "
                f"{1e3 * self.limit:.0f} mm are kept"
                if distance_mm > 0.0
                else f"{self.name} touch ({-distance_mm:.0f} mm deep) at {self.time:.3f} s"
            )
        return f"{self.name} is {self.value:.4g} at {self.time:.3f} s, beyond {self.limit:.4g}"


# Upper bounds on a list of intervals, from samples at their starts and stops.
_Bounds = Callable[[Intervals, Array, Array], Float[Array, "n c"]]


def _halve(
    curve: Curve,
    first: Intervals,
    sample: Callable[[Array, Array], Float[Array, "n c"]],
    upper: _Bounds,
    allowed: Float[Array, " c"],
) -> tuple[int, int, float, Intervals, bool] | None:
    """Prove upper <= allowed on all intervals; else column, row, value, intervals, sampled."""
    current = first
    low, high = sample(current.piece, current.start), sample(current.piece, current.stop)
    count = 0
    while len(current):
        sampled = np.maximum(low, high)
        excess = sampled - allowed
        if float(excess.max(initial=-np.inf)) > 0.0:
            row, column = divmod(int(excess.argmax()), excess.shape[1])
            return column, row, float(sampled[row, column]), current, True
        is_open: Bool[Array, " n"] = np.any(upper(current, low, high) > allowed, axis=1)
        count += len(current)
        if not is_open.any():
            return None
        current, low, high = current.take(is_open), low[is_open], high[is_open]
        if count > _MAXIMUM_INTERVALS or float(current.length.min()) < _MINIMUM_INTERVAL_S:
            column = int((upper(current, low, high) - allowed)[0].argmax())
            return column, 0, float("nan"), current, False
        middle = current.middle
        middle_values = sample(current.piece, middle)
        piece = np.concatenate([current.piece, current.piece])
        start = np.concatenate([current.start, middle])
        stop = np.concatenate([middle, current.stop])
        current = Intervals(piece, start, stop)
        low, high = np.concatenate([low, middle_values]), np.concatenate([middle_values, high])
    return None


def prove_limits(
    curve: Curve,
    limits: JointLimits,
    names: tuple[str, ...],
    *,
    jerk: float = np.inf,
    tolerance: float = LIMIT_TOLERANCE,
) -> list[LimitViolation]:
    """Prove limits of position, speed, acceleration and jerk; empty if all are kept.

    Args:
        curve: Curve to be proved.
        limits: Joint limits.
        names: Joint names, for messages.
        jerk: Maximum jerk of every joint.
        tolerance: Tolerance of speed, acceleration and jerk, as a fraction.
    """
    first = intervals(curve, STEP_S)
    violations = []
    signed = np.concatenate([limits.upper, -limits.lower]) + POSITION_TOLERANCE
    checks: list[tuple[str, int, Float[Array, " c"], Callable[[Array], Array]]] = [
        ("position", 0, signed, lambda q: np.concatenate([q, -q], axis=1)),
        ("speed", 1, (1.0 + tolerance) * limits.velocity, np.abs),
        ("acceleration", 2, (1.0 + tolerance) * limits.acceleration, np.abs),
    ]
    if np.isfinite(jerk):
        checks.append(("jerk", 3, np.full(len(names), (1.0 + tolerance) * jerk), np.abs))
    for kind, order, allowed, transform in checks:
        finite = np.isfinite(allowed)
        if not finite.any():
            continue
        # Pieces whose hull is within the limits need no samples.
        hull = curve.bound(order, np.arange(len(curve.length)))
        allowed_magnitude = allowed.reshape(-1, hull.shape[1]).min(axis=0)
        failure = _halve(
            curve,
            first.take((hull > allowed_magnitude).any(axis=1)[first.piece]),
            lambda piece, time, o=order, f=transform: f(curve.value(o, piece, time)),  # type: ignore[misc]
            lambda current, low, high, o=order: _parabola(curve, o, current, low, high),  # type: ignore[misc]
            np.where(finite, allowed, np.inf),
        )
        if failure is not None:
            violations.append(_limit_excess(kind, failure, allowed, curve, names))
    return violations


def _parabola(
    curve: Curve, order: int, current: Intervals, low: Array, high: Array
) -> Float[Array, "n c"]:
    """max(ends) + h^2/8 max |second derivative|."""
    bend = current.length[:, None] ** 2 / 8.0 * curve.bound(order + 2, current.piece)
    if low.shape[1] == 2 * bend.shape[1]:
        bend = np.concatenate([bend, bend], axis=1)
    bound: Float[Array, "n c"] = np.maximum(low, high) + bend
    return bound


def _limit_excess(
    kind: str,
    failure: tuple[int, int, float, Intervals, bool],
    allowed: Float[Array, " c"],
    curve: Curve,
    names: tuple[str, ...],
) -> LimitViolation:
    column, row, value, current, sampled = failure
    limit, sign = float(allowed[column]), 1.0 if column < len(names) else -1.0
    time = float(curve.begin[current.piece[row]] + current.middle[row])
    name = f"{kind} of {names[column % len(names)]}"
    return LimitViolation(name, kind, sign * value, sign * limit, time, sampled)


def prove_clear(
    curve: Curve,
    space: CollisionSpace,
    *,
    slack: float = DISTANCE_TOLERANCE_M,
    step: float = 5 * STEP_S,
) -> LimitViolation | None:
    """Prove the clearance of every pair of bodies along a curve; None if all are kept.

    On an interval of length h with distances d0 and d1 at its ends and joint speeds up to v,
    d >= (d0 + d1 - h sum_j lever_j v_j)/2.

    Args:
        curve: Curve to be proved.
        space: Distances and levers.
        slack: Part of a required distance that may stay unproved [m], at most a fifth of it.
        step: First intervals [s].
    """
    if not space.names:
        return None
    allowed = space.slack(slack)

    def shortfall(piece: Array, time: Array) -> Float[Array, "n k"]:
        return -space.distances(curve.value(0, piece, time))

    def upper(current: Intervals, low: Array, high: Array) -> Float[Array, "n k"]:
        rate = speed_bounds(curve, current) @ space.levers.T
        out: Float[Array, "n k"] = 0.5 * (low + high + rate * current.length[:, None])
        return out

    first = intervals(curve, step)
    if len(curve.length) > _MANY_PIECES:
        first = first.take(_unproved_pieces(curve, space, allowed)[first.piece])
    failure = _halve(curve, first, shortfall, upper, allowed)
    if failure is None:
        return None
    column, row, value, current, sampled = failure
    required = float(space.required[column])
    time = float(curve.begin[current.piece[row]] + current.middle[row])
    name = space.names[column]
    return LimitViolation(
        name if sampled else f"the distance of {name}", "distance", value, required, time, sampled
    )


def _unproved_pieces(
    curve: Curve, space: CollisionSpace, allowed: Float[Array, " k"]
) -> Bool[Array, " p"]:
    """Pieces that are not proved by blocks of pieces.

    Within a block joint j travels at most s_j = sum of duration times largest speed, so that
    d >= (d0 + d1 - sum_j lever_j s_j)/2.
    """
    pieces = np.arange(len(curve.length))
    edges = pieces[::_BLOCK_SIZE]
    travel = np.add.reduceat(curve.bound(1, pieces) * curve.length[:, None], edges, axis=0)
    last = pieces[-1:]
    q = np.concatenate(
        [curve.value(0, edges, 0.0 * edges), curve.value(0, last, curve.length[last])]
    )
    distances = space.distances(q)
    bound = 0.5 * (distances[:-1] + distances[1:] - travel @ space.levers.T)
    is_open: Bool[Array, " p"] = (bound < -allowed).any(axis=1)[pieces // _BLOCK_SIZE]
    return is_open


def speed_bounds(curve: Curve, current: Intervals) -> Float[Array, "n j"]:
    """Upper bound of every joint's speed on intervals."""
    ends = [np.abs(curve.value(1, current.piece, time)) for time in (current.start, current.stop)]
    by_ends = _parabola(curve, 1, current, *ends)
    bounds: Float[Array, "n j"] = np.minimum(by_ends, curve.bound(1, current.piece))
    return bounds


def prove_tip_speed(
    curve: Curve, space: CollisionSpace, *, tolerance: float = LIMIT_TOLERANCE
) -> LimitViolation | None:
    """Prove that the tip speed stays below the limit of the scene; None if it does.

    |d/dt (J v)| <= sum_j r_j |a_j| + (sum_i |v_i|) (sum_j r_j |v_j|), r_j the tip's levers.
    """
    limit = space.scene.tip_speed
    if not np.isfinite(limit):
        return None
    robot, lever = space.robot, space.tip_levers

    def speed(piece: Array, time: Array) -> Float[Array, "n 1"]:
        q, v = curve.value(0, piece, time), curve.value(1, piece, time)
        out = np.empty((len(q), 1))
        for i in range(0, len(q), 2000):
            linear = jacobian(robot, q[i : i + 2000])[:, 3:]
            tip_velocity = np.einsum("nij,nj->ni", linear, v[i : i + 2000])
            out[i : i + 2000, 0] = np.linalg.norm(tip_velocity, axis=1)
        return out

    def upper(current: Intervals, low: Array, high: Array) -> Float[Array, "n 1"]:
        v = speed_bounds(curve, current)
        ends = [
            np.abs(curve.value(2, current.piece, time)) for time in (current.start, current.stop)
        ]
        a = np.minimum(_parabola(curve, 2, current, *ends), curve.bound(2, current.piece))
        rate = a @ lever + v.sum(axis=1) * (v @ lever)
        out: Float[Array, "n 1"] = 0.5 * (low + high + (rate * current.length)[:, None])
        return out

    allowed = np.array([(1.0 + tolerance) * limit])
    failure = _halve(curve, intervals(curve, STEP_S), speed, upper, allowed)
    if failure is None:
        return None
    _, row, value, current, sampled = failure
    time = float(curve.begin[current.piece[row]] + current.middle[row])
    return LimitViolation("the speed of the tip", "tip speed", value, limit, time, sampled)


def check_torque(
    curve: Curve, robot: Robot, torque: Float[Array, " j"], names: tuple[str, ...]
) -> LimitViolation | None:
    """Check the torque of the links at samples of the curve; None if all are within 2 %."""
    finite: Bool[Array, " j"] = np.isfinite(torque)
    if not finite.any():
        return None
    step = max(_TORQUE_STEP_S, float(curve.length.sum()) / _TORQUE_SAMPLES)
    current = intervals(curve, step)
    q, v, a = (curve.value(order, current.piece, current.start) for order in range(3))
    load = np.abs(inverse_dynamics(robot, q, v, a))[:, finite] / torque[finite]
    row, column = divmod(int(load.argmax()), load.shape[1])
    if load[row, column] <= 1.0 + _TORQUE_TOLERANCE:
        return None
    joint = int(np.flatnonzero(finite)[column])
    time = float(curve.begin[current.piece[row]] + current.start[row])
    value = float(load[row, column] * torque[joint])
    return LimitViolation(f"torque of {names[joint]}", "torque", value, float(torque[joint]), time)
