"""Proofs over complete curves: limits, distances and tip speed, between samples too.

Every proof halves the intervals on which its bound is too weak, until the bound holds on all of
them or a sample violates the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taufit.clearance.curve import Curve, Intervals, intervals
from taufit.clearance.space import Space
from taufit.core.arrays import Array, Bool, Float
from taufit.dynamics import inverse_dynamics, jacobian
from taufit.robot import Limits, Robot

# First intervals [s]; halved as often as a bound requires, but not beyond these limits.
STEP_S = 0.02
_SHORTEST = 1e-9
_MOST_INTERVALS = 3_000_000
# Curves with more pieces than this are first proved in blocks of pieces.
_MANY_PIECES, _BLOCK = 2000, 12
# Tolerances: position [rad], fraction of speed, acceleration and jerk limits, distances [m].
POSITION, SHARE, DISTANCE = 1e-6, 1e-3, 1e-3
# Torque is sampled: it follows position, speed and acceleration, which are bounded in between.
_TORQUE_STEP_S, _TORQUE_SAMPLES, _TORQUE_SHARE = 0.005, 20_000, 0.02


@dataclass(frozen=True, slots=True)
class Excess:
    """Limit or distance that a curve violates, or that could not be proved.

    Attributes:
        what: Name, e.g. "speed of elbow_joint" or "link 3 and link 5".
        kind: "position", "speed", "acceleration", "jerk", "torque", "tip speed" or "distance".
        value: Value reached, in the unit of the limit; for a distance, the shortfall [m].
        limit: Limit; for a distance, the required clearance [m].
        time: Time [s].
        proved: Whether a sample shows it; else only the proof failed.
    """

    what: str
    kind: str
    value: float
    limit: float
    time: float
    proved: bool = True

    def __str__(self) -> str:
        if not self.proved:
            return f"{self.what} could not be proved near {self.time:.3f} s"
        if self.kind == "distance":
            apart = 1e3 * (self.limit - self.value)
            return (
                f"{self.what} come within {apart:.0f} mm at {self.time:.3f} s; "
                f"{1e3 * self.limit:.0f} mm are kept"
                if apart > 0.0
                else f"{self.what} touch ({-apart:.0f} mm deep) at {self.time:.3f} s"
            )
        return f"{self.what} is {self.value:.4g} at {self.time:.3f} s, beyond {self.limit:.4g}"


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
    now = first
    low, high = sample(now.piece, now.start), sample(now.piece, now.stop)
    done = 0
    while len(now):
        seen = np.maximum(low, high)
        over = seen - allowed
        if float(over.max(initial=-np.inf)) > 0.0:
            row, column = divmod(int(over.argmax()), over.shape[1])
            return column, row, float(seen[row, column]), now, True
        again: Bool[Array, " n"] = np.any(upper(now, low, high) > allowed, axis=1)
        done += len(now)
        if not again.any():
            return None
        now, low, high = now.take(again), low[again], high[again]
        if done > _MOST_INTERVALS or float(now.length.min()) < _SHORTEST:
            column = int((upper(now, low, high) - allowed)[0].argmax())
            return column, 0, float("nan"), now, False
        middle = now.middle
        between = sample(now.piece, middle)
        piece = np.concatenate([now.piece, now.piece])
        start = np.concatenate([now.start, middle])
        stop = np.concatenate([middle, now.stop])
        now = Intervals(piece, start, stop)
        low, high = np.concatenate([low, between]), np.concatenate([between, high])
    return None


def prove_limits(
    curve: Curve,
    limits: Limits,
    names: tuple[str, ...],
    *,
    jerk: float = np.inf,
    share: float = SHARE,
) -> list[Excess]:
    """Prove limits of position, speed, acceleration and jerk; empty if all are kept.

    Args:
        curve: Curve to be proved.
        limits: Joint limits.
        names: Joint names, for messages.
        jerk: Maximum jerk of every joint.
        share: Tolerance of speed, acceleration and jerk, as a fraction.
    """
    first = intervals(curve, STEP_S)
    out = []
    signed = np.concatenate([limits.upper, -limits.lower]) + POSITION
    checks: list[tuple[str, int, Float[Array, " c"], Callable[[Array], Array]]] = [
        ("position", 0, signed, lambda q: np.concatenate([q, -q], axis=1)),
        ("speed", 1, (1.0 + share) * limits.velocity, np.abs),
        ("acceleration", 2, (1.0 + share) * limits.acceleration, np.abs),
    ]
    if np.isfinite(jerk):
        checks.append(("jerk", 3, np.full(len(names), (1.0 + share) * jerk), np.abs))
    for kind, order, allowed, form in checks:
        finite = np.isfinite(allowed)
        if not finite.any():
            continue
        # Pieces whose hull is within the limits need no samples.
        hull = curve.bound(order, np.arange(len(curve.length)))
        room = allowed.reshape(-1, hull.shape[1]).min(axis=0)
        found = _halve(
            curve,
            first.take((hull > room).any(axis=1)[first.piece]),
            lambda piece, time, o=order, f=form: f(curve.value(o, piece, time)),  # type: ignore[misc]
            lambda now, low, high, o=order: _parabola(curve, o, now, low, high),  # type: ignore[misc]
            np.where(finite, allowed, np.inf),
        )
        if found is not None:
            out.append(_named(kind, found, allowed, curve, names))
    return out


def _parabola(
    curve: Curve, order: int, now: Intervals, low: Array, high: Array
) -> Float[Array, "n c"]:
    """max(ends) + h^2/8 max |second derivative|."""
    bend = now.length[:, None] ** 2 / 8.0 * curve.bound(order + 2, now.piece)
    if low.shape[1] == 2 * bend.shape[1]:
        bend = np.concatenate([bend, bend], axis=1)
    out: Float[Array, "n c"] = np.maximum(low, high) + bend
    return out


def _named(
    kind: str,
    found: tuple[int, int, float, Intervals, bool],
    allowed: Float[Array, " c"],
    curve: Curve,
    names: tuple[str, ...],
) -> Excess:
    column, row, value, now, sampled = found
    limit, sign = float(allowed[column]), 1.0 if column < len(names) else -1.0
    time = float(curve.begin[now.piece[row]] + now.middle[row])
    name = f"{kind} of {names[column % len(names)]}"
    return Excess(name, kind, sign * value, sign * limit, time, sampled)


def prove_clear(
    curve: Curve, space: Space, *, slack: float = DISTANCE, step: float = 5 * STEP_S
) -> Excess | None:
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

    def short(piece: Array, time: Array) -> Float[Array, "n k"]:
        return -space.distances(curve.value(0, piece, time))

    def upper(now: Intervals, low: Array, high: Array) -> Float[Array, "n k"]:
        rate = speeds(curve, now) @ space.levers.T
        out: Float[Array, "n k"] = 0.5 * (low + high + rate * now.length[:, None])
        return out

    first = intervals(curve, step)
    if len(curve.length) > _MANY_PIECES:
        first = first.take(_open_pieces(curve, space, allowed)[first.piece])
    found = _halve(curve, first, short, upper, allowed)
    if found is None:
        return None
    column, row, value, now, sampled = found
    kept = float(space.kept[column])
    time = float(curve.begin[now.piece[row]] + now.middle[row])
    name = space.names[column]
    return Excess(
        name if sampled else f"the distance of {name}", "distance", value, kept, time, sampled
    )


def _open_pieces(curve: Curve, space: Space, allowed: Float[Array, " k"]) -> Bool[Array, " p"]:
    """Pieces that are not proved by blocks of pieces.

    Within a block joint j travels at most s_j = sum of duration times largest speed, so that
    d >= (d0 + d1 - sum_j lever_j s_j)/2.
    """
    pieces = np.arange(len(curve.length))
    edges = pieces[::_BLOCK]
    travel = np.add.reduceat(curve.bound(1, pieces) * curve.length[:, None], edges, axis=0)
    last = pieces[-1:]
    q = np.concatenate(
        [curve.value(0, edges, 0.0 * edges), curve.value(0, last, curve.length[last])]
    )
    free = space.distances(q)
    bound = 0.5 * (free[:-1] + free[1:] - travel @ space.levers.T)
    out: Bool[Array, " p"] = (bound < -allowed).any(axis=1)[pieces // _BLOCK]
    return out


def speeds(curve: Curve, now: Intervals) -> Float[Array, "n j"]:
    """Upper bound of every joint's speed on intervals."""
    ends = [np.abs(curve.value(1, now.piece, time)) for time in (now.start, now.stop)]
    by_ends = _parabola(curve, 1, now, *ends)
    out: Float[Array, "n j"] = np.minimum(by_ends, curve.bound(1, now.piece))
    return out


def prove_tip_speed(curve: Curve, space: Space, *, share: float = SHARE) -> Excess | None:
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
            moved = np.einsum("nij,nj->ni", linear, v[i : i + 2000])
            out[i : i + 2000, 0] = np.linalg.norm(moved, axis=1)
        return out

    def upper(now: Intervals, low: Array, high: Array) -> Float[Array, "n 1"]:
        v = speeds(curve, now)
        ends = [np.abs(curve.value(2, now.piece, time)) for time in (now.start, now.stop)]
        a = np.minimum(_parabola(curve, 2, now, *ends), curve.bound(2, now.piece))
        rate = a @ lever + v.sum(axis=1) * (v @ lever)
        out: Float[Array, "n 1"] = 0.5 * (low + high + (rate * now.length)[:, None])
        return out

    allowed = np.array([(1.0 + share) * limit])
    found = _halve(curve, intervals(curve, STEP_S), speed, upper, allowed)
    if found is None:
        return None
    _, row, value, now, sampled = found
    time = float(curve.begin[now.piece[row]] + now.middle[row])
    return Excess("the speed of the tip", "tip speed", value, limit, time, sampled)


def sampled_torque(
    curve: Curve, robot: Robot, torque: Float[Array, " j"], names: tuple[str, ...]
) -> Excess | None:
    """Check the torque of the links at samples of the curve; None if all are within 2 %."""
    finite: Bool[Array, " j"] = np.isfinite(torque)
    if not finite.any():
        return None
    step = max(_TORQUE_STEP_S, float(curve.length.sum()) / _TORQUE_SAMPLES)
    now = intervals(curve, step)
    q, v, a = (curve.value(order, now.piece, now.start) for order in range(3))
    load = np.abs(inverse_dynamics(robot, q, v, a))[:, finite] / torque[finite]
    row, column = divmod(int(load.argmax()), load.shape[1])
    if load[row, column] <= 1.0 + _TORQUE_SHARE:
        return None
    joint = int(np.flatnonzero(finite)[column])
    time = float(curve.begin[now.piece[row]] + now.start[row])
    value = float(load[row, column] * torque[joint])
    return Excess(f"torque of {names[joint]}", "torque", value, float(torque[joint]), time)
