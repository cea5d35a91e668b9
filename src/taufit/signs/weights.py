"""Row weights of a sign search, from the residuals of an earlier fit."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.signs.data import SearchData
from taufit.signs.folded_normal import FoldedNormalFit


def row_weights(data: SearchData, fit: FoldedNormalFit) -> Float[Array, "n j"]:
    """Row weights from the residuals of a fit.

    Three departures from white noise are distinguished per joint: its magnitude; larger residuals
    near velocity reversals, where the sign of friction is uncertain; and autocorrelation of model
    error, which reduces the number of independent samples.
    """
    samples = data.samples
    keep = np.asarray(samples.keep, bool) & ~find_unsettled_ends(data, fit)[:, None]
    residual = np.where(keep, fit.expected - fit.predicted, 0.0)
    near_reversal = _near_reversal(samples.velocity, samples.run)
    weights = np.empty(residual.shape)
    for i in range(samples.joints):
        base = max(float(fit.noise[i]), float(data.noise[i]))
        deviation = np.full(len(residual), base)
        is_near = near_reversal[:, i] & keep[:, i]
        if is_near.sum() >= 8:
            local_std = np.sqrt(np.mean(residual[is_near, i] ** 2))
            if local_std > 1.3 * base:
                deviation[near_reversal[:, i]] = local_std
        scaled = residual[:, i] / deviation
        weights[:, i] = 1.0 / (deviation * np.sqrt(correlation_length(scaled, samples.run)))
    return weights


def find_unsettled_ends(
    data: SearchData, fit: FoldedNormalFit, reach: int = 25
) -> Bool[Array, " n"]:
    """Samples at the ends of runs with larger residuals than elsewhere.

    Filters and derivatives have not settled there, so the motion, not the torque, is wrong.
    """
    samples = data.samples
    is_unsettled = np.zeros(len(samples), bool)
    unit = np.where(samples.keep, fit.expected - fit.predicted, 0.0) / fit.noise
    starts = np.flatnonzero(np.diff(samples.run, prepend=samples.run[0] - 1))
    stops = np.append(starts[1:], len(samples))
    reach = min(reach, int((stops - starts).min()) // 8)
    if reach < 1:
        return is_unsettled
    step = np.arange(reach)
    rows = np.concatenate([starts[:, None] + step, stops[:, None] - 1 - step])
    size = np.sqrt(np.mean(unit[rows] ** 2, axis=(0, 2)))
    large = np.flatnonzero(size > 2.0)
    if len(large):
        is_unsettled[rows[:, : min(large[-1] + 4, reach)]] = True
    return is_unsettled


def _near_reversal(
    velocity: Float[Array, "n j"], run: Int[Array, " n"], reach: int = 2
) -> Bool[Array, "n j"]:
    """Samples within `reach` of a velocity reversal of their joint."""
    is_reversal = (velocity[1:] * velocity[:-1] <= 0.0) & (run[1:] == run[:-1])[:, None]
    return is_near_event(is_reversal, reach)


def is_near_event(between: Bool[Array, "m j"], reach: int = 2) -> Bool[Array, "n j"]:
    """Samples within `reach` of an event between two neighbours, m = n - 1."""
    is_near = np.zeros((len(between) + 1, between.shape[1]), bool)
    for step in range(reach):
        is_near[: len(between) - step] |= between[step:]
        is_near[1 + step :] |= between[: len(between) - step]
    return is_near


def correlation_length(residual: Float[Array, " n"], run: Int[Array, " n"]) -> float:
    """Number of samples per independent sample: 1 + 2 sum of autocorrelations rho.

    The sum ends at the first autocorrelation below 0.05.
    """
    power = float(residual @ residual)
    if power <= 0.0:
        return 1.0
    total = 1.0
    for lag in range(1, min(len(residual) // 4, 200)):
        same = run[lag:] == run[:-lag]
        rho = float(np.sum(residual[lag:] * residual[:-lag] * same)) / power
        if rho < 0.05:
            break
        total += 2.0 * rho
    return total
