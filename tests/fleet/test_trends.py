"""Friction over days: what temperature does is taken out, what is left is a trend."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.fleet.levels import FrictionLevels
from taufit.fleet.trends import (
    DailyFriction,
    day_numbers,
    fit_trend,
    friction_temperature_slopes,
    significant_trends,
)

SLOPE = np.array([-0.012, -0.02])


def fleet(rise=0.0, *, robots=6, days=12, warm=True, seed=4):
    """Robots whose friction falls with temperature, weather that is the same for all of them, and
    one robot whose second joint rises by a factor over the days."""
    rng = np.random.default_rng(seed)
    weather = np.linspace(30.0, 18.0, days) + rng.normal(0.0, 1.0, days)
    out = {}
    for r in range(robots):
        own = 5.0 * np.exp(0.2 * rng.normal(size=2))
        line = []
        for d in range(days):
            hot = weather[d] + rng.normal(0.0, 1.5, 2)
            log = SLOPE * (hot - 24.0) + 0.01 * rng.normal(size=2)
            if r == 0:
                log[1] += np.log1p(rise) * d / (days - 1)
            levels = FrictionLevels(own * np.exp(log), np.full(2, 0.01))
            line.append(DailyFriction(f"{d}", float(d), levels, hot if warm else None))
        out[f"r{r}"] = line
    return out


def named(robots):
    slopes, usual = friction_temperature_slopes(robots)
    tests = 2 * len(robots)
    return {
        name: [
            joint for joint, _, _ in significant_trends(fit_trend(days, slopes, usual), days, tests)
        ]
        for name, days in robots.items()
    }


@pytest.mark.parametrize("seed", range(8))
def test_weather_alone_is_no_trend(seed):
    assert not any(named(fleet(seed=seed)).values())


def test_without_temperatures_the_same_weather_is_one():
    # The law above would hold for a method that finds nothing; this shows what is taken out.
    assert any(named(fleet(warm=False)).values())


@pytest.mark.parametrize("seed", range(8))
def test_friction_that_rises_is_named_with_its_joint_and_no_other(seed):
    found = named(fleet(0.4, seed=seed))
    assert found.pop("r0") == [2]
    assert not any(found.values())


def test_how_friction_follows_temperature_is_learnt_from_all_robots():
    slopes, usual = friction_temperature_slopes(fleet(0.4))
    # 72 robot days with 1.5 K of their own and 1 % of noise: a few thousandths.
    np.testing.assert_allclose(slopes, SLOPE, atol=0.003)
    assert np.all(np.abs(usual - 24.0) < 3.0)


def test_levels_at_the_usual_temperature_do_not_follow_the_weather():
    robots = fleet()
    slopes, usual = friction_temperature_slopes(robots)
    for days in robots.values():
        adjusted = fit_trend(days, slopes, usual).friction_at_reference
        raw = np.stack([day.levels.value for day in days])
        assert np.all(np.ptp(np.log(adjusted), axis=0) < 0.5 * np.ptp(np.log(raw), axis=0))


def test_three_days_show_no_trend():
    robots = fleet(2.0, days=3)
    assert not any(named(robots).values())
    assert np.all(np.isnan(fit_trend(robots["r0"], np.zeros(2), np.full(2, np.nan)).per_day))


def test_days_are_dates_or_numbers_or_come_in_order():
    assert np.diff(day_numbers(["2026-02-28", "2026-03-01"])).tolist() == [1.0]
    assert day_numbers(["day 3", "day 11"]) == [3.0, 11.0]
    assert day_numbers(["monday", "tuesday"]) == [0.0, 1.0]
