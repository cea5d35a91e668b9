"""Weights, intervals and verdicts, and what is said when data cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter
from tests.simulated_samples import simulated

from taufit.core.errors import InfeasibleError, PoorExcitationError, RecordingError, TaufitError
from taufit.estimators import ConsistentSdp, Irls, Ols, Tls, Wls
from taufit.fitting import fit_samples as fit_samples
from taufit.regression import ArrayRows
from taufit.regression.weights import MaxTorqueWeights, TorqueSums, Weights
from taufit.terms.friction import Linear, Polynomial, TemperatureDependent


@pytest.fixture(scope="module")
def clean():
    return simulated(Linear(), n=1200)


@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("estimator", [Ols(), Wls(), Wls("covariance"), Irls()])
def test_intervals_hold_the_truth_as_often_as_they_say(clean, estimator, rho):
    model, theta, _, samples = clean
    inside = []
    for seed in range(8):
        white = np.random.default_rng(seed).normal(size=(1700, 4))
        noise = lfilter([np.sqrt(1 - rho**2)], [1, -rho], white, axis=0)[500:]
        noisy = replace(samples, torque=samples.torque + noise * [1.0, 0.7, 0.3, 0.1])
        estimate = fit_samples(model, noisy, estimator)
        low, high = estimate.intervals.T
        true = estimate.base.mapping @ theta
        inside.append((low <= true) & (true <= high))
    # 8 fits x 38 parameters, correlated within a fit: three standard errors are about 6 %.
    assert 0.88 <= np.mean(inside) <= 0.99


def test_weighting_by_covariance_beats_equal_weights(clean):
    model, theta, _, samples = clean
    mixing = np.diag([2.0, 1.0, 0.3, 0.1])
    mixing[1, 0], mixing[3, 2] = 0.9, 0.25
    errors = {"none": [], "joint": [], "covariance": []}
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(size=samples.torque.shape) @ mixing.T
        noisy = replace(samples, torque=samples.torque + noise)
        for name in errors:
            estimate = fit_samples(model, noisy, Wls(name))
            std = np.maximum(np.abs(estimate.base.mapping @ theta), 0.05)
            errors[name].append((estimate.base_values - estimate.base.mapping @ theta) / std)
    rms = {name: np.sqrt(np.mean(np.square(e))) for name, e in errors.items()}
    assert rms["covariance"] < rms["joint"] < rms["none"]


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_outliers_lose_their_pull(clean, loss):
    model, theta, _, samples = clean
    rng = np.random.default_rng(0)
    torque = samples.torque + 0.1 * rng.normal(size=samples.torque.shape)
    hit = rng.random(torque.shape) < 0.03
    torque = torque + hit * 20.0
    spoiled = replace(samples, torque=torque)

    def error(estimator):
        estimate = fit_samples(model, spoiled, estimator)
        return np.linalg.norm(estimate.base_values - estimate.base.mapping @ theta)

    assert error(Irls(loss)) < 0.2 * error(Wls())


def test_rows_set_aside_do_not_count(clean):
    model, theta, _, samples = clean
    keep = np.random.default_rng(0).random(samples.torque.shape) < 0.7
    spoiled = replace(samples, torque=np.where(keep, samples.torque, 1e3), keep=keep)
    for estimator in (Ols(), Wls("covariance"), ConsistentSdp()):
        estimate = fit_samples(model, spoiled, estimator)
        np.testing.assert_allclose(estimate.base_values, estimate.base.mapping @ theta, atol=1e-7)
        assert estimate.count == keep.sum()


@pytest.mark.unchecked
def test_total_least_squares_lessens_the_bias_of_noisy_columns():
    rng = np.random.default_rng(0)
    names = tuple(f"joint_1.x{i}" for i in range(3))
    theta = np.array([2.0, -1.0, 0.5])
    from types import SimpleNamespace

    from taufit.dynamics import base_from_regressor
    from taufit.estimators import EstimationProblem

    clean = rng.normal(size=(20000, 1, 3))
    torque = clean @ theta + 0.2 * rng.normal(size=(20000, 1))
    noisy = clean + 0.2 * rng.normal(size=clean.shape)
    rows = ArrayRows(names, noisy, torque)
    base = base_from_regressor(np.eye(3), names=names)
    problem = EstimationProblem(SimpleNamespace(nominal=np.zeros(3)), base)
    plain = Ols().solve(rows.information(), problem).values
    total = Tls(column_noise=0.4 / np.sqrt(1.04)).solve(rows.information(), problem).values
    assert np.linalg.norm(total - theta) < 0.5 * np.linalg.norm(plain - theta)


def test_torque_intervals_hold_new_measurements(clean):
    model, _, _, samples = clean
    rng = np.random.default_rng(1)
    noisy = replace(samples, torque=samples.torque + rng.normal(size=samples.torque.shape))
    estimate = fit_samples(model, noisy, Wls())
    regressor = model.regressor(samples.position, samples.velocity, samples.acceleration)
    low, high = estimate.torque_interval(regressor)
    fresh = samples.torque + rng.normal(size=samples.torque.shape)
    assert 0.93 < np.mean((low <= fresh) & (fresh <= high)) < 0.97


def test_masses_that_no_motion_shows_are_never_given_a_deviation(clean):
    model, _, _, samples = clean
    rng = np.random.default_rng(1)
    noisy = replace(samples, torque=samples.torque + rng.normal(size=samples.torque.shape))
    estimate = fit_samples(model, noisy, ConsistentSdp())
    for i, verdict in enumerate(estimate.verdicts):
        alone = verdict in ("well", "fairly", "poorly")
        assert np.isfinite(estimate.std[i]) == alone
    verdicts = dict(zip(estimate.names, estimate.verdicts, strict=True))
    assert verdicts["link_1.m"] == "no effect"
    assert verdicts["link_2.m"] == "only in combination"
    assert verdicts["joint_2.coulomb"] == "well"
    assert len(estimate.base_expressions) == estimate.base.rank == len(estimate.base_names)


def test_a_joint_that_does_not_move_is_named(clean):
    model, _, _, samples = clean
    q, v, a = (x.copy() for x in (samples.position, samples.velocity, samples.acceleration))
    q[:, 3], v[:, 3], a[:, 3] = 0.3, 0.0, 0.0
    still = replace(samples, position=q, velocity=v, acceleration=a, friction_velocity=v)
    with pytest.raises(PoorExcitationError, match=r"joint_4\.(coulomb|viscous)") as caught:
        fit_samples(model, still, Wls())
    assert "taufit design" in str(caught.value)
    estimate = fit_samples(model, still, ConsistentSdp(), require_excitation=False)
    assert np.all(np.isfinite(estimate.values))


def test_bad_input_is_refused_in_the_users_words(clean):
    model, _, _, samples = clean
    torque = samples.torque.copy()
    torque[17, 2] = np.nan
    with pytest.raises(RecordingError, match="fast: torque of joint 3 is not finite at sample 17"):
        fit_samples(model, replace(samples, torque=torque), Wls())
    with pytest.raises(RecordingError, match="no sample is left"):
        fit_samples(model, replace(samples, keep=np.zeros_like(samples.keep)), Wls())
    with pytest.raises(TaufitError, match="without its sign"):
        unsigned = replace(samples, signed=np.array([True, False, True, True]))
        fit_samples(model, unsigned, Wls())
    with pytest.raises(TaufitError, match="weighting 'heavy' is not known"):
        fit_samples(model, samples, Wls("heavy"))
    with pytest.raises(TaufitError, match="needs joint temperatures"):
        warm = replace(model, friction=TemperatureDependent())
        fit_samples(warm, samples.with_channels(temperature=None), Wls())
    with pytest.raises(TaufitError, match="the samples have 4 joints"):
        from taufit.model.torque_model import TorqueModel
        from taufit.robot import read_robot

        fit_samples(TorqueModel(read_robot("ur5e")), samples, Wls())


def test_singular_weights_are_refused(clean):
    _, _, _, samples = clean
    sums = TorqueSums(
        samples.keep.sum(axis=0),
        np.sum(samples.torque**2, axis=0),
        np.abs(samples.torque).max(axis=0),
    )
    with pytest.raises(InfeasibleError, match="joint 2 would get a singular weight"):
        MaxTorqueWeights((1.0, 0.0, 1.0, 1.0)).initial_weights(sums)
    with pytest.raises(InfeasibleError, match="joint 1 would get a singular weight"):
        MaxTorqueWeights((np.nan, 1.0, 1.0, 1.0)).initial_weights(sums)


def test_information_by_joint_adds_up_under_any_weights(clean):
    model, theta, _, samples = clean
    from taufit.regression import SampleRows

    rows = SampleRows(model, samples)
    joint = np.array([1.0, 0.5, 2.0, 3.0])
    fast = rows.information(Weights(joint))
    slow = rows.information(Weights(joint, rows=lambda _: np.ones_like(samples.torque)))
    np.testing.assert_allclose(
        fast.factor.T @ fast.factor, slow.factor.T @ slow.factor, rtol=1e-9, atol=1e-7
    )
    other = theta + 0.1
    np.testing.assert_allclose(fast.cost(other), slow.cost(other), rtol=1e-10)
    assert fast.count == slow.count == samples.torque.size


def test_dropped_terms_are_zero_and_said_to_be(clean):
    _, _, _, samples = clean
    model = replace(clean[0], friction=Polynomial())
    gone = ("joint_1.viscous3", "joint_2.viscous2")
    estimate = fit_samples(model, samples, Wls(), dropped=gone)
    verdicts = dict(zip(estimate.names, estimate.verdicts, strict=True))
    for name in gone:
        assert estimate.values[model.names.index(name)] == 0.0
        assert verdicts[name] == "not supported by the data"
    np.testing.assert_allclose(estimate.torque_rms, 0.0, atol=1e-9)
