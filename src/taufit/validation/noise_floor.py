"""Torque that no model explains, from the recording alone: noise behind the low-pass, and repeats.

Two independent estimates, both relative to the standard deviation of the measured torque (nrmse):

    noise    density of the unfiltered torque beyond the cut-off, in its quietest band, carried
             through the pass band
    repeats  gamma test: half the mean squared torque difference of samples in the same state,
             extrapolated to equal states; lower end of its 95 % interval, since pairs are few

Neither uses a model, so a wrong structure cannot raise them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.statistics import NORMAL_95
from taufit.model.score import MAX_NOISE
from taufit.signals.samples import Samples

# Edges of the bands in which noise is measured, in cut-off frequencies; highest usable frequency,
# relative to the sampling rate; shortest motion of a run [samples].
_BAND_EDGES, _MAX_FREQUENCY, _MIN_RUN = (1.5, 2.0, 3.0, 4.5, 6.5), 0.4, 200
# Band of recordings too slow for those, in cut-off frequencies: noise above half the rate is folded
# into it. Chosen of three on the UR10e at 25 Hz (nine runs: 0.80 to 1.18 of the noise, mean 1.00);
# Panda, Airbot, Kinova, TX40 and KR300 thinned alike: 0.8, 1.0, 1.0, 1.3 and 1.6.
_FOLDED_BAND = (1.3, 2.0)
# Folded noise is mentioned from this fraction of the torque.
_MIN_FOLDED = 0.01
# Torque was filtered before it was recorded if the density falls by this factor over the bands, or
# if the noise is below this fraction of the torque.
_SOURCE_FILTER, _MIN_NOISE = 50.0, 2e-4
# Repeats: largest number of samples compared, time between the samples of a pair [s], largest
# distance per axis [std], smallest number of pairs, number of bins of the extrapolation.
_MAX_SAMPLES, _MIN_LAG_S, _MAX_DISTANCE, _MIN_PAIRS, _BINS = 1500, 1.0, 0.35, 150, 8
# A joint moves above this fraction of its largest speed; an axis counts from this range [rad or m].
_MOVING_FRACTION, _MIN_RANGE = 0.05, 0.02


def noise_share(samples: Samples) -> Float[Array, " j"]:
    """Noise behind the low-pass over the standard deviation of torque; nan where unknown.

    Unknown where the torque was filtered before it was recorded, or the band is too narrow.
    """
    density = _noise_density(samples)
    if density is None:
        return white_noise_share(samples)
    share = np.sqrt(density.min(axis=0) * _pass_band(samples)) / _torque_std(samples)
    filtered = density[-1] * _SOURCE_FILTER < density[0]
    unknown = filtered | ~(share >= _MIN_NOISE)
    return np.asarray(np.where(unknown, white_noise_share(samples), share))


def white_noise_share(samples: Samples) -> Float[Array, " j"]:
    """Noise of neighbouring samples over the standard deviation of torque, where it dominates.

    It is a lower bound, which does not need the unfiltered torque: enough to call a torque noise,
    not to state the noise of one that is not; nan there.
    """
    share = samples.white_noise_share
    return np.asarray(np.where(share > MAX_NOISE, share, np.nan))


def repeat_share(samples: Samples) -> Float[Array, " j"]:
    """Torque difference of repeats of a state over the standard deviation of torque, at least.

    It is the lower end of a 95 % interval; nan where that is not above zero, or where fewer than
    150 pairs of samples are near each other, as in every exciting motion.
    """
    rows = np.flatnonzero(samples.in_motion)
    rows = rows[:: max(1, -(-len(rows) // _MAX_SAMPLES))]
    out = np.full(samples.joints, np.nan)
    axes = np.ptp(samples.position[rows], axis=0) > _MIN_RANGE if len(rows) else np.zeros(0, bool)
    if len(rows) < _MIN_PAIRS or not np.any(axes):
        return out
    state = np.concatenate(
        [getattr(samples, k)[rows][:, axes] for k in ("position", "velocity", "acceleration")],
        axis=1,
    )
    state = (state - state.mean(axis=0)) / np.maximum(state.std(axis=0), 1e-12)
    square = np.einsum("nk,nk->n", state, state)
    distance = np.maximum(square[:, None] + square[None] - 2.0 * state @ state.T, 0.0)
    distance /= state.shape[1]
    time, run = samples.time[rows], samples.run[rows]
    near_in_time = np.abs(time[:, None] - time[None]) < _MIN_LAG_S
    distance[near_in_time & (run[:, None] == run[None])] = np.inf
    if np.count_nonzero(distance.min(axis=1) < _MAX_DISTANCE**2) < _MIN_PAIRS:
        return out
    velocity, torque = samples.friction_velocity[rows], samples.torque[rows]
    torque_std = _torque_std(samples)
    # Low-passed torque has two independent values per period of the cut-off, and most pairs count
    # twice: a sample is the nearest one of its own nearest one.
    seconds = np.count_nonzero(samples.in_motion) / samples.rate_hz
    independent = 0.5 * min(1.0, 2.0 * samples.cutoff_hz * seconds / len(rows))
    for j in np.flatnonzero(axes):
        direction = np.sign(velocity[:, j]) * (
            np.abs(velocity[:, j]) > _MOVING_FRACTION * np.abs(velocity[:, j]).max()
        )
        same = (direction[:, None] == direction[None]) & (direction != 0.0)[:, None]
        allowed = np.where(same, distance, np.inf)
        nearest = np.argmin(allowed, axis=1)
        pair_distance = allowed[np.arange(len(rows)), nearest]
        pairs = np.flatnonzero(pair_distance < _MAX_DISTANCE**2)
        if len(pairs) >= _MIN_PAIRS:
            half_square = 0.5 * (torque[pairs, j] - torque[nearest[pairs], j]) ** 2
            variance = _extrapolate(pair_distance[pairs], half_square, independent)
            out[j] = np.sqrt(variance) / torque_std[j] if variance > 0.0 else np.nan
    return out


def _extrapolate(
    distance: Float[Array, " n"], value: Float[Array, " n"], independent: float
) -> float:
    """Lower end of the 95 % interval of the value at distance zero.

    The value is that of a line through the means of bins.

    Args:
        distance: Squared distance of each pair.
        value: Half the squared torque difference of each pair.
        independent: Fraction of the pairs that are independent.
    """
    bins = np.array_split(np.argsort(distance), _BINS)
    x = np.array([distance[index].mean() for index in bins])
    y = np.array([value[index].mean() for index in bins])
    line = np.stack([np.ones(_BINS), x], axis=1) if np.ptp(x) > 0.0 else np.ones((_BINS, 1))
    weights = np.linalg.pinv(line)[0]
    variance = [value[index].var() / max(independent * len(index), 1.0) for index in bins]
    return float(weights @ y - NORMAL_95 * np.sqrt(weights**2 @ np.array(variance)))


def _noise_density(samples: Samples) -> Float[Array, "b j"] | None:
    """Mean variance per sample of the unfiltered torque in each band; None without bands.

    The spectrum is that of the first difference, so that slow motion does not leak, divided by the
    gain of the difference. Its median over a band is ln 2 times the mean of noise, and passes over
    the lines of gears.
    """
    edges = _band_edges(samples)
    if samples.raw_torque is None or len(edges) < 2:
        return None
    total, count = np.zeros((len(edges) - 1, samples.joints)), 0
    for rows in samples.run_slices():
        torque = samples.raw_torque[rows][samples.in_motion[rows]]
        if len(torque) < _MIN_RUN:
            continue
        difference = np.diff(torque, axis=0)
        n = len(difference)
        window = np.hanning(n)[:, None]
        frequency = np.fft.rfftfreq(n, 1.0 / samples.rate_hz)
        spectrum = np.abs(np.fft.rfft((difference - difference.mean(axis=0)) * window, axis=0)) ** 2
        gain = 4.0 * np.sin(np.pi * frequency / samples.rate_hz) ** 2
        spectrum /= np.sum(window**2) * np.maximum(gain, 1e-12)[:, None]
        for band, (low, high) in enumerate(pairwise(edges)):
            inside: Bool[Array, " f"] = (frequency >= low) & (frequency < high)
            if not np.any(inside):
                return None
            total[band] += n * np.median(spectrum[inside], axis=0) / np.log(2.0)
        count += n
    return total / count if count else None


def _band_edges(samples: Samples) -> Float[Array, " e"]:
    """Edges of the bands in which noise is measured [Hz]; none where the rate is too low."""
    edges = np.array(_BAND_EDGES) * samples.cutoff_hz
    edges = edges[edges < _MAX_FREQUENCY * samples.rate_hz]
    if len(edges) < 2:
        edges = np.array(_FOLDED_BAND) * samples.cutoff_hz
    return edges if edges[-1] <= _MAX_FREQUENCY * samples.rate_hz else edges[:0]


def noise_findings(samples: Samples, share: Float[Array, " j"]) -> tuple[str, ...]:
    """Sentence on noise that a low rate folds into the band of the torque.

    Args:
        samples: Judged samples.
        share: Noise behind the low-pass over the standard deviation of torque.
    """
    edges = _band_edges(samples)
    if len(edges) != len(_FOLDED_BAND) or edges[0] >= _BAND_EDGES[0] * samples.cutoff_hz:
        return ()
    share = share[np.isfinite(share)]
    if len(share) == 0 or share.mean() < _MIN_FOLDED:
        return ()
    return (
        f"{samples.rate_hz:.3g} samples per second fold noise into the band below "
        f"{samples.cutoff_hz:g} Hz: {100 * share.mean():.2g} % of the torque is noise that no "
        "model explains; record at 100 Hz or more",
    )


def _pass_band(samples: Samples) -> float:
    return min(1.0, 2.0 * samples.cutoff_hz / samples.rate_hz)


def _torque_std(samples: Samples) -> Float[Array, " j"]:
    torque = samples.torque[samples.in_motion]
    std = torque.std(axis=0) if len(torque) else np.zeros(samples.joints)
    return np.asarray(np.where(std > 0.0, std, np.nan))


__all__ = ["noise_findings", "noise_share", "repeat_share", "white_noise_share"]
