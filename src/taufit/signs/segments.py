"""Where a torque without sign may change it, and the segments in between.

A segment of one joint is assumed to have one sign. Cutting once too often costs the
search a little; cutting once too seldom costs it a wrong sign. So cuts are made at

- every local minimum of the smoothed |torque| below its rms,
- every reversal of the joint's velocity: Coulomb friction lets torque jump across zero there,
- every zero crossing of a torque predicted by an earlier round, where there is one,
- the ends of runs and of intervals whose sign the user gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.signals.recursive_filter import butterworth


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """Every sample's segment, and where the segments are.

    Attributes:
        label: Segment of each sample and joint; -1 where a sample is left out of the search.
        span: The same with the samples left out inside a segment, e.g. next to a crossing.
        joint: Of each segment.
        first, last: Its first and last sample that take part (inclusive).
        begin, end: When it starts and ends [s within its run], between samples where a crossing
            was found between them.
    """

    label: Int[Array, "n j"]
    span: Int[Array, "n j"]
    joint: Int[Array, " s"]
    first: Int[Array, " s"]
    last: Int[Array, " s"]
    begin: Float[Array, " s"]
    end: Float[Array, " s"]

    def __len__(self) -> int:
        return len(self.joint)


def noise_scale(
    magnitude: Float[Array, "n j"], run: Int[Array, " n"], keep: Bool[Array, "n j"]
) -> Float[Array, " j"]:
    """Torque noise per joint from third differences, at least 2 % of the rms.

    Third differences of a smooth signal vanish and multiply white noise by sqrt(20). The median
    does not see the few where |torque| folds at zero.
    """
    rms = joint_rms(magnitude, keep)
    if len(magnitude) < 5:
        return 0.02 * rms
    inside = (run[3:] == run[:-3])[:, None] & keep[3:] & keep[:-3]
    third = np.abs(np.diff(magnitude, 3, axis=0))
    scale = np.array(
        [
            1.4826 * np.median(third[use, i]) / np.sqrt(20.0) if np.any(use) else 0.0
            for i, use in enumerate(inside.T)
        ]
    )
    return np.maximum(scale, 0.02 * rms)


def joint_rms(magnitude: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Float[Array, " j"]:
    """Root mean square over the samples kept; tiny, not zero, for a joint that does nothing."""
    count = np.maximum(keep.sum(0), 1)
    rms = np.sqrt(np.sum(np.where(keep, magnitude, 0.0) ** 2, 0) / count)
    return np.maximum(rms, 1e-12 * (rms.max(initial=0.0) or 1.0))


def cut_segments(  # noqa: PLR0913 - arrays of one recording, side by side
    magnitude: Float[Array, "n j"],
    velocity: Float[Array, "n j"],
    time: Float[Array, " n"],
    run: Int[Array, " n"],
    keep: Bool[Array, "n j"],
    noise: Float[Array, " j"],
    rate_hz: float,
    *,
    predicted: Float[Array, "n j"] | None = None,
    untrusted: Bool[Array, " n"] | None = None,
    borders: Bool[Array, "n j"] | None = None,
    weight: Float[Array, "n j"] | None = None,
    evidence: float = 60.0,
) -> Segmentation:
    """Cut |torque| into segments of one sign each.

    Args:
        magnitude: |torque|, not filtered.
        velocity: Of the joints.
        time, run: Of the samples.
        keep: Samples that may be used at all.
        noise: Standard deviation per joint.
        rate_hz: Of the samples.
        predicted: Signed torque by an earlier round, where there is one.
        untrusted: Samples whose motion is uncertain: they are left out, and crossings predicted
            there are ignored.
        borders: Further cuts, before the marked samples.
        weight: Of each sample, 1 / noise where it is not given.
        evidence: Least sum of (|torque| weight)^2 of a segment; weaker ones are left to the
            fitted model, which knows their sign better than the search does.
    """
    n, joints = magnitude.shape
    rms = joint_rms(magnitude, keep)
    smooth = smoothed(magnitude, run, rate_hz, noise / rms)

    cut = np.zeros((n, joints), bool)
    where = np.full((n, joints), np.nan)  # time of the crossing behind a cut
    middle = 0.5 * (time[1:] + time[:-1])
    where[1:] = middle[:, None]
    inner = smooth[1:-1]
    k, i = np.nonzero((inner <= smooth[:-2]) & (inner < smooth[2:]) & (inner < rms))
    # Smoothing may move the foot of a steep V by a sample: look for it in the magnitudes.
    around = np.clip(k[:, None] + np.arange(3), 1, n - 2)
    k = around[np.arange(len(k)), magnitude[around, i[:, None]].argmin(1)]
    dip = np.zeros((n, joints), bool)
    dip[k, i] = True
    # A V with its foot between two samples: the lower of the neighbours lies across the zero.
    across_left = magnitude[k - 1, i] < magnitude[k + 1, i]
    at = np.where(across_left, k, k + 1)
    cut[at, i] = True
    left, right = magnitude[at - 1, i], magnitude[at, i]
    share = left / np.maximum(left + right, 1e-300)
    where[at, i] = time[at - 1] + share * (time[at] - time[at - 1])

    reversal = np.zeros((n, joints), bool)
    reversal[1:] = velocity[1:] * velocity[:-1] <= 0.0
    new_crossing = _crossings(reversal & ~cut, velocity, time)
    where = np.where(np.isnan(new_crossing), where, new_crossing)
    cut |= reversal
    if predicted is not None:
        crossing = np.zeros((n, joints), bool)
        # Take a crossing only where the magnitude does not contradict the model.
        fits = magnitude - np.abs(predicted) < 4.0 * noise
        crossing[1:] = (predicted[1:] * predicted[:-1] <= 0.0) & (fits[1:] | fits[:-1])
        if untrusted is not None:
            crossing &= ~untrusted[:, None]
        moved = _crossings(crossing, predicted, time)
        where = np.where(np.isnan(moved), where, moved)
        cut |= crossing
    if borders is not None:
        cut |= borders
    ends = np.zeros(n, bool)
    ends[0] = True
    ends[1:] = run[1:] != run[:-1]
    cut |= ends[:, None]
    where[ends] = time[ends][:, None]

    # Choosing samples by their own noisy value would favour those that noise made large.
    enough = np.maximum(1.5 * noise, 0.03 * rms)
    large = smooth >= enough
    if predicted is not None:
        large |= np.abs(predicted) >= enough
    use = keep & large & ~dip
    if untrusted is not None:
        use &= ~untrusted[:, None]
    strength = (magnitude / noise if weight is None else magnitude * weight) ** 2
    return _collect(cut, where, use, time, ends, strength, evidence)


def smoothed(
    magnitude: Float[Array, "n j"],
    run: Int[Array, " n"],
    rate_hz: float,
    relative_noise: Float[Array, " j"],
) -> Float[Array, "n j"]:
    """Zero-phase low-pass per run: 4 Hz where noise is high, up to 8 Hz where it is low."""
    from scipy.signal import sosfiltfilt

    out = np.array(magnitude)
    cutoffs = np.clip(6.0 * np.sqrt(0.05 / np.maximum(relative_noise, 1e-9)), 4.0, 8.0)
    for r in np.unique(run):
        rows = np.flatnonzero(run == r)
        for cutoff in np.unique(np.round(cutoffs)):
            if cutoff >= 0.4 * rate_hz or len(rows) < 12:
                continue
            columns = np.flatnonzero(np.round(cutoffs) == cutoff)
            sos = _lowpass(float(cutoff), float(rate_hz))
            out[np.ix_(rows, columns)] = sosfiltfilt(
                sos, magnitude[np.ix_(rows, columns)], axis=0, padlen=min(len(rows) - 1, 12)
            )
    return out


@lru_cache(maxsize=32)
def _lowpass(cutoff_hz: float, rate_hz: float) -> Float[Array, "1 6"]:
    return butterworth(2, cutoff_hz, rate_hz)


def _crossings(
    at: Bool[Array, "n j"], signal: Float[Array, "n j"], time: Float[Array, " n"]
) -> Float[Array, "n j"]:
    """Time of the zero between a marked sample and the one before, by a straight line."""
    out = np.full(at.shape, np.nan)
    k, i = np.nonzero(at)
    a, b = np.abs(signal[k - 1, i]), np.abs(signal[k, i])
    out[k, i] = time[k - 1] + a / np.maximum(a + b, 1e-300) * (time[k] - time[k - 1])
    return out


def _collect(
    cut: Bool[Array, "n j"],
    where: Float[Array, "n j"],
    use: Bool[Array, "n j"],
    time: Float[Array, " n"],
    ends: Bool[Array, " n"],
    strength: Float[Array, "n j"],
    evidence: float,
) -> Segmentation:
    """Number the segments joint after joint and forget those that say too little."""
    n, joints = cut.shape
    span = np.cumsum(cut.T.ravel()) - 1
    used = use.T.ravel()
    total = int(span[-1]) + 1 if len(span) else 0
    weight = np.bincount(span[used], strength.T.ravel()[used], minlength=total)
    good = (weight >= evidence) & (np.bincount(span[used], minlength=total) >= 2)
    number = np.where(good, np.cumsum(good) - 1, -1)
    label = np.where(used, number[span], -1)
    kept = np.flatnonzero(label >= 0)
    segments = int(good.sum())
    first, last = np.zeros(segments, np.int64), np.zeros(segments, np.int64)
    if segments:
        starts = np.flatnonzero(np.diff(label[kept], prepend=-1))
        first, last = kept[starts], kept[np.append(starts[1:], len(kept)) - 1]
    begins = np.flatnonzero(cut.T.ravel())
    border = where.T.ravel()
    follow = np.append(begins[1:], n * joints)
    start_time = border[begins]
    # A segment that ends with its run ends at its last sample.
    last_sample = follow - 1
    run_end = np.ones(len(begins), bool)
    inner = follow % n != 0
    run_end[inner] = ends[follow[inner] % n]
    end_time = np.where(run_end, time[last_sample % n], border[np.minimum(follow, n * joints - 1)])
    return Segmentation(
        label.reshape(joints, n).T.copy(),
        number[span].reshape(joints, n).T.copy(),
        first // n,
        first % n,
        last % n,
        start_time[good],
        end_time[good],
    )
