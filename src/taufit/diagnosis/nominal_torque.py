"""Comparison of recorded torque with the nominal robot, before any link is fitted.

Links that are fitted can absorb a reversed sign: a mirrored centre of mass makes the same torque if
the joints move together. Here every joint has only columns of the nominal robot, with coefficients
bounded by physics:

    y = s_g g + s_i (M a + c) + r a + k slip + d v + b

    0.4 <= s_g, s_i <= 2.5      wrong nominal masses
    r, k, d >= 0                rotor and friction
    |b| <= 0.1 rms(y)           sensor offset

It is fitted to y = tau and to y = -tau. With n independent rows and the ratio of the residuals,
2 n ln(ratio) is twice the log odds of the other sign. The same with gravity from any direction
guards against an undeclared mounting: then only friction and inertia decide.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.diagnosis.correction import Correction, DiagnosisRows
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.dynamics import gravity_torque, inverse_dynamics

# Bounds on factors of nominal gravity and inertia; bound on the offset, relative to the torque.
_MASS_FACTORS, _MAX_OFFSET = (0.4, 2.5), 0.1
# Odds (twice the logarithm) and ratio of residuals from which on a sign is decided. Clean joints of
# ten real arms reach odds of +5 for the wrong sign.
_MIN_ODDS, _MIN_RATIO = 25.0, 1.5
# Median ratio of residuals, declared gravity over gravity from anywhere, above which the declared
# direction is doubtful (described arms with masses off by 30 % reach 1.45); smallest relative
# residual of that ratio.
_MAX_TILT_RATIO, _MIN_RESIDUAL = 1.5, 0.02
# Rows compared; largest correlation time of residuals [s]; independent rows per second at most.
_ROWS, _MAX_CORRELATION_S, _MAX_INDEPENDENT = 400, 2.0, 2.0
_GRAVITY = 9.81
# Columns with one column of gravity: gravity, inertia, rotor; Coulomb, viscous, offset.
_GRAVITY_COLUMN, _INERTIA_COLUMN, _ROTOR_COLUMN, _FRICTION_COLUMNS = 0, 1, 2, (3, 4, 5)
# Student's t from which on a joint shows nominal gravity.
_MIN_T = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class SignEvidence:
    """Signs of recorded torque against the nominal robot.

    Attributes:
        decided: 1 where the recorded sign is right, -1 where the torque is reversed, 0 where the
            motion does not decide; per joint.
        odds: Twice the log odds of the other sign, per joint.
        tilt_ratio: Median residual with declared gravity over that with gravity from anywhere.
        residual: Residual of the nominal robot over the standard deviation of torque, with the
            better sign, per joint; nan where the torque does not vary.
    """

    decided: Int[Array, " j"]
    odds: Float[Array, " j"]
    tilt_ratio: float
    residual: Float[Array, " j"]

    @property
    def reversed_joints(self) -> list[int]:
        """Joints with reversed torque, from 0."""
        return np.flatnonzero(self.decided < 0).tolist()

    @property
    def is_reversed_throughout(self) -> bool:
        """Whether every joint that decides is reversed."""
        return bool(np.any(self.decided < 0) and not np.any(self.decided > 0))


def sign_evidence(
    evidence: HypothesisTest, select: Bool[Array, " n"] | None = None
) -> SignEvidence:
    """Compare both signs of every joint's torque with the nominal robot.

    Args:
        evidence: Rows of all files.
        select: Rows to compare; None for all.
    """
    rows = evidence.rows if select is None else evidence.rows.select(select)
    fraction = len(rows.torque) / max(len(evidence.indices), 1)
    rows = rows.select(slice(None, None, max(1, len(rows.torque) // _ROWS)))
    rate = len(rows.torque) / max(fraction * evidence.seconds, 1e-9)
    declared = _compare_signs(rows, _gravity_columns(rows, declared=True), rate)
    anywhere = _compare_signs(rows, _gravity_columns(rows, declared=False), rate)
    residual_ratio = declared.residual / np.maximum(anywhere.residual, _MIN_RESIDUAL)
    tilt_ratio = float(np.nanmedian(residual_ratio)) if np.isfinite(residual_ratio).any() else 1.0
    first, second = declared.decide(), anywhere.decide()
    contradicted = (second > 0) | ((second == 0) & (tilt_ratio > _MAX_TILT_RATIO))
    decided = np.where((first < 0) & contradicted, 0, first)
    return SignEvidence(decided, declared.odds, tilt_ratio, declared.residual)


def shows_nominal_gravity(evidence: HypothesisTest) -> bool:
    """Whether the torque of any joint follows nominal gravity, with t above 4."""
    return bool(np.any(gravity_factors(evidence) > 0.0))


def gravity_factors(evidence: HypothesisTest) -> Float[Array, " j"]:
    """Gravity in the torque over nominal gravity, per joint; nan where |t| is below 4.

    The factor is that of least squares with inertia, friction and offset of the joint alone.
    """
    return _factors(evidence, _GRAVITY_COLUMN, (_INERTIA_COLUMN, _ROTOR_COLUMN))


def inertia_factors(evidence: HypothesisTest) -> Float[Array, " j"]:
    """Inertia in the torque over that of the nominal links, as `gravity_factors`.

    Rotors count as part of it, so the factor is an upper bound on that of the links.
    """
    return _factors(evidence, _INERTIA_COLUMN, (_GRAVITY_COLUMN,))


def _factors(evidence: HypothesisTest, column: int, others: tuple[int, ...]) -> Float[Array, " j"]:
    """Coefficient of one column of each joint, beside others and friction."""
    factors = np.full(evidence.rows.torque.shape[1], np.nan)
    rows = evidence.rows
    used = [column, *others, *_FRICTION_COLUMNS]
    columns = _columns(rows, _gravity_columns(rows, declared=True))[..., used]
    rate = len(rows.torque) / max(evidence.seconds, 1e-9)
    for j in np.flatnonzero(rows.keep.sum(axis=0) > 20):
        keep = rows.keep[:, j]
        x, y = columns[keep, j], rows.torque[keep, j]
        size = np.sqrt(np.mean(x**2, axis=0))
        if size[0] <= 1e-9:
            continue
        x = x[:, size > 1e-9] / size[size > 1e-9]
        information = x.T @ x + 1e-9 * len(x) * np.eye(x.shape[1])
        coefficients = np.linalg.solve(information, x.T @ y)
        residual = y - x @ coefficients
        count = _independent_rows(residual, rate)
        variance = np.mean(residual**2) * np.linalg.inv(information)[0, 0] * len(x) / count
        if abs(coefficients[0]) > _MIN_T * np.sqrt(max(variance, 1e-300)):
            factors[j] = coefficients[0] / size[0]
    return factors


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """Log odds (twice) of the other sign, ratio of residuals, smaller relative residual."""

    odds: Float[Array, " j"]
    ratio: Float[Array, " j"]
    residual: Float[Array, " j"]

    def decide(self) -> Int[Array, " j"]:
        clear = (np.abs(self.odds) > _MIN_ODDS) & (np.abs(np.log(self.ratio)) > np.log(_MIN_RATIO))
        return np.where(clear, -np.sign(self.odds), 0.0).astype(int)


def _gravity_columns(rows: DiagnosisRows, *, declared: bool) -> Float[Array, "n j g"]:
    """Nominal gravity torque, or that of gravity along each axis of the base."""
    if declared:
        return gravity_torque(rows.robot, rows.position)[..., None]
    rest = np.zeros_like(rows.position)
    torques = [
        inverse_dynamics(rows.robot, rows.position, rest, rest, gravity=_GRAVITY * axis)
        for axis in np.eye(3)
    ]
    return np.stack(torques, axis=-1)


def _columns(rows: DiagnosisRows, gravity: Float[Array, "n j g"]) -> Float[Array, "n j c"]:
    """Columns of gravity, inertia, rotor, Coulomb friction, viscous friction and offset."""
    inertia = inverse_dynamics(rows.robot, rows.position, rows.velocity, rows.acceleration)
    inertia = inertia - gravity_torque(rows.robot, rows.position)
    drive = [inertia, rows.acceleration, rows.slip, rows.velocity, np.ones_like(rows.velocity)]
    return np.concatenate([gravity, np.stack(drive, axis=-1)], axis=-1)


def _compare_signs(rows: DiagnosisRows, gravity: Float[Array, "n j g"], rate: float) -> _Comparison:
    columns, bounds = _columns(rows, gravity), _Bounds.for_directions(gravity.shape[-1])
    joints = rows.torque.shape[1]
    odds, ratio, smaller = np.zeros(joints), np.ones(joints), np.full(joints, np.nan)
    for j in range(joints):
        torque = rows.torque[rows.keep[:, j], j]
        rms = float(np.sqrt(np.mean(torque**2))) if len(torque) > 20 else 0.0
        if rms == 0.0 or torque.std() == 0.0:
            continue
        recorded, other = (
            bounds.residual(columns[rows.keep[:, j], j], sign * torque) for sign in (1.0, -1.0)
        )
        a, b = (max(float(np.sqrt(np.mean(x**2))), 1e-9 * rms) for x in (recorded, other))
        count = _independent_rows(recorded if a < b else other, rate)
        ratio[j] = a / b
        odds[j] = 2.0 * count * np.log(a / b)
        smaller[j] = min(a, b) / torque.std()
    return _Comparison(odds, ratio, smaller)


def nominal_log_odds(evidence: HypothesisTest, correction: Correction) -> float:
    """Twice the log odds of a correction by the residuals of the nominal robot, over all joints.

    No link is fitted; joints are compared that have rows both with and without the correction.
    """
    step = max(1, len(evidence.indices) // _ROWS)
    judged = correction.judged_rows(evidence.rows.select(slice(None, None, step)))
    rate = len(judged.torque) / max(evidence.seconds, 1e-9)
    unchanged, corrected = (_relative_residuals(x) for x in (judged, correction.rows(judged)))
    total = 0.0
    for before, after in zip(unchanged, corrected, strict=True):
        if before is not None and after is not None:
            a, b = (max(float(np.sqrt(np.mean(x**2))), _MIN_RESIDUAL) for x in (before, after))
            total += 2.0 * _independent_rows(after if b < a else before, rate) * np.log(a / b)
    return total


def _relative_residuals(rows: DiagnosisRows) -> list[Float[Array, " n"] | None]:
    """Residual of the nominal robot over the standard deviation of torque; None without rows."""
    columns = _columns(rows, _gravity_columns(rows, declared=True))
    bounds, out = _Bounds.for_directions(1), list[Float[Array, " n"] | None]()
    for j in range(rows.torque.shape[1]):
        torque = rows.torque[rows.keep[:, j], j]
        varies = len(torque) > 20 and torque.std() > 0.0
        residual = bounds.residual(columns[rows.keep[:, j], j], torque) if varies else None
        out.append(None if residual is None else residual / torque.std())
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Bounds:
    """Bounds on the coefficients of each column, without that on the offset."""

    lower: Float[Array, " c"]
    upper: Float[Array, " c"]

    @classmethod
    def for_directions(cls, directions: int) -> _Bounds:
        low, high = _MASS_FACTORS
        gravity = [low] if directions == 1 else [-high] * directions
        return cls(
            np.array([*gravity, low, 0.0, 0.0, 0.0, 0.0]),
            np.array([*[high] * directions, high, np.inf, np.inf, np.inf, 0.0]),
        )

    def residual(self, columns: Float[Array, "n c"], torque: Float[Array, " n"]) -> Array:
        """Residual of bounded least squares."""
        limit = _MAX_OFFSET * float(np.sqrt(np.mean(torque**2)))
        size = np.sqrt(np.mean(columns**2, axis=0))
        used = size > 1e-12
        offset = np.append(np.zeros(len(size) - 1), limit)
        lower, upper = ((x * size)[used] for x in (self.lower - offset, self.upper + offset))
        x = columns[:, used] / size[used]
        return np.asarray(torque - x @ bounded_least_squares(x, torque, lower, upper))


def bounded_least_squares(
    columns: Float[Array, "n c"],
    torque: Float[Array, " n"],
    lower: Float[Array, " c"],
    upper: Float[Array, " c"],
) -> Float[Array, " c"]:
    """Minimise |torque - columns x| over lower <= x <= upper, by active sets [Stark1995].

    For a few columns: loading SciPy's optimisers would take longer than all of this.
    """
    q, r = np.linalg.qr(columns)
    target = q.T @ torque
    x = np.clip(np.linalg.lstsq(r, target, rcond=None)[0], lower, upper)
    free = (x > lower) & (x < upper)
    tolerance = 1e-10 * float(np.linalg.norm(target)) * float(np.abs(r).max(initial=1e-300))
    for _ in range(12 * len(x)):
        while free.any():
            rest = target - r[:, ~free] @ x[~free]
            step = np.linalg.lstsq(r[:, free], rest, rcond=None)[0] - x[free]
            low, high = lower[free] - x[free], upper[free] - x[free]
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(step > 0.0, high / step, np.where(step < 0.0, low / step, np.inf))
            fraction = float(min(reach.min(), 1.0))
            x[free] = np.clip(x[free] + fraction * step, lower[free], upper[free])
            if fraction >= 1.0:
                break
            free[np.flatnonzero(free)[reach <= fraction]] = False
        slope = r.T @ (target - r @ x)
        inward = ~free & np.where(x <= lower, slope > tolerance, slope < -tolerance)
        if not inward.any():
            break
        free[np.argmax(np.where(inward, np.abs(slope), -1.0))] = True
    return x


def _independent_rows(residual: Float[Array, " n"], rate: float) -> float:
    """Number of independent rows, by the integrated autocorrelation of the residual."""
    n = len(residual)
    centred = residual - residual.mean()
    power, time = float(centred @ centred), 1.0
    for lag in range(1, min(n // 4, int(_MAX_CORRELATION_S * rate))):
        correlation = float(centred[lag:] @ centred[:-lag]) / power if power > 0.0 else 0.0
        if correlation < 0.05:
            break
        time += 2.0 * correlation
    seconds = n / rate
    return float(np.clip(n / time, 4.0, max(_MAX_INDEPENDENT * seconds, 4.0)))


__all__ = [
    "SignEvidence",
    "gravity_factors",
    "inertia_factors",
    "nominal_log_odds",
    "shows_nominal_gravity",
    "sign_evidence",
]
