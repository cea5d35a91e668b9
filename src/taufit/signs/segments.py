"""Segments of constant sign in torque magnitudes.

A segment of one joint is assumed to have one sign. A superfluous cut costs the search little, a
missing one causes a wrong sign. So cuts are made at

- every local minimum of the smoothed |torque| below its rms,
- every velocity reversal of the joint, where Coulomb friction lets torque jump across zero,
- every zero crossing of a torque predicted by an earlier round, if there is one,
- the ends of runs and of intervals whose sign the user gave.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.signals.recursive_filter import butterworth


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """Segment of every sample, and the extent of the segments.

    Attributes:
        label: Segment of each sample and joint; -1 for samples left out of the search.
        span: Segment of each sample, including those left out, e.g. next to a crossing.
        joint: Joint of each segment.
        first, last: First and last sample used (inclusive).
        begin, end: Start and end [s within its run], interpolated at zero crossings.
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
    """Torque noise per joint from third differences, at least 2 % of the rms [N m].

    Third differences of a smooth signal vanish and multiply white noise by sqrt(20). The median
    ignores the few samples where |torque| folds at zero.
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
    """Root mean square of the used samples; tiny, not zero, for a joint without torque."""
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
        velocity: Joint velocities.
        time, run: Time and run of each sample.
        keep: Usable samples.
        noise: Standard deviation per joint [N m].
        rate_hz: Sampling rate [Hz].
        predicted: Signed torque predicted by an earlier round, if any.
        untrusted: Samples whose motion is uncertain: they are left out, and crossings predicted
            there are ignored.
        borders: Further cuts, before the marked samples.
        weight: Weight of each sample; default: 1 / noise.
        evidence: Minimum sum of (|torque| weight)^2 of a segment; the sign of weaker ones is left
            to the fitted model.
    """
    n, joints = magnitude.shape
    rms = joint_rms(magnitude, keep)
    smooth = lowpass_magnitude(magnitude, run, rate_hz, noise / rms)

    cut = np.zeros((n, joints), bool)
    crossing_time = np.full((n, joints), np.nan)  # time of the crossing behind a cut
    middle = 0.5 * (time[1:] + time[:-1])
    crossing_time[1:] = middle[:, None]
    inner = smooth[1:-1]
    k, i = np.nonzero((inner <= smooth[:-2]) & (inner < smooth[2:]) & (inner < rms))
    # Smoothing may move the minimum of a steep V by a sample: find it in the magnitudes.
    neighbours = np.clip(k[:, None] + np.arange(3), 1, n - 2)
    k = neighbours[np.arange(len(k)), magnitude[neighbours, i[:, None]].argmin(1)]
    dip = np.zeros((n, joints), bool)
    dip[k, i] = True
    # A V with its minimum between two samples: the lower neighbour is across the zero.
    across_left = magnitude[k - 1, i] < magnitude[k + 1, i]
    cut_row = np.where(across_left, k, k + 1)
    cut[cut_row, i] = True
    before, after = magnitude[cut_row - 1, i], magnitude[cut_row, i]
    fraction = before / np.maximum(before + after, 1e-300)
    crossing_time[cut_row, i] = time[cut_row - 1] + fraction * (time[cut_row] - time[cut_row - 1])

    reversal = np.zeros((n, joints), bool)
    reversal[1:] = velocity[1:] * velocity[:-1] <= 0.0
    new_crossing = _crossings(reversal & ~cut, velocity, time)
    crossing_time = np.where(np.isnan(new_crossing), crossing_time, new_crossing)
    cut |= reversal
    if predicted is not None:
        crossing = np.zeros((n, joints), bool)
        # Use a crossing only if the magnitude does not contradict the model.
        is_consistent = magnitude - np.abs(predicted) < 4.0 * noise
        crossing[1:] = (predicted[1:] * predicted[:-1] <= 0.0) & (
            is_consistent[1:] | is_consistent[:-1]
        )
        if untrusted is not None:
            crossing &= ~untrusted[:, None]
        predicted_time = _crossings(crossing, predicted, time)
        crossing_time = np.where(np.isnan(predicted_time), crossing_time, predicted_time)
        cut |= crossing
    if borders is not None:
        cut |= borders
    ends = np.zeros(n, bool)
    ends[0] = True
    ends[1:] = run[1:] != run[:-1]
    cut |= ends[:, None]
    crossing_time[ends] = time[ends][:, None]

    # Selecting samples by their own noisy value would favour those enlarged by noise.
    minimum = np.maximum(1.5 * noise, 0.03 * rms)
    large = smooth >= minimum
    if predicted is not None:
        large |= np.abs(predicted) >= minimum
    use = keep & large & ~dip
    if untrusted is not None:
        use &= ~untrusted[:, None]
    strength = (magnitude / noise if weight is None else magnitude * weight) ** 2
    return _collect(cut, crossing_time, use, time, ends, strength, evidence)


def lowpass_magnitude(
    magnitude: Float[Array, "n j"],
    run: Int[Array, " n"],
    rate_hz: float,
    relative_noise: Float[Array, " j"],
) -> Float[Array, "n j"]:
    """Zero-phase low-pass per run: 4 Hz where noise is high, up to 8 Hz where it is low."""
    from scipy.signal import sosfiltfilt

    smooth = np.array(magnitude)
    cutoffs = np.clip(6.0 * np.sqrt(0.05 / np.maximum(relative_noise, 1e-9)), 4.0, 8.0)
    for r in np.unique(run):
        rows = np.flatnonzero(run == r)
        for cutoff in np.unique(np.round(cutoffs)):
            if cutoff >= 0.4 * rate_hz or len(rows) < 12:
                continue
            columns = np.flatnonzero(np.round(cutoffs) == cutoff)
            sos = _lowpass(float(cutoff), float(rate_hz))
            smooth[np.ix_(rows, columns)] = sosfiltfilt(
                sos, magnitude[np.ix_(rows, columns)], axis=0, padlen=min(len(rows) - 1, 12)
            )
    return smooth


@lru_cache(maxsize=32)
def _lowpass(cutoff_hz: float, rate_hz: float) -> Float[Array, "1 6"]:
    return butterworth(2, cutoff_hz, rate_hz)


def _crossings(
    is_crossing: Bool[Array, "n j"], signal: Float[Array, "n j"], time: Float[Array, " n"]
) -> Float[Array, "n j"]:
    """Time of the zero between a marked sample and the one before, by linear interpolation."""
    times = np.full(is_crossing.shape, np.nan)
    k, i = np.nonzero(is_crossing)
    a, b = np.abs(signal[k - 1, i]), np.abs(signal[k, i])
    times[k, i] = time[k - 1] + a / np.maximum(a + b, 1e-300) * (time[k] - time[k - 1])
    return times


def _collect(
    cut: Bool[Array, "n j"],
    crossing_time: Float[Array, "n j"],
    use: Bool[Array, "n j"],
    time: Float[Array, " n"],
    ends: Bool[Array, " n"],
    strength: Float[Array, "n j"],
    evidence: float,
) -> Segmentation:
    """Number the segments joint by joint and drop those with too little evidence."""
    n, joints = cut.shape
    span = np.cumsum(cut.T.ravel()) - 1
    used = use.T.ravel()
    total = int(span[-1]) + 1 if len(span) else 0
    weight = np.bincount(span[used], strength.T.ravel()[used], minlength=total)
    has_evidence = (weight >= evidence) & (np.bincount(span[used], minlength=total) >= 2)
    number = np.where(has_evidence, np.cumsum(has_evidence) - 1, -1)
    label = np.where(used, number[span], -1)
    labelled = np.flatnonzero(label >= 0)
    segments = int(has_evidence.sum())
    first, last = np.zeros(segments, np.int64), np.zeros(segments, np.int64)
    if segments:
        starts = np.flatnonzero(np.diff(label[labelled], prepend=-1))
        first, last = labelled[starts], labelled[np.append(starts[1:], len(labelled)) - 1]
    begins = np.flatnonzero(cut.T.ravel())
    border_time = crossing_time.T.ravel()
    next_begin = np.append(begins[1:], n * joints)
    start_time = border_time[begins]
    # A segment that ends with its run ends at its last sample.
    last_sample = next_begin - 1
    run_end = np.ones(len(begins), bool)
    inner = next_begin % n != 0
    run_end[inner] = ends[next_begin[inner] % n]
    end_time = np.where(
        run_end, time[last_sample % n], border_time[np.minimum(next_begin, n * joints - 1)]
    )
    return Segmentation(
        label.reshape(joints, n).T.copy(),
        number[span].reshape(joints, n).T.copy(),
        first // n,
        first % n,
        last % n,
        start_time[has_evidence],
        end_time[has_evidence],
    )
