"""95 % intervals of predicted torque, standing joints told apart, and friction from run to run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import simulated_arm

from taufit.estimators import Wls
from taufit.fitting import automatic_model, fitted_model
from taufit.fitting.fit import fit
from taufit.fitting.fit_samples import fit_samples
from taufit.model.intervals import TYPICAL_FRICTION_SCATTER, coulomb_level, predict_interval
from taufit.robot import read_robot
from taufit.signals import Samples, condition
from taufit.terms.friction import Linear
from taufit.validation.grades import RecordingEvidence, grade
from taufit.validation.score import score
from taufit.validation.score_breakdown import score_breakdown, stiction_lines
from taufit.workflow import identify


@pytest.fixture(scope="module")
def arm():
    return read_robot("ur5e")


@pytest.fixture(scope="module")
def truth(arm):
    return simulated_arm.true_model(arm)


@pytest.fixture(scope="module")
def done(arm, truth):
    """Friction 4 % higher in the run it is tested on."""
    other = truth.values.copy()
    other[truth.layout.drive] *= 1.04
    return identify(
        arm,
        [simulated_arm.recording(truth, 20.0, 0)],
        holdout={"other": [simulated_arm.recording(truth.with_values(other), 12.0, 1)]},
        cutoff_hz=8.0,
    )


def test_most_torque_of_another_run_is_inside_although_its_friction_differs(done):
    assert done.holdout_scores[0].mean_inside > 0.93
    assert done.to_dict()["holdout"][0]["mean_inside"] == done.holdout_scores[0].mean_inside
    assert done.training_score.mean_inside > 0.9


def test_without_scatter_between_runs_the_interval_does_not_hold(done):
    """The drift of friction is what the interval needs: a test of the test above."""
    model, samples = done.model, done.holdout_samples[0]
    base = replace(model.training.base, covariance=0.0 * model.training.base.covariance)
    bare = model.with_training(replace(model.training, friction_scatter=np.zeros(6), base=base))
    own = score_breakdown(bare, samples, done.holdout_scores[0])
    assert own.mean_inside < done.holdout_scores[0].mean_inside - 0.02


def test_a_standing_joint_may_be_anywhere_within_its_coulomb_friction(done):
    model, samples = done.model, done.holdout_samples[0]
    still = replace(samples, velocity=0.0 * samples.velocity)
    moving = predict_interval(model, samples)
    standing = predict_interval(model, still)
    assert np.all(standing.standing)
    level = coulomb_level(model)
    assert np.all(level > 0.0)
    rows = ~moving.standing.any(axis=1)
    wider = standing.half_width[rows] - moving.half_width[rows]
    # Parameter rows change a little with the velocity; Coulomb friction is what is added.
    np.testing.assert_allclose(np.median(wider, axis=0), level, rtol=0.5)


def test_standing_joints_are_scored_apart(done):
    """A joint that stands half of the time, its torque off by 2 N m there and right elsewhere."""
    model, samples = done.model, done.holdout_samples[0]
    half = np.arange(len(samples.torque)) % 100 < 50
    keep = np.array(samples.keep)
    keep[half, 1] = False
    torque = predict_interval(model, samples).torque.copy()
    torque[half, 1] += 2.0
    changed = replace(samples, keep=keep, torque=torque)
    own = score_breakdown(model, changed, score(model, changed))
    assert own.standing_share[1] == pytest.approx(0.5, abs=0.05)
    assert own.standing_rmse[1] == pytest.approx(2.0, rel=0.02)
    assert own.moving_nrmse[1] < 1e-6 < own.nrmse[1]
    assert any(line.startswith("joint 2 stands 5") for line in stiction_lines(model, own))


def test_intervals_that_do_not_hold_are_named_beside_the_grade(done):
    one = replace(done.holdout_scores[0], nrmse=np.full(6, 0.02), moving_nrmse=None)
    facts = RecordingEvidence(np.full(6, 0.02), np.zeros(6), np.full(6, np.inf))
    assert grade([one], [facts], on_holdout=True).reasons == ()
    few = replace(one, inside=np.full(6, 0.6))
    judged = grade([few], [facts], on_holdout=True)
    assert judged.overall == "excellent"
    assert "60 % of the torques are inside" in judged.reasons[0]


def test_friction_of_few_runs_is_as_uncertain_as_usual_scatter_says(arm, truth):
    """One run: Coulomb friction cannot be known better than it comes back."""
    samples = condition(simulated_arm.recording(truth, 20.0, 0), cutoff_hz=8.0)
    model = automatic_model(arm, friction=Linear(0.01))
    estimate = fit(model, samples)
    np.testing.assert_allclose(estimate.friction_scatter, TYPICAL_FRICTION_SCATTER)
    for j in range(6):
        at = model.layout.index(f"joint_{j + 1}.coulomb")
        assert estimate.std[at] > 0.9 * TYPICAL_FRICTION_SCATTER * estimate.values[at]


def test_many_runs_show_how_much_friction_differs_between_them(arm, truth):
    """Eight runs with 6 % scatter: found within a factor of two, and beside it no scatter."""
    rng = np.random.default_rng(3)
    found = []
    for scatter in (0.06, 0.0):
        runs = []
        for seed in range(8):
            values = truth.values.copy()
            parts = values[truth.layout.drive].reshape(6, -1)
            parts *= 1.0 + scatter * rng.standard_normal((6, 1))
            runs.append(simulated_arm.recording(truth.with_values(values), 5.0, seed))
        samples = condition(runs, cutoff_hz=8.0)
        model = automatic_model(arm)
        estimate = fit(model, samples)
        found.append(float(np.mean(estimate.friction_scatter)))
        assert fitted_model(model, estimate, samples).training.friction_scatter is not None
    assert 0.03 < found[0] < 0.12
    assert found[1] < 0.006


def test_runs_in_which_a_joint_stands_say_nothing_about_its_friction(arm, truth):
    """Joints moved one at a time: friction scatters as usual, not as their standing torque does."""
    runs = []
    for joint in range(6):
        run = simulated_arm.recording(truth, 6.0, joint)
        position = run.position.copy()
        position[:, np.arange(6) != joint] = position[0, np.arange(6) != joint]
        velocity = np.gradient(position, run.time, axis=0)
        acceleration = np.gradient(velocity, run.time, axis=0)
        noise = 0.3 * np.random.default_rng(joint).normal(size=position.shape)
        torque = truth.torque(position, velocity, acceleration) + noise
        runs.append(Samples.from_arrays(position, velocity, acceleration, torque, rate_hz=100.0))
    samples = Samples.concatenate(runs)
    estimate = fit_samples(automatic_model(arm, friction=Linear(0.01)), samples, Wls(),
                           require_excitation=False)  # fmt: skip
    np.testing.assert_allclose(estimate.friction_scatter, TYPICAL_FRICTION_SCATTER)
