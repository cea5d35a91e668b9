"""First stage: linear regression of the servo error, with nominal links.

    u(t - d) - q = (1/kp) tau(q, v, a) + (fc/kp) sign v + (fv/kp) v + (ia/kp) a - offset

on samples in motion, joint by joint; 1/kp is pooled as the joints that gravity loads agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.signal import butter, filtfilt

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError
from taufit.dynamics import inverse_dynamics
from taufit.robot import Robot
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import ServoParameters

# Chosen on seven training runs of one SO-101 by leaving runs out (4 Hz: 2-6 Hz are alike).
CUTOFF_HZ = 4.0
MOVING = 0.03  # speed above which a joint is in motion [rad/s]
ROW_S = 0.1  # time between rows of the regression [s]
MARGIN_S = 0.5  # settling time of the filter at both ends [s]
ERROR_STD = 6e-3  # scale of the servo error that no column explains [rad]
HUBER = 2.5
OFFSET_STD = 1e-3  # std of the command offset [rad]; free offsets are collinear with gravity/kp
TRUNCATION_STD = 0.65  # std of the offset by rounding or truncation, in half encoder steps
POOL = 0.1  # relative std of 1/kp among equal servos
DELAYS = np.arange(-0.02, 0.0801, 0.005)
MIN_ROWS = 30


@dataclass(frozen=True, slots=True, eq=False)
class ServoRows:
    """Filtered rows of the regression.

    Attributes:
        velocity, acceleration: Derivatives of the measured position.
        torque: Nominal inverse dynamics [N m].
        position: Filtered position [rad].
        error: Command minus position for each delay of `DELAYS` [rad].
        valid: Rows away from contact.
        run: Number of the motion of every row.
    """

    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    position: Float[Array, "n j"]
    error: Float[Array, "d n j"]
    valid: Bool[Array, " n"]
    run: Int[Array, " n"]


def servo_rows(
    robot: Robot, motions: Sequence[CommandedMotion], valid: Sequence[Bool[Array, " _"]]
) -> ServoRows:
    """Rows of all motions: low-pass, derivatives, nominal torque, command at every delay."""
    parts = [_motion_rows(m, mask) for m, mask in zip(motions, valid, strict=True)]
    q, v, a = (np.concatenate([part[k] for part in parts]) for k in range(3))
    error = np.concatenate([part[3] for part in parts], axis=1)
    mask = np.concatenate([part[4] for part in parts])
    run = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    return ServoRows(v, a, inverse_dynamics(robot, q, v, a), q, error, mask, run)


def _motion_rows(motion: CommandedMotion, valid: Bool[Array, " n"]) -> tuple[Array, ...]:
    step, count = motion.step, len(motion.position)
    b, a = butter(4, min(CUTOFF_HZ * 2 * step, 0.9))
    time = np.arange(count) * step
    grid = np.arange(len(motion.integral)) * motion.grid_step - 0.3
    means = _step_means(motion, time, grid)
    q, u = (filtfilt(b, a, x, axis=0) for x in (motion.position, means))
    v = np.gradient(q, step, axis=0)
    acceleration = np.gradient(v, step, axis=0)
    margin = min(round(MARGIN_S / step), count // 4)
    rows = slice(margin, count - margin, max(1, round(ROW_S / step)))
    error = [
        np.column_stack([np.interp(time[rows] - d, time, column) for column in u.T]) - q[rows]
        for d in DELAYS
    ]
    return q[rows], v[rows], acceleration[rows], np.array(error), valid[rows]


def _step_means(
    motion: CommandedMotion, time: Float[Array, " n"], grid: Float[Array, " m"]
) -> Float[Array, "n j"]:
    """Mean of the held command around each row, so that a hold is half a period late."""
    half = 0.5 * motion.step

    def integral(t: Float[Array, " n"]) -> Float[Array, "n j"]:
        return np.column_stack([np.interp(t, grid, column) for column in motion.integral.T])

    return (integral(time + half) - integral(time - half)) / motion.step


class LinearFit(NamedTuple):
    """Result of the first stage.

    Attributes:
        servo: Parameters of the delay with the least robust cost.
        kp_scatter: Relative std of kp among the joints, `POOL` for servos of one type.
    """

    servo: ServoParameters
    kp_scatter: float


def fit_linear(
    rows: ServoRows, half_step: float, *, without: int | None = None, delay: float | None = None
) -> LinearFit:
    """Fit servo parameters of the delay with the least robust cost.

    Args:
        rows: Rows of the regression.
        half_step: Half an encoder step: the mean truncation of an integer command [rad].
        without: Number of a motion that is left out.
        delay: Delay in place of the search [s].
    """
    moving = moving_rows(rows)
    if without is not None:
        moving &= (rows.run != without)[:, None]
    still = still_joints(moving)
    if still.all():
        raise PoorExcitationError(
            f"no joint moves faster than {MOVING:g} rad/s for {MIN_ROWS * ROW_S:.0f} s: there is "
            "nothing to fit. Add a recording with motion."
        )
    if delay is None:
        costs = [_solve(rows, error, moving, half_step, 4)[-1] for error in rows.error]
        best = int(np.argmin(costs))
    else:
        best = int(np.argmin(np.abs(DELAYS - delay)))
    solution, scatter, _ = _solve(rows, rows.error[best], moving, half_step, 15)
    solution[still, 1:4] = np.median(solution[~still, 1:4], axis=0)
    kp = 1.0 / solution[:, 0]
    joints = len(kp)
    servo = ServoParameters(
        kp=kp,
        damping=np.maximum(solution[:, 2], 1e-3) * kp,
        coulomb=np.maximum(solution[:, 1], 1e-4) * kp,
        armature=np.clip(solution[:, 3] * kp, 1e-3, 0.1),
        offset=-solution[:, 4],
        delay=np.full(joints, DELAYS[best]),
    )
    return LinearFit(servo, scatter)


def moving_rows(rows: ServoRows) -> Bool[Array, "n j"]:
    """Rows in which each joint moves away from contact."""
    return (np.abs(rows.velocity) > MOVING) & rows.valid[:, None]


def offset_std(half_step: float) -> float:
    """Prior std of the command offset [rad]."""
    return max(OFFSET_STD, TRUNCATION_STD * half_step)


def _solve(
    rows: ServoRows,
    error: Float[Array, "n j"],
    moving: Bool[Array, "n j"],
    half_step: float,
    rounds: int,
) -> tuple[Float[Array, "j 5"], float, float]:
    """Robust solution joint by joint with pooled 1/kp, the scatter of this, and its cost."""
    joints = error.shape[1]
    columns, targets = [], []
    for j in range(joints):
        m = moving[:, j]
        v, a = rows.velocity[m, j], rows.acceleration[m, j]
        columns.append(
            np.column_stack([rows.torque[m, j], np.sign(v), v, a, np.ones(m.sum())]) / ERROR_STD
        )
        targets.append(error[m, j] / ERROR_STD)
    weights = [np.ones(len(y)) for y in targets]
    solution, scatter, cost = np.zeros((joints, 5)), POOL, np.inf
    for _ in range(rounds):
        normal = [(c * w[:, None]).T @ c for c, w in zip(columns, weights, strict=True)]
        right = [c.T @ (w * y) for c, w, y in zip(columns, weights, targets, strict=True)]
        solution, scatter = _pooled(normal, right, half_step)
        cost = 0.0
        for j in range(joints):
            residual = np.abs(targets[j] - columns[j] @ solution[j])
            weights[j] = np.minimum(1.0, HUBER / np.maximum(residual, 1e-9))
            cost += float(
                np.where(residual < HUBER, 0.5 * residual**2, HUBER * (residual - HUBER / 2)).sum()
            )
    return solution, scatter, cost


def _pooled(
    normal: list[Float[Array, "5 5"]], right: list[Float[Array, " 5"]], half_step: float
) -> tuple[Float[Array, "j 5"], float]:
    """Solutions with 1/kp drawn to a common value as far as the joints agree, and its scatter."""
    thin = 2.0  # one row in two is independent
    informed = []
    for n, r in zip(normal, right, strict=True):
        n, r = n / thin + 1e-6 * np.eye(5), r / thin
        n[4, 4] += 1.0 / offset_std(half_step) ** 2
        r[4] += half_step / offset_std(half_step) ** 2
        informed.append((n, r))
    single = np.array([np.linalg.solve(n, r)[0] for n, r in informed])
    variance = np.array([np.linalg.inv(n)[0, 0] for n, _ in informed])
    common, pool = 0.1, POOL
    for _ in range(5):
        weight = 1.0 / (variance + (pool * common) ** 2)
        common = max(float(weight @ single / weight.sum()), 1e-3)
        pool = _relative_spread(single, variance, common)
    spread = (pool * common) ** 2 + 1.0 / weight.sum()
    out = []
    for n, r in informed:
        n, r = n.copy(), r.copy()
        n[0, 0] += 1.0 / spread
        r[0] += common / spread
        x = np.linalg.solve(n, r)
        out.append([max(x[0], 1e-3), *x[1:]])
    return np.array(out), pool


def _relative_spread(
    single: Float[Array, " j"], variance: Float[Array, " j"], common: float
) -> float:
    """Relative std of 1/kp among the joints beyond their own uncertainty, by moments."""
    weight = 1.0 / variance
    excess = float(weight @ (single - common) ** 2) - (len(single) - 1)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    return float(np.clip(np.sqrt(max(excess / scale, 0.0)) / common, POOL, 1.0))


def still_joints(moving: Bool[Array, "n j"]) -> Bool[Array, " j"]:
    """Joints that hardly move: their friction is taken from the other joints."""
    return moving.sum(axis=0) < MIN_ROWS
