"""Trends of friction over days, compensated for temperature.

    log level of robot r, joint j, day d = a_rj + b_rj day + k_j (temperature - reference) + e

k_j is common to all robots of the type, a property of grease and gears. Without recorded
temperatures k is 0 and a trend may be caused by ambient temperature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import normal_upper_quantile
from taufit.fleet.levels import FrictionLevels

_FALSE_ALARM = 0.01
# Smallest number of days for a trend, and smallest relevant change [relative].
_MIN_DAYS, _MIN_CHANGE = 4, 0.1
# Smallest standard deviation of temperature that identifies k [K].
_MIN_TEMPERATURE_STD = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class DailyFriction:
    """Friction of one robot on one day.

    Attributes:
        day: Name of the day.
        number: Number of the day.
        levels: Friction levels of the joints.
        temperature: Joint temperature [degC], or None.
    """

    day: str
    number: float
    levels: FrictionLevels
    temperature: Float[Array, " j"] | None


@dataclass(frozen=True, slots=True, eq=False)
class FrictionTrend:
    """Trend of a robot's friction over days.

    Attributes:
        per_day: Relative change per day, per joint; nan with too few days.
        std: Standard deviation of the change per day.
        friction_at_reference: Friction levels at the reference temperature [N m], one row per day.
    """

    per_day: Float[Array, " j"]
    std: Float[Array, " j"]
    friction_at_reference: Float[Array, "d j"]


def day_numbers(names: Sequence[str]) -> list[float]:
    """Days as numbers: dates as ordinals, numbered days by their number, others in order."""
    dates = [re.fullmatch(r"(\d{4})-?(\d{2})-?(\d{2})", name) for name in names]
    if all(dates):
        return [float(date(*map(int, match.groups())).toordinal()) for match in dates if match]
    numbers = [re.search(r"\d+", name) for name in names]
    if all(numbers):
        return [float(match.group()) for match in numbers if match]
    return [float(k) for k in range(len(names))]


def friction_temperature_slopes(
    robots: Mapping[str, Sequence[DailyFriction]],
) -> tuple[Float[Array, " j"], Array]:
    """Slope k per joint [1/K], and the reference temperature; zero if not identifiable."""
    joints = len(next(iter(robots.values()))[0].levels.value)
    numerator, denominator = np.zeros(joints), np.zeros(joints)
    temperatures: list[Array] = []
    for days in robots.values():
        if any(day.temperature is None for day in days) or len(days) < 3:
            continue
        x = np.log(np.stack([day.levels.value for day in days]))
        temperature = np.stack([np.asarray(day.temperature) for day in days])
        temperatures.append(temperature)
        w = 1.0 / (np.stack([day.levels.std for day in days]) ** 2 + 1e-4)
        t = np.array([day.number for day in days])
        for j in range(joints):
            line = np.column_stack([np.ones(len(t)), t - t.mean()])[:, : 2 if len(t) > 3 else 1]
            a, b = (
                _residual_of_line(line, w[:, j], x[:, j]),
                _residual_of_line(line, w[:, j], temperature[:, j]),
            )
            numerator[j] += np.sum(w[:, j] * a * b)
            denominator[j] += np.sum(w[:, j] * b * b)
    if not temperatures:
        return np.zeros(joints), np.full(joints, np.nan)
    all_temperatures = np.concatenate(temperatures)
    reference = np.median(all_temperatures, axis=0)
    is_identifiable = (denominator > 0.0) & (all_temperatures.std(axis=0) > _MIN_TEMPERATURE_STD)
    return np.where(
        is_identifiable, numerator / np.where(denominator > 0.0, denominator, 1.0), 0.0
    ), reference


def fit_trend(
    days: Sequence[DailyFriction], slopes: Float[Array, " j"], reference: Array
) -> FrictionTrend:
    """Fit the trend of one robot."""
    x = np.log(np.stack([day.levels.value for day in days]))
    if all(day.temperature is not None for day in days) and np.all(np.isfinite(reference)):
        x = x - slopes * (np.stack([np.asarray(day.temperature) for day in days]) - reference)
    joints = x.shape[1]
    per_day, std = np.full(joints, np.nan), np.full(joints, np.nan)
    t = np.array([day.number for day in days])
    if len(days) >= _MIN_DAYS and np.ptp(t) > 0.0:
        for j in range(joints):
            noise = np.array([day.levels.std[j] for day in days])
            w = 1.0 / (noise**2 + 1e-6)
            line = np.column_stack([np.ones(len(t)), t - t.mean()])
            inverse = np.linalg.inv(line.T @ (w[:, None] * line))
            coefficients = inverse @ (line.T @ (w * x[:, j]))
            residual = x[:, j] - line @ coefficients
            # Scale the variance by the residuals if days vary more than expected.
            excess = max(1.0, float(np.sum(w * residual**2)) / max(len(t) - 2, 1))
            per_day[j], std[j] = coefficients[1], np.sqrt(inverse[1, 1] * excess)
    return FrictionTrend(per_day, std, np.exp(x))


def significant_trends(
    trend: FrictionTrend, days: Sequence[DailyFriction], tests: int
) -> list[tuple[int, str, float]]:
    """Joints with significant trends: joint from 1, message, size in standard deviations."""
    limit = normal_upper_quantile(_FALSE_ALARM / max(2 * tests, 1))
    span = days[-1].number - days[0].number
    out = []
    for j, (slope, std) in enumerate(zip(trend.per_day, trend.std, strict=True)):
        change = np.expm1(slope * span)
        # With few days the standard deviation is itself uncertain.
        scaled_limit = limit * (1.0 + 4.0 / max(len(days) - 2, 1))
        if np.isfinite(slope) and abs(slope) > scaled_limit * std and abs(change) > _MIN_CHANGE:
            direction = "rose" if change > 0 else "fell"
            text = (
                f"friction of joint {j + 1} {direction} by {abs(100 * change):.0f} % in {span:g} "
                "days, temperature taken out: look at grease and bearings"
            )
            out.append((j + 1, text, float(abs(slope) / std)))
    return out


def _residual_of_line(line: Array, w: Array, values: Array) -> Array:
    root = np.sqrt(w)
    coefficients, *_ = np.linalg.lstsq(line * root[:, None], values * root, rcond=None)
    return np.asarray(values - line @ coefficients)
