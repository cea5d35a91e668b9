"""Strokes of a friction test in noisy samples, and friction from pairs of strokes.

At equal position and opposite velocity the links' torque is the same and friction is opposite, for
one moving joint and for all joints on a line that is played there and back:

    friction = (tau_forward - tau_backward) / 2,        load = (tau_forward + tau_backward) / 2.

An offset cancels in the first and stays in the second. Velocity is the position difference over a
quarter of a second (less for fast strokes), so that strokes far slower than the noise of a velocity
signal are found; a stroke lasts as long as that velocity keeps its sign and magnitude. The first
part of a stroke after a reversal is left out: pre-sliding friction builds up over tenths of a
radian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, TaufitError
from taufit.signals.samples import Samples

# Averaging windows of velocity: for slow strokes, for fast strokes; limit between both [rad/s].
_WINDOWS_S = (0.25, 0.06)
_FAST_SPEED = 0.15
_MINIMUM_STROKE_S = 0.15
_MINIMUM_SPEED = 4e-4
_SPEED_TOLERANCE = 0.1
_PARTNER_SEARCH = 5
# Travel after which a joint counts as reversed, and travel after which friction is built up [rad].
_REVERSAL_TRAVEL = 1e-3
_FRICTION_TRAVEL = 0.5
# Shorter strokes are creep of a joint that stands, within pre-sliding [rad or m].
_MINIMUM_TRAVEL = 0.01
# Travel of another joint, relative to that of the tested one, from which it counts as moving;
# largest distance between the lines of both directions [rad].
_MOVING_FRACTION, _LINE_TOLERANCE = 0.05, 0.01
# Bins longer than this have independent noise [s].
_INDEPENDENT_S = 0.5
# Median over mean of the variance of four bins; variance ratio that chance hardly reaches; relative
# error of any friction curve.
_MEDIAN_OVER_MEAN = 0.79
_EXCESS_VARIANCE = 4.0
_CURVE_ERROR = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class FrictionPairs:
    """Friction of one joint at positive speeds, and the load at which it was measured.

    Attributes:
        velocity: Speed of each pair [rad/s].
        torque: Friction [N m].
        load: Torque of the links [N m].
        joint: Number of the joint, from 1, for messages.
        stroke: Index of the pair of strokes of each sample; None: all from one.
        temperature: Joint temperature [degC], where recorded.
        seconds: Averaging time of each pair [s]; None: unknown.
        weight: Weight of each pair in a fit, 1/standard deviation; None: equal weights.
    """

    velocity: Float[Array, " n"]
    torque: Float[Array, " n"]
    load: Float[Array, " n"]
    joint: int = 1
    stroke: Int[Array, " n"] | None = None
    temperature: Float[Array, " n"] | None = None
    seconds: Float[Array, " n"] | None = None
    weight: Float[Array, " n"] | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[FrictionPairs]) -> FrictionPairs:
        """Pairs of one joint from several recordings: payloads, days, temperatures."""
        labels, offset = [], 0
        for part in parts:
            part_labels = part.labels
            labels.append(part_labels + offset)
            offset += int(part_labels.max(initial=-1)) + 1
        return cls(
            np.concatenate([part.velocity for part in parts]),
            np.concatenate([part.torque for part in parts]),
            np.concatenate([part.load for part in parts]),
            parts[0].joint,
            np.concatenate(labels),
            *(
                _concatenate_if_complete([getattr(part, name) for part in parts])
                for name in ("temperature", "seconds", "weight")
            ),
        )

    def select(self, rows: Bool[Array, " n"]) -> FrictionPairs:
        """Pairs of the selected rows."""
        return FrictionPairs(
            self.velocity[rows],
            self.torque[rows],
            self.load[rows],
            self.joint,
            None if self.stroke is None else self.stroke[rows],
            *(
                None if x is None else x[rows]
                for x in (self.temperature, self.seconds, self.weight)
            ),
        )

    @property
    def target(self) -> Float[Array, " n"]:
        """Weighted friction, the right-hand side of a weighted fit."""
        return self.torque if self.weight is None else self.weight * self.torque

    @property
    def labels(self) -> Int[Array, " n"]:
        """Index of the pair of strokes of each sample, from 0."""
        return np.zeros(len(self.torque), int) if self.stroke is None else self.stroke

    @property
    def tested_speeds(self) -> Float[Array, " s"]:
        """Speeds of the pairs of strokes, slow to fast, equal ones once [rad/s]."""
        labels = self.labels
        speeds = np.sort([np.median(self.velocity[labels == k]) for k in np.unique(labels)])
        new = np.r_[True, np.diff(np.log(np.maximum(speeds, 1e-12))) > 0.02]
        return speeds[new]


@dataclass(frozen=True, slots=True, eq=False)
class Stroke:
    """Constant-velocity motion of one joint, the others standing or at constant velocity too.

    Attributes:
        rows: Samples of its constant-velocity part.
        speed: Signed velocity [rad/s].
        settled: Samples far enough after the last reversal for pre-sliding friction to have built
            up.
    """

    rows: Int[Array, " n"]
    speed: float
    settled: Bool[Array, " n"]


def find_strokes(samples: Samples, joint: int) -> list[Stroke]:
    """Find the strokes of one joint (from 1), in order of time."""
    strokes: list[Stroke] = []
    for run in samples.run_slices():
        rows = np.arange(run.start, run.stop)
        q = samples.position[run]
        run_strokes: list[Stroke] = []
        travel = _travel_since_reversal(q[:, joint - 1], samples.rate_hz)
        for window, is_slow in zip(_WINDOWS_S, (True, False), strict=True):
            half = max(1, round(0.5 * window * samples.rate_hz))
            if len(rows) <= 6 * half:
                continue
            smooth = np.zeros_like(q)
            smooth[half:-half] = (q[2 * half :] - q[: -2 * half]) * (samples.rate_hz / (2 * half))
            run_strokes += [
                Stroke(rows[part], speed, _after_friction_built_up(travel[part]))
                for part, speed in _constant_velocity_segments(
                    smooth, joint - 1, half, samples.rate_hz
                )
                if (abs(speed) < _FAST_SPEED) == is_slow
            ]
        strokes += sorted(run_strokes, key=lambda stroke: int(stroke.rows[0]))
    return strokes


def _constant_velocity_segments(
    smooth: Float[Array, "n j"], i: int, half: int, rate_hz: float
) -> list[tuple[Int[Array, " m"], float]]:
    """Constant-velocity segments of joint i while the others stand: samples and signed velocity."""
    v = smooth[:, i]
    # A joint keeps its velocity a good part of the time; its change is then noise, whose lower
    # quartile is 0.32 standard deviations.
    change = np.zeros_like(v)
    change[half:-half] = v[2 * half :] - v[: -2 * half]
    noise = float(np.quantile(np.abs(change[half:-half]), 0.25)) / (0.32 * np.sqrt(2.0))
    size = np.abs(v)
    steady = (size > max(_MINIMUM_SPEED, 4.0 * noise)) & (
        np.abs(change) < 0.05 * size + 4.0 * noise
    )
    # The other joints stand, or keep their velocity too.
    others = np.delete(smooth, i, axis=1)
    difference = np.zeros_like(others)
    difference[half:-half] = others[2 * half :] - others[: -2 * half]
    steady &= np.all(
        (np.abs(others) < (0.03 * size + 4.0 * noise + 2e-4)[:, None])
        | (np.abs(difference) < 0.05 * np.abs(others) + 4.0 * noise),
        axis=1,
    )
    edges = np.flatnonzero(np.diff(steady.astype(int)) | np.diff(np.sign(v).astype(int))) + 1
    minimum_length = max(4, round(_MINIMUM_STROKE_S * rate_hz))
    return [
        (part, float(np.median(v[part])))
        for part in np.split(np.arange(len(v)), edges)
        if steady[part[0]] and len(part) >= minimum_length
    ]


def _travel_since_reversal(q: Float[Array, " n"], rate_hz: float) -> Float[Array, " n"]:
    """Travel of a joint since its last velocity reversal; standing does not count as reversal."""
    step = max(1, round(0.02 * rate_hz))
    coarse = q[::step]
    reversals, last, direction = [0], 0, 0.0
    for k, x in enumerate(coarse.tolist()):
        travel = x - coarse[last]
        if direction == 0.0 and abs(travel) > _REVERSAL_TRAVEL:
            direction, last = float(np.sign(travel)), k
        elif travel * direction > 0.0:
            last = k
        elif direction != 0.0 and abs(travel) > _REVERSAL_TRAVEL:
            reversals.append(last)
            direction, last = -direction, k
    reversal = np.searchsorted(np.array(reversals) * step, np.arange(len(q)), side="right") - 1
    return np.abs(q - coarse[reversals][reversal])


def _after_friction_built_up(travel: Float[Array, " n"]) -> Bool[Array, " n"]:
    """Samples far enough after the reversal: 0.5 rad, less in short strokes."""
    return travel >= min(_FRICTION_TRAVEL, float(np.quantile(travel, 0.35)))


def pairs_in(samples: Samples, joint: int, *, points: int = 8) -> FrictionPairs:
    """Friction of one joint (from 1) from its constant-velocity strokes in both directions.

    Neighbouring strokes of opposite direction and equal speed (within 10 per cent) are compared at
    their common positions, in `points` bins each; strokes without a partner are left out.
    """
    strokes = find_strokes(samples, joint)
    i = joint - 1
    pairs: list[FrictionPairs] = []
    used: set[int] = set()
    for k, first in enumerate(strokes):
        for m in range(k + 1, min(k + 1 + _PARTNER_SEARCH, len(strokes))):
            second = strokes[m]
            has_equal_speed = abs(first.speed + second.speed) < _SPEED_TOLERANCE * max(
                abs(first.speed), abs(second.speed)
            )
            if k in used or m in used or not has_equal_speed:
                continue
            pair = _pair_in_bins(samples, i, first, second, points)
            if pair is not None:
                pairs.append(pair)
                used |= {k, m}
    if not pairs:
        raise PoorExcitationError(
            f"joint {joint} has no constant-velocity strokes both ways at one speed over the same "
            f"positions ({len(strokes)} strokes were found). Drive it alone, forwards and "
            "backwards, at several speeds: `taufit design --kind friction-test` plans that."
        )
    return FrictionPairs.concatenate(pairs)


def _pair_in_bins(
    samples: Samples, i: int, first: Stroke, second: Stroke, points: int
) -> FrictionPairs | None:
    """Both strokes in bins of their common positions; None if these are too few.

    The mean positions of a bin differ slightly between both directions, in the other joints too,
    since these yield while the load moves. Gravity comes from a potential U, so

        d tau_i / d q_k = d^2 U / d q_i d q_k = d tau_k / d q_i

    and the slopes of all joints' torque along the stroke give the torque of joint i at one
    position. Where the other joints move too, both strokes must follow the same line.
    """
    forward, backward = (first, second) if first.speed > 0 else (second, first)
    rows_of = [stroke.rows[stroke.settled] for stroke in (forward, backward)]
    q = [samples.position[rows, i] for rows in rows_of]
    low, high = max(x.min() for x in q), min(x.max() for x in q)
    if high - low < max(0.3 * min(np.ptp(x) for x in q), _MINIMUM_TRAVEL):
        return None
    edges = np.linspace(low, high, points + 1)
    forward_bins, backward_bins = (_Bins.of(samples, i, rows, edges) for rows in rows_of)
    is_filled = (forward_bins.count > 0) & (backward_bins.count > 0)
    if not np.any(is_filled):
        return None
    square, product = (
        forward_bins.square + backward_bins.square,
        forward_bins.product + backward_bins.product,
    )
    slope = product / np.where(square > 0.0, square, np.inf)[:, None]
    travel = np.ptp(samples.position[rows_of[0]], axis=0)
    moving = travel > _MOVING_FRACTION * travel[i]
    if moving.sum() > 1:
        # All joints on one line: its slope is that along the line, which must be the same.
        gap = np.abs(forward_bins.position - backward_bins.position)[:, moving][is_filled]
        if gap.max() > _LINE_TOLERANCE:
            return None
        slope[:, np.arange(len(travel)) != i] = 0.0
    centre = 0.5 * (forward_bins.position + backward_bins.position)
    centre[:, i] = 0.5 * (edges[1:] + edges[:-1])
    forward_torque, backward_torque = (
        bins.torque[:, i] - np.sum(slope * (bins.position - centre), axis=1)
        for bins in (forward_bins, backward_bins)
    )
    temperature = None
    if forward_bins.temperature is not None and backward_bins.temperature is not None:
        temperature = 0.5 * (forward_bins.temperature + backward_bins.temperature)[is_filled]
    return FrictionPairs(
        0.5 * (forward_bins.velocity - backward_bins.velocity)[is_filled],
        0.5 * (forward_torque - backward_torque)[is_filled],
        0.5 * (forward_torque + backward_torque)[is_filled],
        i + 1,
        np.zeros(int(is_filled.sum()), int),
        temperature,
        0.5 * (forward_bins.count + backward_bins.count)[is_filled] / samples.rate_hz,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Means of a stroke of joint i in bins of its position.

    Attributes:
        count: Samples in each bin.
        position, torque: Mean per bin, all joints.
        velocity, temperature: Mean per bin, joint i.
        square, product: Sums of (q_i - mean)^2 and of (q_i - mean) torque, for the slopes.
    """

    count: Int[Array, " b"]
    position: Float[Array, "b j"]
    torque: Float[Array, "b j"]
    velocity: Float[Array, " b"]
    temperature: Float[Array, " b"] | None
    square: Float[Array, " b"]
    product: Float[Array, "b j"]

    @classmethod
    def of(
        cls, samples: Samples, i: int, rows: Int[Array, " n"], edges: Float[Array, " e"]
    ) -> _Bins:
        """Bin the samples between the edges."""
        bin_index = np.digitize(samples.position[rows, i], edges) - 1
        inside = (bin_index >= 0) & (bin_index < len(edges) - 1)
        rows, bin_index = rows[inside], bin_index[inside]
        count = np.bincount(bin_index, minlength=len(edges) - 1)

        def total(x: Float[Array, " n"]) -> Float[Array, " b"]:
            return np.bincount(bin_index, x, minlength=len(count))

        def mean(x: Float[Array, " n"]) -> Float[Array, " b"]:
            return total(x) / np.maximum(count, 1)

        q, torque, temperature = samples.position[rows], samples.torque[rows], samples.temperature
        deviation = q[:, i] - mean(q[:, i])[bin_index]
        return cls(
            count,
            np.stack([mean(x) for x in q.T], axis=1),
            np.stack([mean(x) for x in torque.T], axis=1),
            mean(samples.velocity[rows, i]),
            None if temperature is None else mean(temperature[rows, i]),
            total(deviation**2),
            np.stack([total(deviation * x) for x in torque.T], axis=1),
        )


def _concatenate_if_complete(
    parts: Sequence[Float[Array, " n"] | None],
) -> Float[Array, " m"] | None:
    available = [part for part in parts if part is not None]
    return np.concatenate(available) if len(available) == len(parts) else None


def with_weights(pairs: FrictionPairs) -> FrictionPairs:
    """Add weights from the scatter of the pairs, independent of the friction model.

    Variance of the mean of a pair of strokes: a/T with its duration T, a from strokes long enough
    for their bins to be independent; the scatter of its bins where that is much larger (vibration
    at the start of a fast stroke); and 1 % of the friction for the error of any curve. Bins share
    it evenly.
    """
    if pairs.stroke is None or pairs.seconds is None:
        return pairs
    labels = pairs.labels
    count = int(labels.max()) + 1
    bins = np.bincount(labels, minlength=count).astype(float)
    bins_or_one = np.maximum(bins, 1.0)
    time = np.bincount(labels, pairs.seconds, minlength=count)
    level = np.bincount(labels, pairs.torque, minlength=count) / bins_or_one
    scatter = np.bincount(labels, (pairs.torque - level[labels]) ** 2, minlength=count)
    bin_variance = scatter / np.maximum(bins - 1.0, 1.0) / bins_or_one
    slow = (bins >= 3) & (time / bins_or_one > _INDEPENDENT_S)
    rate = (
        float(np.median(bin_variance[slow] * time[slow])) / _MEDIAN_OVER_MEAN
        if slow.sum() >= 3
        else 0.0
    )
    expected_variance = rate / np.maximum(time, 1e-9)
    variance = (
        np.where(
            bin_variance > _EXCESS_VARIANCE * expected_variance, bin_variance, expected_variance
        )
        + (_CURVE_ERROR * level) ** 2
    )
    floor = 1e-12 * float(np.mean(pairs.torque**2))
    return replace(pairs, weight=1.0 / np.sqrt(np.maximum(variance * bins_or_one, floor))[labels])


def pairs_of(
    forward: tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]],
    backward: tuple[Float[Array, " m"], Float[Array, " m"], Float[Array, " m"]],
    *,
    points: int = 40,
    joint: int = 1,
) -> FrictionPairs:
    """Pairs from one run in each direction: (position, velocity, torque) of the moving joint.

    Both runs are interpolated at the same positions, evenly over their common range.
    """
    (qf, vf, tf), (qb, vb, tb) = (_sort_by_position(run) for run in (forward, backward))
    low, high = max(qf[0], qb[0]), min(qf[-1], qb[-1])
    if not low < high:
        raise PoorExcitationError(
            f"the forward and backward runs of joint {joint} share no positions. "
            "Drive the same segment both ways."
        )
    if np.median(vf) < 0 or np.median(vb) > 0:
        raise TaufitError("the first run goes forwards (v > 0), the second backwards.")
    at = np.linspace(low, high, points + 2)[1:-1]
    f, b = np.interp(at, qf, tf), np.interp(at, qb, tb)
    speed = 0.5 * (np.interp(at, qf, vf) - np.interp(at, qb, vb))
    return FrictionPairs(speed, 0.5 * (f - b), 0.5 * (f + b), joint)


def _sort_by_position(run: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    q, v, t = (np.asarray(x, float) for x in run)
    order = np.argsort(q, kind="stable")
    return q[order], v[order], t[order]
