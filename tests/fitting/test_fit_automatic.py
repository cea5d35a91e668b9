"""The automatic choices of a fit, on arms that are known."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "validation"))
import simulated_arm
from benchmarks.accuracy.short_logs import simulated_work

from taufit.core.errors import RecordingError
from taufit.dynamics import gravity_torque
from taufit.estimators import Wls, is_consistent
from taufit.fitting import automatic_model, fit as fit, fitted_model
from taufit.fitting.fit import identifiable_from_data
from taufit.fitting.selection.friction_terms import correlation_samples
from taufit.fitting.selection.term_selection import select_friction_terms
from taufit.model.friction_level import friction_level
from taufit.robot import read_robot
from taufit.signals import condition
from taufit.terms.friction import Linear
from taufit.validation.score import score
from taufit.workflow import identify


@pytest.fixture(scope="module")
def arm():
    return read_robot("ur5e")


@pytest.fixture(scope="module")
def samples(arm):
    truth = simulated_arm.true_model(arm, load=0.05)
    return condition(simulated_arm.recording(truth, 25.0, 0), cutoff_hz=8.0)


def test_torque_of_zero_is_refused_whatever_the_estimator(arm, samples):
    silent = replace(samples, torque=0.0 * samples.torque)
    with pytest.raises(RecordingError, match="every joint is zero"):
        fit(automatic_model(arm), silent, Wls())


def test_friction_comes_back(arm, samples):
    truth = simulated_arm.true_model(arm, load=0.05)
    model = automatic_model(arm)
    estimate = fit(model, samples)

    assert is_consistent(model, estimate.values)
    found = dict(zip(estimate.names, estimate.values, strict=True))
    right = dict(zip(truth.names, truth.values, strict=True))
    for j in range(1, 7):
        # 2 % torque noise; Coulomb and viscous friction trade a little with gravity.
        for term, share in (("coulomb", 0.05), ("viscous", 0.15), ("presliding_3", 0.1)):
            name = f"joint_{j}.{term}"
            assert found[name] == pytest.approx(right[name], rel=share)


def test_load_dependence_is_kept_where_it_is_and_dropped_where_it_is_not(arm, samples):
    model = automatic_model(arm)
    kept = select_friction_terms(model, samples).dropped
    without = simulated_arm.true_model(arm, load=0.0)
    plain = condition(simulated_arm.recording(without, 25.0, 0), cutoff_hz=8.0)
    dropped = select_friction_terms(model, plain).dropped

    # Shoulder and elbow carry load; the wrist hardly tells.
    assert not {"joint_2.load", "joint_3.load"} & set(kept)
    assert sum(name.endswith(".load") for name in dropped) >= 3
    estimate = fit(model, plain)
    for name in estimate.dropped:
        assert estimate.values[estimate.names.index(name)] == 0.0


def test_side_of_the_gear_decides_about_rotors(arm):
    assert automatic_model(arm, side="motor").rotor_inertia
    assert not automatic_model(arm, side="link").rotor_inertia
    assert automatic_model(arm, side="link", rotor_inertia=True).rotor_inertia
    assert isinstance(automatic_model(arm, friction=Linear()).friction, Linear)


def test_the_prior_carries_over_to_motion_the_training_does_not_resemble(arm):
    # All joints move by one signal: least squares fits it and knows nothing else.
    truth = simulated_arm.true_model(arm, load=0.0)
    one = simulated_arm.recording(truth, 25.0, 3)
    _, q, v, a = simulated_arm.motion(6, 25.0, 3)
    scale = np.array([1.0, 0.8, -1.2, 0.9, 1.1, -1.0])
    q = np.linspace(-1.2, 0.6, 6) + (q[:, :1] + 1.2) * scale
    v, a = v[:, :1] * scale, a[:, :1] * scale
    rigid = truth.structure.regressor(q, v, a, load=0 * q)[..., :60] @ truth.robot.parameters
    rest = truth.structure.joint_columns(v, a, load=rigid, travel=v / simulated_arm.RATE)
    torque = rigid + rest @ truth.values[60:]
    rng = np.random.default_rng(0)
    torque += 0.03 * torque.std(axis=0) * rng.normal(size=torque.shape)
    together = condition(replace(one, position=q, velocity=v, signal=torque), cutoff_hz=8.0)
    model = automatic_model(arm)
    poses = rng.uniform(-2.0, 2.0, (200, 6))
    right = gravity_torque(truth.robot, poses)

    def error(estimator=None):
        estimate = fit(model, together, estimator, require_excitation=False)
        arm_found = fitted_model(model, estimate, together).robot
        return np.sqrt(np.mean((gravity_torque(arm_found, poses) - right) ** 2))

    nominal = np.sqrt(np.mean((gravity_torque(arm, poses) - right) ** 2))
    found = error()
    assert found < 0.9 * error(Wls())
    assert found < 0.5 * nominal


def test_unseen_parameters_are_told(arm, samples):
    model = automatic_model(arm)
    estimate = fit(model, samples)
    shown = identifiable_from_data(model, estimate, 100.0)
    gravity = [i for i, n in enumerate(estimate.base_names) if n in ("link_2.hx", "link_3.hx")]
    assert np.all(shown[gravity])
    # A prior a million times stronger than all data leaves nothing for the data to show.
    assert np.count_nonzero(identifiable_from_data(model, estimate, 1e12)) < np.count_nonzero(shown)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_offsets_are_small_unless_the_motion_shows_them(share):
    """Ten seconds of work show few poses, in which an offset stands in for gravity."""
    case, exciting = simulated_work("ur5e", offset_share=share)
    settings = {"holdout": {"test": case.tests}, "cutoff_hz": 10.0, "ignore_contradictions": True}
    work, long = (
        identify(case.robot, [recording], **settings) for recording in (case.training, exciting)
    )
    work_share, long_share = (
        done.model.layout.split(done.model.values).offsets / friction_level(done.model)
        for done in (work, long)
    )
    np.testing.assert_allclose(long_share, share, atol=0.12)
    if not share:
        # With a prior as wide as the friction: 3.6, and an error of 0.22.
        assert np.abs(work_share).max() < 0.5 and work.mean_holdout_nrmse < 0.17


def test_residuals_hang_together_as_their_autocorrelation_says():
    rng = np.random.default_rng(0)
    n = 40_000
    white = rng.normal(size=(n, 1))
    slow = np.zeros((n, 1))
    for i in range(1, n):
        slow[i] = 0.9 * slow[i - 1] + white[i]
    keep, run = np.ones((n, 1), bool), np.zeros(n, np.int64)

    assert correlation_samples(white, keep, run)[0] == pytest.approx(1.0, abs=0.1)
    # (1 + r)/(1 - r) = 19 for a first-order process; the sum ends where r^k falls below 0.05.
    assert correlation_samples(slow, keep, run)[0] == pytest.approx(18.0, abs=2.5)


def test_an_explicit_estimator_and_friction_are_taken_as_they_are(arm, samples):
    model = automatic_model(arm, friction=Linear(width=0.005))
    estimate = fit(model, samples, Wls())
    assert estimate.dropped == ()
    assert "prior_weight" not in estimate.settings


def test_too_short_is_refused_with_what_it_takes(arm):
    truth = simulated_arm.true_model(arm)
    short = condition(simulated_arm.recording(truth, 0.9, 0), cutoff_hz=5.0)
    with pytest.raises(RecordingError, match=r"too short.*\n.*Record at least"):
        fit(automatic_model(arm), short)


def test_a_short_recording_gives_a_model_that_leans_on_the_nominal_arm(arm):
    """Two seconds determine little: the model must still be nearer the truth than the nominal."""
    truth = simulated_arm.true_model(arm)
    short = condition(simulated_arm.recording(truth, 2.0, 0), cutoff_hz=5.0)
    model = automatic_model(arm)
    estimate = fit(model, short)
    assert any("s of motion are short" in text for text in estimate.warnings)
    fitted = fitted_model(model, estimate, short)
    other = condition(simulated_arm.recording(truth, 10.0, 1), cutoff_hz=5.0)
    plain = automatic_model(arm, friction=None)
    bare = plain.with_values(plain.nominal)
    assert score(fitted, other).mean_nrmse < 0.6 * score(bare, other).mean_nrmse


def test_without_nominal_links_a_short_recording_is_refused(arm):
    truth = simulated_arm.true_model(arm)
    short = condition(simulated_arm.recording(truth, 2.0, 0), cutoff_hz=5.0)
    unknown = arm.with_parameters(np.zeros_like(arm.parameters))
    with pytest.raises(RecordingError, match="too short"):
        fit(automatic_model(unknown), short)
