"""Who has other friction than the others: as often by chance as it is said, and by what is off."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.fleet.friction_outliers import detectable_friction_rise, friction_outliers
from taufit.fleet.levels import FrictionCurve

NOISE = 0.03


def fleet(robots, *, seed, joints=6, factors=None):
    """Coulomb friction and drag spread by 20 %, seen at two speeds with a little noise."""
    rng = np.random.default_rng(seed)
    terms = np.exp(0.2 * rng.normal(size=(robots, joints, 2)))
    terms = terms * (np.ones((robots, joints)) if factors is None else factors)[:, :, None]
    value = terms[..., :1] + terms[..., 1:] * np.array([0.3, 1.9])
    value = value * np.exp(NOISE * rng.normal(size=value.shape))
    covariance = np.tile(NOISE**2 * np.eye(2), (joints, 1, 1))
    return {f"r{r}": FrictionCurve(value[r], covariance) for r in range(robots)}


@pytest.mark.parametrize("robots", [5, 12, 40])
def test_chance_names_hardly_ever_one(robots):
    # One study in twenty-two may; of 30 more than 5 would be 2 in a thousand.
    found = [any(friction_outliers(fleet(robots, seed=seed)).values()) for seed in range(30)]
    assert sum(found) <= 5


def test_a_worn_joint_is_named_with_its_factor_and_no_other():
    factors = np.ones((30, 6))
    factors[7, 2] = 3.0
    found = friction_outliers(fleet(30, seed=1, factors=factors))
    (one,) = found.pop("r7")
    assert one.joint == 2 and 2.0 < one.factor < 4.5 and one.size > 4.0
    assert not any(found.values())


def test_less_friction_is_named_as_less():
    factors = np.ones((30, 6))
    factors[3, 5] = 0.3
    (one,) = friction_outliers(fleet(30, seed=2, factors=factors))["r3"]
    assert one.joint == 5 and one.factor < 0.5


def test_a_robot_is_named_as_a_whole_where_no_single_joint_stands_out():
    factors = np.ones((60, 6))
    factors[11] = 1.35
    found = friction_outliers(fleet(60, seed=8, factors=factors))
    assert [one.joint for one in found.pop("r11")] == [None]
    assert not any(found.values())


def test_joints_that_rise_together_on_a_cold_morning_are_no_surprise():
    # All joints of a robot share a factor: the spread of robots says how far that goes.
    rng = np.random.default_rng(5)
    factors = np.exp(0.3 * rng.normal(size=(40, 1))) * np.ones((1, 6))
    assert not any(friction_outliers(fleet(40, seed=5, factors=factors)).values())


def test_three_robots_have_no_usual_friction():
    factors = np.ones((3, 6))
    factors[0] = 10.0
    assert not any(friction_outliers(fleet(3, seed=0, factors=factors)).values())


def test_friction_that_is_hardly_known_is_not_judged():
    robots = fleet(20, seed=6)
    robots["r0"] = FrictionCurve(5.0 * robots["r0"].value, np.tile(np.eye(2), (6, 1, 1)))
    assert not friction_outliers(robots)["r0"]


def test_wear_of_the_stated_size_is_named_on_19_of_20_robots():
    named = said = 0
    for seed in range(60):
        factor = detectable_friction_rise(fleet(60, seed=seed))
        worn = np.ones((60, 6))
        at = np.arange(6)
        worn[10 * at, at] = factor
        found = friction_outliers(fleet(60, seed=seed, factors=worn))
        said += 6
        named += sum(any(one.joint == j for one in found[f"r{10 * j}"]) for j in at)
    # 342 of 360, give or take 4 (one standard deviation).
    assert 0.92 * said <= named <= 0.985 * said


def test_nothing_is_promised_of_three_robots():
    assert np.all(np.isinf(detectable_friction_rise(fleet(3, seed=0))))
