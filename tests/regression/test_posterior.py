"""Covariance of an estimate with a prior: equal to the Gaussian one, and honest after few data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.intervals import RATE_HZ, fitted, motion, robot, run, truth

from taufit.core.statistics import NORMAL_95
from taufit.model.intervals import predict_interval
from taufit.regression.covariance import posterior_covariance
from taufit.regression.run_variability import _MAX_SCATTER
from taufit.signals import Samples


def arm_and_samples(seed: int, seconds: float) -> tuple:
    rng = np.random.default_rng(seed)
    arm = robot()
    own, waves = truth(arm, rng), rng.uniform(0, 6, 3)
    path = tuple(x[: round(seconds * RATE_HZ)] for x in motion(rng, 4))
    return rng, arm, own, waves, run(own, rng, path, waves)


@pytest.mark.parametrize("difference", [1.0, 1e-11])
def test_white_noise_and_a_prior_give_the_gaussian_posterior(difference):
    """Also where two columns hardly differ, as after a second of motion."""
    _, arm, own, _, samples = arm_and_samples(3, 8.0)
    _, estimate = fitted(arm, own.friction_model, samples)
    base, factor = estimate.base, estimate.information.factor.copy()
    first, second = base.columns[:2]
    factor[:, second] = factor[:, first] + difference * (factor[:, second] - factor[:, first])
    squares = factor[:, base.columns].T @ factor[:, base.columns]
    information = replace(estimate.information, factor=factor)
    white = replace(estimate, information=information, score_covariance=squares)
    rng = np.random.default_rng(1)
    root = rng.normal(size=(len(estimate.names),) * 2) * np.sqrt(np.diag(squares).mean())
    prior = root @ root.T
    expected = base.mapping @ np.linalg.inv(base.mapping.T @ squares @ base.mapping + prior)
    np.testing.assert_allclose(
        posterior_covariance(white, prior, 1.0), expected @ base.mapping.T, rtol=1e-6, atol=1e-12
    )


def test_a_prior_narrows_predictions_where_the_training_shows_little():
    rng, arm, own, waves, samples = arm_and_samples(5, 8.0)
    # One joint at a time: the coupling of the links is not seen.
    q, v, a = samples.position, samples.velocity, samples.acceleration
    paths = [(np.where(e, q, q[0]), np.where(e, v, 0.0), np.where(e, a, 0.0)) for e in np.eye(3)]
    few = Samples.concatenate([run(own, rng, path, waves) for path in paths])
    model, estimate = fitted(arm, own.friction_model, few)
    other = run(own, rng, motion(rng, 2), waves)
    base = model.training.base
    assert np.array_equal(base.covariance, estimate.base_covariance)
    without = model.with_training(replace(model.training, base=replace(base, posterior=None)))
    prediction = predict_interval(model, other)
    assert np.all(np.linalg.eigvalsh(base.posterior) > -1e-9 * np.trace(base.posterior))
    assert prediction.half_width.mean() < 0.8 * predict_interval(without, other).half_width.mean()
    assert prediction.inside(other.torque).mean() > 0.85
    error = (other.torque - prediction.torque).std(axis=0)
    assert np.mean(prediction.half_width.mean(axis=0) / (NORMAL_95 * error)) < 2.0


def test_friction_of_a_few_seconds_is_trusted_less():
    rng, arm, own, waves, samples = arm_and_samples(7, 32.0)
    scatter = [
        fitted(arm, own.friction_model, part)[0].training.friction_scatter
        for part in (samples, samples.rows(slice(0, 200)))
    ]
    np.testing.assert_allclose(scatter[0], 0.02)
    assert np.all(scatter[1] > 0.04) and np.all(scatter[1] <= _MAX_SCATTER)
    three = Samples.concatenate([run(own, rng, motion(rng, 1), waves) for _ in range(3)])
    # Several runs tell themselves.
    assert np.all(fitted(arm, own.friction_model, three)[0].training.friction_scatter < 0.06)
