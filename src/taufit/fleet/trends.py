"""How friction moves over days, temperature taken out.

    log level of robot r, joint j, day d = a_rj + b_rj day + k_j (temperature - usual) + e

k_j is one number for all robots of the type: how friction follows temperature is a property of
grease and gears. Where temperatures were not recorded k is 0 and a trend may be the weather's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import normal_upper_quantile
from taufit.fleet.levels import Levels

_CHANCE = 0.01
# Fewer days show no trend; smaller ones do not matter over the days seen [relative].
_FEWEST, _LEAST = 4, 0.1
# Temperatures that differ by less than this tell nothing about k [K].
_LEAST_WARMTH = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """One robot on one day.

    Attributes:
        day: Its name.
        at: Its number, in days.
        levels: Friction of the joints.
        temperature: Of the joints [degC], or None.
    """

    day: str
    at: float
    levels: Levels
    temperature: Float[Array, " j"] | None


@dataclass(frozen=True, slots=True, eq=False)
class Trend:
    """A robot's friction over days.

    Attributes:
        per_day: Relative change per day, per joint; nan with too few days.
        std: Its standard deviation.
        adjusted: Levels at the usual temperature [N m], one row per day.
    """

    per_day: Float[Array, " j"]
    std: Float[Array, " j"]
    adjusted: Float[Array, "d j"]


def day_numbers(names: Sequence[str]) -> list[float]:
    """Days as numbers: dates as they are, numbered days by their number, others in order."""
    dates = [re.fullmatch(r"(\d{4})-?(\d{2})-?(\d{2})", name) for name in names]
    if all(dates):
        return [float(date(*map(int, one.groups())).toordinal()) for one in dates if one]
    numbers = [re.search(r"\d+", name) for name in names]
    if all(numbers):
        return [float(one.group()) for one in numbers if one]
    return [float(k) for k in range(len(names))]


def friction_temperature_slopes(
    robots: Mapping[str, Sequence[Day]],
) -> tuple[Float[Array, " j"], Array]:
    """k per joint [1/K], and the usual temperature; zero where nothing shows it."""
    joints = len(next(iter(robots.values()))[0].levels.value)
    top, below = np.zeros(joints), np.zeros(joints)
    seen: list[Array] = []
    for days in robots.values():
        if any(day.temperature is None for day in days) or len(days) < 3:
            continue
        x = np.log(np.stack([day.levels.value for day in days]))
        warm = np.stack([np.asarray(day.temperature) for day in days])
        seen.append(warm)
        w = 1.0 / (np.stack([day.levels.std for day in days]) ** 2 + 1e-4)
        t = np.array([day.at for day in days])
        for j in range(joints):
            line = np.column_stack([np.ones(len(t)), t - t.mean()])[:, : 2 if len(t) > 3 else 1]
            a, b = _without(line, w[:, j], x[:, j]), _without(line, w[:, j], warm[:, j])
            top[j] += np.sum(w[:, j] * a * b)
            below[j] += np.sum(w[:, j] * b * b)
    if not seen:
        return np.zeros(joints), np.full(joints, np.nan)
    every = np.concatenate(seen)
    usual = np.median(every, axis=0)
    enough = (below > 0.0) & (every.std(axis=0) > _LEAST_WARMTH)
    return np.where(enough, top / np.where(below > 0.0, below, 1.0), 0.0), usual


def trend(days: Sequence[Day], slopes: Float[Array, " j"], usual: Array) -> Trend:
    """Of one robot."""
    x = np.log(np.stack([day.levels.value for day in days]))
    if all(day.temperature is not None for day in days) and np.all(np.isfinite(usual)):
        x = x - slopes * (np.stack([np.asarray(day.temperature) for day in days]) - usual)
    joints = x.shape[1]
    per_day, std = np.full(joints, np.nan), np.full(joints, np.nan)
    t = np.array([day.at for day in days])
    if len(days) >= _FEWEST and np.ptp(t) > 0.0:
        for j in range(joints):
            noise = np.array([day.levels.std[j] for day in days])
            w = 1.0 / (noise**2 + 1e-6)
            line = np.column_stack([np.ones(len(t)), t - t.mean()])
            inverse = np.linalg.inv(line.T @ (w[:, None] * line))
            own = inverse @ (line.T @ (w * x[:, j]))
            left = x[:, j] - line @ own
            # Days differ by more than a day's data say: never less than they do.
            excess = max(1.0, float(np.sum(w * left**2)) / max(len(t) - 2, 1))
            per_day[j], std[j] = own[1], np.sqrt(inverse[1, 1] * excess)
    return Trend(per_day, std, np.exp(x))


def significant_trends(
    found: Trend, days: Sequence[Day], tests: int
) -> list[tuple[int, str, float]]:
    """Joints whose friction moves over the days: joint from 1, words, standard deviations."""
    limit = normal_upper_quantile(_CHANCE / max(2 * tests, 1))
    span = days[-1].at - days[0].at
    out = []
    for j, (slope, std) in enumerate(zip(found.per_day, found.std, strict=True)):
        change = np.expm1(slope * span)
        # Few days: the spread of a line through them is itself uncertain.
        wide = limit * (1.0 + 4.0 / max(len(days) - 2, 1))
        if np.isfinite(slope) and abs(slope) > wide * std and abs(change) > _LEAST:
            way = "rose" if change > 0 else "fell"
            text = (
                f"friction of joint {j + 1} {way} by {abs(100 * change):.0f} % in {span:g} days, "
                "temperature taken out: look at grease and bearings"
            )
            out.append((j + 1, text, float(abs(slope) / std)))
    return out


def _without(line: Array, w: Array, values: Array) -> Array:
    root = np.sqrt(w)
    own, *_ = np.linalg.lstsq(line * root[:, None], values * root, rcond=None)
    return np.asarray(values - line @ own)
