"""Friction followed beside its model: causal, the same however it is cut, and worth having."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "validation"))
import simulated_arm

from taufit.core.errors import TaufitError
from taufit.health import FrictionTracker, apply_drift, read_drift, track, write_drift
from taufit.health.tracker import interval_coverage, score_tracking
from taufit.model.intervals import coulomb_level
from taufit.model.model_file import write_model
from taufit.model.predict import predicted_torque
from taufit.recording import write_recording
from taufit.robot import read_robot
from taufit.workflow import condition_for_model, identify


@pytest.fixture(scope="module")
def truth():
    return simulated_arm.true_model(read_robot("ur5e"))


@pytest.fixture(scope="module")
def model(truth):
    return identify(
        read_robot("ur5e"), [simulated_arm.recording(truth, 20.0, 0)], cutoff_hz=8.0
    ).model


@pytest.fixture(scope="module")
def drifted(truth):
    """Coulomb friction of joint 2 is 15 % higher."""
    values = truth.values.copy()
    at = truth.layout.index("joint_2.coulomb")
    values[at] *= 1.15
    return simulated_arm.recording(truth.with_values(values), 25.0, 3)


def test_the_followed_friction_is_the_one_that_changed(truth, model, drifted):
    samples = condition_for_model(model, [drifted])
    course = track(model, samples)
    end = course.parts[-1]
    rise = 0.15 * truth.values[truth.layout.index("joint_2.coulomb")]
    assert end[1, 0] == pytest.approx(rise, rel=0.4)
    assert np.abs(np.delete(end[:, 0], 1)).max() < 0.3 * rise


@pytest.mark.parametrize("rise", [-0.5, 0.6])
def test_a_large_change_is_known_before_long(truth, model, rise):
    """A filter that expects a few percent would need minutes."""
    values = truth.values.copy()
    at = truth.layout.index("joint_2.coulomb")
    values[at] *= 1.0 + rise
    changed = simulated_arm.recording(truth.with_values(values), 12.0, 5)
    samples = condition_for_model(model, [changed])
    predicted = predicted_torque(model, samples)
    course = track(model, samples, predicted=predicted)
    soon = (samples.time > 2.0) & (samples.time < 6.0)
    left = (samples.torque - predicted)[soon, 1]
    assert np.std(left - course.correction[soon, 1]) < 0.3 * np.std(left)


@pytest.mark.parametrize("rise", [0.0, 0.3])
def test_the_filter_whose_expectation_comes_true_is_the_one_that_counts(model, rise):
    """Noise as the model has it, friction as it is or 30 % higher, ten seconds at 100 Hz."""
    rng = np.random.default_rng(3)
    tracker = FrictionTracker(model, 100.0)
    level = coulomb_level(model)
    rms = model.training.score.rmse
    for i in range(1000):
        velocity = np.sin(0.02 * i + np.arange(6.0))
        friction = level * np.sign(velocity)
        noise = rms * rng.normal(size=6)
        tracker.correct(friction, velocity, rise * friction + noise, np.ones(6, bool))
    assert np.abs(tracker.state[:, 0] / level - rise).max() < 0.05
    assert set(tracker.log_likelihood.argmax(axis=0)) == ({3} if rise else {0})


def test_where_there_is_nothing_to_follow_little_is_lost(truth, model):
    ratios = []
    for seed in (4, 5, 6):
        samples = condition_for_model(model, [simulated_arm.recording(truth, 25.0, seed)])
        predicted = predicted_torque(model, samples)
        worth = score_tracking(samples, predicted, track(model, samples, predicted=predicted))
        ratios.append(worth.second_half / worth.second_half_before)
    assert np.mean(ratios) < 1.04


def test_following_predicts_better_where_friction_has_changed(model, drifted):
    samples = condition_for_model(model, [drifted])
    predicted = predicted_torque(model, samples)
    worth = score_tracking(samples, predicted, track(model, samples, predicted=predicted))
    assert worth.second_half < 0.85 * worth.second_half_before


def test_no_torque_helps_to_predict_itself_or_what_was_before(model, drifted):
    """Torque changed from 10 s on changes nothing until half a second later."""
    samples = condition_for_model(model, [drifted])
    predicted = predicted_torque(model, samples)
    first = track(model, samples, predicted=predicted)
    when = round(10.0 * samples.rate_hz)
    shifted = np.array(predicted)
    shifted[when:] += 3.0
    other = track(model, samples, predicted=shifted)
    delay = round(0.5 * samples.rate_hz)
    np.testing.assert_array_equal(
        first.correction[: when + delay], other.correction[: when + delay]
    )
    assert np.any(first.correction[when + 2 * delay :] != other.correction[when + 2 * delay :])


def test_a_standing_joint_does_not_move_its_estimate(model):
    tracker = FrictionTracker(model, 100.0)
    still = np.zeros(6)
    for _ in range(200):
        tracker.correct(still, still, np.full(6, 5.0), np.zeros(6, bool))
    assert not np.any(tracker.state)


def test_check_follows_friction_on_request(model, drifted, tmp_path, capsys):
    from taufit.cli.app import main

    write_model(model, tmp_path / "m.json")
    write_recording(drifted, tmp_path / "run.parquet")
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as ended:
        main(
            ["check", str(tmp_path / "m.json"), str(tmp_path / "run.parquet"), "--track",
             "--report", str(page), "--json"]
        )  # fmt: skip
    assert ended.value.code in (0, None)
    data = json.loads(capsys.readouterr().out)
    own = data["files"][0]["tracked"]
    assert own["second_half"] < own["second_half_before"]
    assert 0.5 < data["files"][0]["mean_inside"] <= 1.0
    assert "<canvas" in page.read_text("utf-8")


@pytest.fixture(scope="module")
def tracked(model, drifted):
    return track(model, condition_for_model(model, [drifted]))


@pytest.fixture(scope="module")
def next_run(truth, model):
    """Another motion, with the friction of joint 2 that `drifted` has."""
    values = truth.values.copy()
    values[truth.layout.index("joint_2.coulomb")] *= 1.15
    return condition_for_model(model, [simulated_arm.recording(truth.with_values(values), 6.0, 8)])


def test_a_run_begins_with_the_friction_of_the_run_before(model, tracked, next_run):
    predicted = predicted_torque(model, next_run)
    fresh = track(model, next_run, predicted=predicted)
    carried = track(model, next_run, predicted=predicted, drift=tracked.drift)
    start = next_run.in_motion & (next_run.time < next_run.time[next_run.in_motion][0] + 1.0)
    error = (next_run.torque - predicted)[start, 1]
    left = [np.sqrt(np.mean((error - c.correction[start, 1]) ** 2)) for c in (fresh, carried)]
    assert left[1] < 0.6 * left[0]
    # The drift of a first sample is that of the last run, however the samples are split.
    np.testing.assert_array_equal(carried.parts[0], tracked.drift.parts)
    assert 0.88 < interval_coverage(model, next_run, carried).mean() <= 1.0


def test_a_model_with_drift_predicts_what_tracking_adds(model, tracked, next_run):
    moved = predicted_torque(apply_drift(model, tracked.drift), next_run)
    added = moved - predicted_torque(model, next_run)
    start = track(model, next_run, drift=tracked.drift).correction[:40]
    size = np.abs(start).max(axis=0)
    # The first half second has one state; friction with memory and load differs by its low-pass.
    np.testing.assert_allclose(added[:40], start, atol=0.02 * max(size.max(), 1.0))


def test_drift_comes_back_from_its_file_and_is_refused_for_another_model(model, tracked, tmp_path):
    file = tmp_path / "drift.json"
    write_drift(tracked.drift, file, recordings=["a", "b"])
    drift, recordings = read_drift(file)
    assert recordings == ("a", "b")
    for name in ("level", "states", "covariances", "log_likelihood"):
        np.testing.assert_array_equal(getattr(drift, name), getattr(tracked.drift, name))
    other = model.with_values(1.1 * model.values)
    with pytest.raises(TaufitError, match="another model"):
        apply_drift(other, drift)
    with pytest.raises(TaufitError, match="another model"):
        FrictionTracker(other, 100.0).start_run(drift)
    text = file.read_text("utf-8")
    file.write_text(text.replace('"level"', '"height"'), "utf-8")
    with pytest.raises(TaufitError, match="level"):
        read_drift(file)
    with pytest.raises(TaufitError, match="there is no drift"):
        read_drift(tmp_path / "none.json")


def test_check_keeps_drift_beside_the_model_and_counts_no_recording_twice(
    model, drifted, tmp_path, capsys
):
    from taufit.cli.app import main

    write_model(model, tmp_path / "m.json")
    write_recording(drifted, tmp_path / "run.parquet")
    paths = [str(tmp_path / name) for name in ("m.json", "run.parquet")]

    def check(*options):
        with pytest.raises(SystemExit) as ended:
            main(["check", *paths, "--drift", str(tmp_path / "d.json"), "--json", *options])
        assert ended.value.code in (0, None)
        return json.loads(capsys.readouterr().out)

    first = check("--track")
    kept = (tmp_path / "d.json").read_text("utf-8")
    assert 0.8 < first["files"][0]["tracked"]["mean_inside"] <= 1.0
    again = check("--track")
    assert (tmp_path / "d.json").read_text("utf-8") == kept
    assert [f["kind"] for f in again["findings"]].count("drift") == 1
    assert again["files"][0]["tracked"]["nrmse"] == first["files"][0]["tracked"]["nrmse"]
    # Without tracking the model has the friction of the file.
    assert check()["mean_nrmse"] < 0.95 * first["mean_nrmse"]
