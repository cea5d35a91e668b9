"""Histories: wear is found, temperature is not taken for it, files survive."""

from __future__ import annotations

import json

import numpy as np
import pytest
import worn_arm

from taufit.core.errors import RecordingError, TaufitError
from taufit.health import (
    assess_health,
    cusum,
    cusum_threshold,
    read_history,
    start_history,
    write_history,
)
from taufit.health.cusum import sudden_limit
from taufit.regression.pooled_scatter import pooled_scatter


def _watched(history, runs, temperature, wear):
    for k in range(runs):
        one = worn_arm.samples(temperature(k), 500 + k, wear=wear(k))
        history = history.with_run(f"r{k}", one)
    return history, assess_health(history)


def _wander(k):
    return 30.0 + 7.5 * np.sin(0.4 * k)


def test_three_percent_on_one_joint_is_found_and_named(healthy):
    _, found = _watched(healthy, 60, _wander, lambda k: (0.0, 0.03 * (k + 1) / 60, 0.0))
    assert [one.alarm for one in found.joints] == [False, True, False]
    worn = found.joints[1]
    assert "joint 2" in found.headline and worn.alarm_run in found.headline
    # The last ten runs have 2.75 % on average; the baseline's scatter is a few tenths.
    assert worn.change == pytest.approx(2.75, abs=4 * worn.change_std + 0.1)
    assert worn.trend == pytest.approx(0.05, abs=4 * worn.trend_std)
    assert worn.trend > 5 * worn.trend_std


@pytest.mark.parametrize("temperature", [22.0, 38.0])
def test_temperature_alone_raises_no_alarm(healthy, temperature):
    _, found = _watched(healthy, 25, lambda k: temperature, lambda k: (0.0, 0.0, 0.0))
    assert found.healthy and "healthy" in found.headline
    for one in found.joints:
        assert abs(one.change) < 4 * one.change_std + 0.3


def test_histories_survive_their_files(healthy, tmp_path):
    history, found = _watched(healthy, 3, _wander, lambda k: (0.0, 0.0, 0.02))
    write_history(history, tmp_path / "h.json")
    again = read_history(tmp_path / "h.json")
    np.testing.assert_array_equal(assess_health(again).z, found.z)
    assert assess_health(again).to_dict() == found.to_dict()
    json.loads((tmp_path / "h.json").read_text())
    assert [p.name for p in tmp_path.iterdir()] == ["h.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("model"), "damaged"),
        (lambda d: d.update(format="taufit-model"), "not a health history"),
        (lambda d: d.update(version=9), "version 9"),
        (lambda d: d.update(healthy=999), "damaged"),
        (lambda d: d["runs"][2].update(index=[1.0]), "damaged"),
        (lambda d: d["runs"][2].update(index=[1.0, None, 2.0]), "damaged"),
    ],
)
def test_damaged_histories_are_told(healthy, tmp_path, change, message):
    write_history(healthy, tmp_path / "h.json")
    data = json.loads((tmp_path / "h.json").read_text())
    change(data)
    (tmp_path / "h.json").write_text(json.dumps(data))
    with pytest.raises(TaufitError, match=message):
        read_history(tmp_path / "h.json")


def test_the_same_file_is_not_counted_twice(healthy):
    one = worn_arm.samples(30.0)
    history = healthy.with_run("a.csv", one, sha256="ab")
    with pytest.raises(RecordingError, match=r"a\.csv is in this history already"):
        history.with_run("a.csv", one, sha256="ab")


def test_few_runs_are_no_baseline(model):
    with pytest.raises(TaufitError, match="3 healthy runs are too few"):
        start_history(model, [(f"{k}", worn_arm.samples(30.0, k)) for k in range(3)])


def test_threshold_keeps_its_rate():
    """Fresh random numbers, baselines of 30 runs, six joints: fewer than 1 alarm in 1,000 runs."""
    limit = cusum_threshold(1e-3, 6, 30)
    rng = np.random.default_rng(99)
    alarms, runs = 0, 0
    for _ in range(100):
        base = rng.normal(size=(30, 6))
        z = (rng.normal(size=(200, 6)) - base.mean(0)) / (base.std(0, ddof=1) * np.sqrt(1 + 1 / 30))
        alarms += len(cusum(z, limit)[1])
        runs += 200
    # 20 expected of 20,000 at the rate promised; the threshold is set for half of that.
    assert alarms <= 20


def test_a_short_baseline_keeps_its_rate_with_scatter_pooled_over_the_joints():
    """Eight runs, six joints of unequal scatter: alarms at the stated rate; not without pooling."""
    rate, rng = 1e-2, np.random.default_rng(7)
    limits = cusum_threshold(rate, 6, 8), 0.75, sudden_limit(rate, 6, 8)
    pooled, alone = 0, 0
    for _ in range(200):
        true = np.exp(0.3 * rng.normal(size=6))
        base, later = true * rng.normal(size=(8, 6)), true * rng.normal(size=(50, 6))
        own = base.std(0, ddof=1)
        for scale in (pooled_scatter(7 * own**2, 7.0), own):
            z = (later - base.mean(0)) / (scale * np.sqrt(1 + 1 / 8))
            alarms = len(cusum(z, *limits)[1])
            pooled, alone = (pooled, alone + alarms) if scale is own else (pooled + alarms, alone)
    # 100 expected of 10,000 runs at the rate promised; the threshold is set for half of that.
    assert pooled <= 100 < alone


def test_threshold_rises_with_joints_and_falls_with_runs():
    assert cusum_threshold(1e-3, 7, 30) > cusum_threshold(1e-2, 7, 30)
    assert cusum_threshold(1e-3, 7, 30) > cusum_threshold(1e-3, 2, 30)
    assert cusum_threshold(1e-3, 6, 100) < cusum_threshold(1e-3, 6, 30)


def test_cusum_counts_what_lasts():
    z = np.zeros((20, 2))
    z[5:, 1] = 2.0
    z[3, 0] = 50.0
    sums, alarms = cusum(z, threshold=5.0, slack=0.75)
    # One wild run adds at most 4 - 0.75.
    assert sums[3, 0] == pytest.approx(3.25)
    # 1.25 a run: above 5 with the fifth run, then anew.
    assert alarms == ((9, 1), (14, 1), (19, 1))


def test_two_strange_runs_in_a_row_are_an_alarm_and_one_is_not():
    z = np.zeros((12, 2))
    z[3, 0] = 50.0
    z[7:9, 1] = 6.0
    _, alarms = cusum(z, threshold=30.0, slack=0.75, sudden=5.0)
    assert alarms == ((8, 1),)


def test_pairs_of_healthy_runs_hardly_ever_alarm():
    """Baselines of 10 runs, six joints: a tenth of the stated rate at most, counted."""
    limit = sudden_limit(1e-2, 6, 10)
    rng = np.random.default_rng(5)
    base = rng.normal(size=(10, 4000, 6))
    scale = pooled_scatter(9 * base.var(0, ddof=1), 9.0) * np.sqrt(1 + 1 / 10)
    alarms = 0
    before = np.zeros((4000, 6), bool)
    for _ in range(20):
        beyond = (rng.normal(size=(4000, 6)) - base.mean(0)) / scale > limit
        alarms += int(np.count_nonzero(beyond & before))
        before = beyond
    # 80 expected of 80,000 runs at a tenth of one in a hundred.
    assert alarms <= 110
