"""Column quantities from values, for files without header.

Time is the column that increases in even steps. The integral of velocity is position,

    q_i(b) - q_i(a) = integral of v_i from a to b,

so pairs of columns that satisfy it over many short windows are position and velocity, in blocks
(all
positions, then all velocities) or interleaved (joint by joint); the same holds for velocity and
acceleration. Remaining columns explained by gravity (sines and cosines of sums of angles), friction
and acceleration are torque or current; the noisiest such block is the measured one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.recording.draft.from_names import ColumnGroup
from taufit.recording.timing import USUAL_HZ

# Minimum correlation of integral and integrand.
_MIN_INTEGRAL_CORRELATION = 0.985
# Minimum correlation of a commanded channel with the measured one.
_MIN_COMMAND_CORRELATION = 0.995
# Minimum correlation of a recorded acceleration with the derivative of velocity.
_MIN_ACCELERATION_CORRELATION = 0.85
# Minimum fraction of the variance of a torque explained by gravity, friction and inertia.
_MIN_TORQUE_FRACTION = 0.5
_WINDOWS = 400
# Lag of second differences of position [s].
_LAG_S = 0.15
# Smallest fraction of pairs of columns in which a torque is rougher than a position.
_MIN_SMOOTHER_FRACTION = 0.75
# Largest position that is taken for radians, and relative tolerance of a usual sampling rate.
_LARGEST_RADIANS, _USUAL_RATE_TOLERANCE = 4 * np.pi, 0.03
_MAX_JOINTS = 12
_MAX_QUANTITIES = 9


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """Column groups of a table without names.

    Attributes:
        groups: Groups, position first; of torque-like groups the measured one first.
        rate_hz: Sampling rate estimated from velocity and position if there is no time column
            [Hz], else None.
        reasons: Explanations of the groups.
    """

    groups: tuple[ColumnGroup, ...]
    rate_hz: float | None
    reasons: tuple[str, ...]


def time_column_from_values(values: Float[Array, "n c"]) -> tuple[int, str] | None:
    """Column that increases in even steps, and its unit; a counter only if there is no other."""
    counter = None
    for index in range(values.shape[1]):
        steps = np.diff(values[:, index])
        if len(steps) < 10 or not np.all(np.isfinite(steps)) or not np.mean(steps > 0) > 0.98:
            continue
        median_step = float(np.median(steps))
        if (
            median_step <= 0
            or np.mean((steps > 0.3 * median_step) & (steps < 3.0 * median_step)) < 0.95
        ):
            continue
        if np.all(steps == 1.0):
            counter = index
            continue
        return index, guess_time_unit(median_step)
    return None if counter is None else (counter, "ms")


def counter_columns(values: Float[Array, "n c"]) -> list[int]:
    """Columns of integers that grow by the same number in every row: counters, no motion."""
    steps = np.diff(values, axis=0)
    is_counter = (steps == steps[:1]).all(axis=0) & (steps[:1] > 0.0).all(axis=0)
    return np.flatnonzero(is_counter & (values == np.round(values)).all(axis=0)).tolist()


def guess_time_unit(step: float) -> str:
    """Unit in which a sampling period is plausible for a logger of joint torques."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if 4e-5 <= step * factor <= 0.3:
            return unit
    return "s"


def layout_from_values(
    values: Float[Array, "n c"],
    time: Float[Array, " n"] | None,
    joints: int | None = None,
    skip: Sequence[int] = (),
) -> TableLayout | None:
    """Find positions, velocities, accelerations and torques among the columns; None if not found.

    Args:
        values: All columns, rows in time order.
        time: Time stamps [s], or None.
        joints: Number of joints of the robot, if known.
        skip: Columns to ignore.
    """
    is_finite = np.isfinite(values).all(axis=1)
    if time is not None:
        is_finite &= np.isfinite(time)
    if np.count_nonzero(is_finite) < 50:
        return None
    seconds = (np.arange(len(values), dtype=float) if time is None else time)[is_finite]
    values = values[is_finite]
    varying = [int(c) for c in np.flatnonzero(np.ptp(values, axis=0) > 0) if c not in skip]
    slopes, matches = integral_pairs(values, seconds, varying)
    shape = _shape(matches, values.shape[1], joints)
    if shape is None:
        return _layout_without_velocity(values, seconds, varying, joints, skip)
    stride, count, first, second = shape
    position, velocity = _block(first, stride, count), _block(second, stride, count)
    pairs = [pair for pair in zip(position, velocity, strict=True) if pair in matches]
    ratio = float(np.median([slopes[pair] for pair in pairs]))
    reasons = [
        f"{len(pairs)} of {count} columns are the integral of the ones {second - first} further "
        "on: position and velocity"
    ]
    rate = None
    if time is None and ratio > 0:
        rate, ratio = _rate_and_ratio(values[:, position], ratio)
    reasons += [] if rate is None else [f"velocity and position agree at {rate:g} Hz"]
    unit, velocity_unit = _angle_units(values[:, position], ratio)
    column_groups = [ColumnGroup("position", tuple(position), unit=unit)]
    column_groups.append(ColumnGroup("velocity", tuple(velocity), unit=velocity_unit))
    used = {*position, *velocity, *skip}
    acceleration = _next_block(matches, velocity, stride, used)
    if acceleration is not None:
        column_groups.append(ColumnGroup("acceleration", tuple(acceleration)))
        used |= set(acceleration)
    motion = _MotionBasis(values, position, velocity, seconds / (rate or 1.0))
    column_groups += _command_and_torque_groups(values, motion, used, stride, count, reasons)
    return TableLayout(tuple(column_groups), rate, tuple(reasons))


def _round_to_usual_rate(rate: float) -> float:
    usual_rate = USUAL_HZ[np.argmin(np.abs(USUAL_HZ / rate - 1.0))]
    return float(usual_rate) if abs(usual_rate / rate - 1.0) < 0.05 else float(f"{rate:.3g}")


def _rate_and_ratio(position: Float[Array, "n j"], ratio: float) -> tuple[float, float]:
    """Sampling rate, and ratio of the units of position and velocity, from their ratio per row.

    Position in degrees beside velocity in rad/s, or the reverse, changes the ratio by 57.3: units
    that give a usual rate are preferred, equal ones first.
    """
    degree = np.pi / 180.0
    is_large = float(np.abs(position).max()) > _LARGEST_RADIANS
    for unit_ratio in (1.0, 1.0 / degree, *(() if is_large else (degree,))):
        rate = unit_ratio / ratio
        if np.min(np.abs(USUAL_HZ / rate - 1.0)) < _USUAL_RATE_TOLERANCE:
            return _round_to_usual_rate(rate), unit_ratio
    return _round_to_usual_rate(1.0 / ratio), 1.0


def _angle_units(position: Float[Array, "n j"], ratio: float) -> tuple[str | None, str | None]:
    """Units of position and velocity: degrees if values are too large for radians."""
    largest = float(np.abs(position).max())
    unit = "deg" if _LARGEST_RADIANS < largest < 1500.0 else None
    degree = np.pi / 180.0
    # ratio is d(position)/d(integral of velocity), in the units of the file.
    if abs(ratio / degree - 1.0) < 0.1:
        return unit, "deg/s"
    if abs(ratio * degree - 1.0) < 0.1:
        return "deg", "rad/s"
    return unit, None if unit is None else "deg/s"


def integral_pairs(
    values: Float[Array, "n c"], time: Float[Array, " n"], varying: list[int]
) -> tuple[dict[tuple[int, int], float], set[tuple[int, int]]]:
    """Pairs of columns (integral, integrand), with the slope between them."""
    step = np.diff(time)[:, None]
    area = np.vstack(
        [np.zeros(values.shape[1]), np.cumsum(0.5 * (values[1:] + values[:-1]) * step, axis=0)]
    )
    edges = np.linspace(0, len(values) - 1, min(_WINDOWS, len(values) // 3) + 1).astype(int)
    change, integral = np.diff(values[edges], axis=0), np.diff(area[edges], axis=0)
    size_c = np.linalg.norm(change, axis=0)
    size_i = np.linalg.norm(integral, axis=0)
    cross = change.T @ integral
    slopes: dict[tuple[int, int], float] = {}
    for i in varying:
        for k in varying:
            if i == k or size_c[i] == 0 or size_i[k] == 0:
                continue
            if (
                abs(cross[i, k]) > _MIN_INTEGRAL_CORRELATION * size_c[i] * size_i[k]
                and cross[i, k] > 0
            ):
                slopes[i, k] = float(cross[i, k] / size_i[k] ** 2)
    return slopes, set(slopes)


def _block(first: int, stride: int, count: int) -> list[int]:
    """Columns of one quantity, joint by joint."""
    return [first + stride * joint for joint in range(count)]


def _shape(
    matches: set[tuple[int, int]], columns: int, joints: int | None
) -> tuple[int, int, int, int] | None:
    """(stride, joints, first position column, first velocity column) with most joints matched."""
    best, score = None, 1.5
    integrands = {k for _, k in matches}
    counts = [joints] if joints else range(2, _MAX_JOINTS + 1)
    starts = {
        (i - shift * stride, k - shift * stride, stride)
        for i, k in matches
        for stride in range(1, _MAX_QUANTITIES + 1)
        for shift in range(3)
    }
    for (first, second, stride), count in product(sorted(starts), counts):
        position, velocity = _block(first, stride, count), _block(second, stride, count)
        all_columns = {*position, *velocity}
        if len(all_columns) == 2 * count and min(all_columns) >= 0 and max(all_columns) < columns:
            hits = sum(pair in matches for pair in zip(position, velocity, strict=True))
            chained_count = sum(column in integrands for column in position)
            points = hits - 2.0 * (count - hits) - 0.6 * chained_count + 0.1 * (stride == 1)
            if points > score:
                best, score = (stride, count, first, second), points
    return best


def _next_block(
    matches: set[tuple[int, int]], velocity: list[int], stride: int, used: set[int]
) -> list[int] | None:
    """Columns whose integral is velocity."""
    offsets = [k - i for i, k in matches if i in velocity and k not in used]
    for offset in sorted(set(offsets), key=offsets.count, reverse=True):
        block = [v + offset for v in velocity]
        if offsets.count(offset) > 0.5 * len(velocity) and not used & set(block):
            return block
    return None


class _MotionBasis:
    """Orthonormal basis of generic robot torque terms, on a subset of rows."""

    def __init__(
        self,
        values: Float[Array, "n c"],
        position: list[int],
        velocity: list[int] | None,
        time: Float[Array, " n"],
    ) -> None:
        self.rows = np.arange(2, len(values) - 2, max(1, len(values) // 2000))
        q = values[:, position]
        scale = 1.0 if np.abs(q).max() < 4 * np.pi else np.pi / 180.0
        v = values[:, velocity] if velocity is not None else np.gradient(q, time, axis=0)
        self.width = width = max(1, len(values) // 2000)
        # Coarse time stamps repeat.
        step = (
            np.median(np.diff(time)) if np.median(np.diff(time)) > 0 else np.ptp(time) / len(time)
        )
        a = (v[4:] - v[:-4]) / np.maximum(time[4:] - time[:-4], step)[:, None]
        a = np.vstack([a[:2], a, a[-2:]])
        self.q, self.v = q[self.rows], v[self.rows]
        self.a = _smooth(a, 4 * width)[self.rows]
        angle = self.q * scale
        speed = np.maximum(np.abs(self.v).max(axis=0), 1e-9)
        parts = [np.ones((len(self.rows), 1)), self.v, np.tanh(20.0 * self.v / speed), self.a]
        for first in range(len(position)):
            for last in range(first, min(first + 3, len(position))):
                for sign in (1.0, -1.0):
                    total = angle[:, first] + sign * angle[:, first + 1 : last + 1].sum(axis=1)
                    parts += [np.sin(total)[:, None], np.cos(total)[:, None]]
        basis = np.concatenate(parts, axis=1)
        # Repeated time stamps have no difference quotient.
        basis = basis[:, np.isfinite(basis).all(axis=0)]
        size = np.linalg.norm(basis, axis=0)
        basis = basis[:, size > 1e-9 * size.max()] / size[size > 1e-9 * size.max()]
        left_vectors, singular_values, _ = np.linalg.svd(basis, full_matrices=False)
        self.basis = left_vectors[:, singular_values > 1e-6 * singular_values.max(initial=0.0)]

    def explained_fraction(self, block: Float[Array, "m j"]) -> float:
        """Median fraction of the variance of a block explained by the motion."""
        block = block - block.mean(axis=0)
        power = np.sum(block**2, axis=0)
        is_nonzero = power > 0
        if not is_nonzero.any():
            return 0.0
        fraction = np.sum((self.basis.T @ block[:, is_nonzero]) ** 2, axis=0) / power[is_nonzero]
        return float(np.median(fraction))

    def matching_motion(self, block: Float[Array, "m j"]) -> str | None:
        """Motion quantity that a block repeats: position, velocity or acceleration; else None."""
        for name, motion in (("position", self.q), ("velocity", self.v), ("acceleration", self.a)):
            a, b = motion - motion.mean(axis=0), block - block.mean(axis=0)
            size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
            is_nonzero = size > 0
            if is_nonzero.any():
                correlation = np.sum(a * b, axis=0)[is_nonzero] / size[is_nonzero]
                if np.median(correlation) > (
                    _MIN_COMMAND_CORRELATION if name != "acceleration" else 0.97
                ):
                    return name
        return None

    def is_acceleration(self, block: Float[Array, "n j"]) -> bool:
        """Whether a block, smoothed like the derivative of velocity, is that derivative."""
        part = _smooth(block, 4 * self.width)[self.rows]
        a, b = self.a - self.a.mean(axis=0), part - part.mean(axis=0)
        size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
        correlation = np.sum(a * b, axis=0)[size > 0] / size[size > 0]
        power = np.linalg.norm(a, axis=0)[size > 0] / np.linalg.norm(b, axis=0)[size > 0]
        # A torque of inertia alone has the course of the acceleration, but not its size.
        return bool(len(power)) and bool(
            np.median(correlation) > _MIN_ACCELERATION_CORRELATION and 0.7 < np.median(power) < 1.4
        )


def _smooth(values: Float[Array, "n j"], width: int) -> Float[Array, "n j"]:
    if width < 2:
        return values
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(values, axis=0)])
    n = len(values)
    low, high = np.clip(np.arange(n) - width, 0, n), np.clip(np.arange(n) + width, 0, n)
    return np.asarray((total[high] - total[low]) / (high - low)[:, None])


def _command_and_torque_groups(
    values: Float[Array, "n c"],
    motion: _MotionBasis,
    used: set[int],
    stride: int,
    count: int,
    reasons: list[str],
) -> list[ColumnGroup]:
    """Commanded motion and torque-like blocks among the unused columns."""
    column_groups: list[ColumnGroup] = []
    torques: list[tuple[float, list[int]]] = []
    for block in _blocks(values.shape[1], used, stride, count):
        part = values[motion.rows][:, block]
        motion_name = motion.matching_motion(part)
        if motion_name is None and motion.is_acceleration(values[:, block]):
            column_groups.append(ColumnGroup("acceleration", tuple(block)))
            reasons.append(
                f"columns {block[0] + 1} to {block[-1] + 1} are the derivative of velocity: "
                "acceleration, not used"
            )
        elif motion_name is not None:
            column_groups.append(
                ColumnGroup(f"commanded_{motion_name}", tuple(block), commanded=True)
            )
        elif motion.explained_fraction(part) > _MIN_TORQUE_FRACTION:
            torques.append((_roughness(values[:, block]), block))
    torques.sort(key=lambda item: -item[0])
    for rank, (_, block) in enumerate(torques):
        column_groups.append(ColumnGroup("torque", tuple(block), commanded=rank > 0))
    if torques:
        columns = torques[0][1]
        reasons.append(
            f"columns {columns[0] + 1} to {columns[-1] + 1} follow gravity, friction and inertia"
            + (" and are the noisiest that do" if len(torques) > 1 else "")
        )
    return column_groups


def _blocks(columns: int, used: set[int], stride: int, count: int) -> list[list[int]]:
    """Blocks of unused columns with the same layout; each column is in one block."""
    assigned = set(used)
    out = []
    for first in range(columns):
        block = [first + stride * j for j in range(count)]
        if block[-1] < columns and not assigned & set(block):
            out.append(block)
            assigned |= set(block)
    return out


def _roughness(block: Float[Array, "n j"]) -> float:
    """Noise relative to signal, median over the columns."""
    size = block.std(axis=0)
    noise = np.median(np.abs(np.diff(block, n=2, axis=0)), axis=0)
    is_nonzero = size > 0
    return float(np.median(noise[is_nonzero] / size[is_nonzero])) if is_nonzero.any() else 0.0


def relative_noise(block: Float[Array, "n j"]) -> float:
    """Standard deviation of white noise relative to the signal's, median over the columns.

    From fourth differences, in which a smooth signal leaves (2 pi f / rate)^4 of itself.
    """
    size = block.std(axis=0)
    if len(block) < 6 or not size.any():
        return 0.0
    noise = np.median(np.abs(np.diff(block, n=4, axis=0)), axis=0) / (0.6745 * np.sqrt(70.0))
    return float(np.median(noise[size > 0] / size[size > 0]))


def _layout_without_velocity(
    values: Float[Array, "n c"],
    time: Float[Array, " n"],
    varying: list[int],
    joints: int | None,
    skip: Sequence[int],
) -> TableLayout | None:
    """Layout of position and torque only: positions are the smoothest columns."""
    columns = [c for c in range(values.shape[1]) if c not in skip]
    if not columns:
        return None
    start, column_count = columns[0], len(columns)
    count = joints or (column_count // 2 if column_count % 2 == 0 else 0)
    if count < 1 or column_count < 2 * count or columns != list(range(start, start + column_count)):
        return None
    stride, first = 1, _twice_integrated_block(values, time, columns[::count], count)
    reason = "twice the integral of others: position and acceleration"
    if first is None:
        shape = _smoothest_block(values, start, column_count, count)
        if shape is None:
            return None
        stride, first = shape
        reason = "the smoothest: position; no column is their derivative"
    position = _block(first, stride, count)
    unit, _ = _angle_units(values[:, position], 1.0)
    reasons = [f"columns {position[0] + 1} to {position[-1] + 1} are {reason}"]
    motion = _MotionBasis(values, position, None, time)
    used = {*position, *skip}
    column_groups = [ColumnGroup("position", tuple(position), unit=unit)]
    column_groups += _command_and_torque_groups(values, motion, used, stride, count, reasons)
    return TableLayout(tuple(column_groups), None, tuple(reasons))


def _smoothest_block(
    values: Float[Array, "n c"], start: int, columns: int, count: int
) -> tuple[int, int] | None:
    """Stride and first column of the positions among two quantities: those that change smoothly."""
    log_roughness = np.log([_roughness(values[:, [c]]) + 1e-12 for c in range(values.shape[1])])
    options = [(1, start, start + count), (1, start + count, start)]
    if columns == 2 * count:
        options += [(2, start, start + 1), (2, start + 1, start)]

    def contrast(option: tuple[int, int, int]) -> tuple[float, float]:
        """Fraction of pairs in which the torque is rougher, and by how much in the middle."""
        stride, first, second = option
        smooth = log_roughness[_block(first, stride, count)]
        rough = log_roughness[_block(second, stride, count)]
        fraction = float(np.mean(rough[:, None] > smooth[None, :]))
        return fraction, float(np.median(rough) - np.median(smooth))

    best = max(options, key=contrast)
    return best[:2] if contrast(best)[0] > _MIN_SMOOTHER_FRACTION else None


def _twice_integrated_block(
    values: Float[Array, "n c"], time: Float[Array, " n"], starts: Sequence[int], count: int
) -> int | None:
    """First column of the block whose second derivative is another block; None without one.

    With h a lag of rows, q(t + h) - 2 q(t) + q(t - h) is the acceleration, averaged by a triangle
    of width 2 h, times the square of the lag.
    """
    lag = max(1, round(_LAG_S / max(float(np.median(np.diff(time))), 1e-9)))
    if len(values) < 20 * lag:
        return None
    kernel = np.convolve(np.ones(lag), np.ones(lag)) / lag**2
    rows = slice(lag, len(values) - lag, max(1, lag // 4))
    blocks = [s for s in starts if s + count <= values.shape[1]]
    seconds = values[2 * lag :] - 2.0 * values[lag:-lag] + values[: -2 * lag]
    means = np.stack([np.convolve(c, kernel, "same") for c in values.T], axis=1)[lag:-lag]
    for first, second in product(blocks, blocks):
        if first != second:
            a, b = (x[rows][:, s : s + count] for x, s in ((seconds, first), (means, second)))
            a, b = a - a.mean(axis=0), b - b.mean(axis=0)
            size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
            correlation = np.sum(a * b, axis=0)[size > 0] / size[size > 0]
            if len(correlation) and np.median(correlation) > _MIN_INTEGRAL_CORRELATION:
                return first
    return None
