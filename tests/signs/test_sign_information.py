"""What a magnitude says about the torque behind it, and what a fit to magnitudes may claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.magnitude_bound import paired_errors
from benchmarks.accuracy.unknown_signs import paired_ratio
from benchmarks.sign_instances import instance, segment_truth

from taufit.estimators import ConsistentSdp, EstimationProblem
from taufit.estimators.ols import base_least_squares
from taufit.fitting import fit_samples as fit_samples
from taufit.regression.weights import Weights
from taufit.signs.folded_normal import log_likelihood
from taufit.signs.information import (
    MagnitudeRows,
    information_share,
    with_sign_uncertainty,
)
from taufit.signs.unknown_signs import find_signs, fit_unsigned


def test_share_is_the_variance_of_the_score():
    # Fisher information twice: minus the mean curvature, and the variance of the slope.
    rng = np.random.default_rng(0)
    for mu in (0.3, 1.0, 2.0, 4.0):
        m = np.abs(mu + rng.normal(size=400_000))
        slope = m * np.tanh(m * mu) - mu
        assert information_share(np.array(mu)) == pytest.approx(np.mean(slope**2), abs=0.01)
    assert information_share(np.array(0.0)) == pytest.approx(0.0, abs=1e-9)
    assert information_share(np.array([-7.0, 50.0])) == pytest.approx(1.0, abs=1e-6)


def test_likelihood_counts_both_signs():
    rng = np.random.default_rng(1)
    m, mu = np.abs(rng.normal(size=(30, 2))), rng.normal(size=(30, 2))
    noise = np.array([0.3, 0.8])
    keep = rng.random((30, 2)) < 0.8

    def normal(y):
        return np.exp(-0.5 * ((y - mu) / noise) ** 2) / noise

    folded = np.log(normal(m) + normal(-m))
    nothing, everything = np.zeros(m.shape, bool), np.ones(m.shape, bool)
    assert log_likelihood(m, nothing, keep, mu, noise) == pytest.approx(folded[keep].sum())
    signed = np.log(normal(-m))
    assert log_likelihood(-m, everything, keep, mu, noise) == pytest.approx(signed[keep].sum())


def test_rows_have_the_optimum_of_the_likelihood():
    """Without constraints their least squares is the fit itself, whatever the weights."""
    case = instance(3, noise=0.2, friction=True)
    found = find_signs(case.model, case.samples)
    rows = MagnitudeRows(
        case.model, found.samples, found.expected, found.predicted, found.noise, found.has_sign
    )
    problem = EstimationProblem.from_model(case.model)
    values = np.zeros(len(case.model.names))
    information = rows.information(Weights(1.0 / found.noise))
    values[problem.base.columns] = base_least_squares(information, problem)
    s = case.samples
    torque = case.model.regressor(s.position, s.velocity, s.acceleration) @ values
    # Refinement stops at a relative change of 1e-6.
    assert np.abs(torque - found.predicted).max() < 1e-3 * np.abs(torque).max()
    assert rows.root.min() < 0.3 and rows.root.max() == pytest.approx(1.0)


def test_samples_with_recorded_sign_count_in_full():
    case = instance(3, noise=0.2)
    signed = np.array([True, False, True, True, True, True])
    torque = np.where(signed, case.measured, np.abs(case.measured))
    found = find_signs(case.model, replace(case.samples, torque=torque, signed=signed))
    rows = MagnitudeRows(
        case.model, found.samples, found.expected, found.predicted, found.noise, found.has_sign
    )
    assert np.all(rows.root[:, signed] == 1.0)
    np.testing.assert_allclose(rows.torque[:, signed], case.measured[:, signed], rtol=1e-9)
    assert rows.root[:, 1].min() < 0.3


def test_intervals_hold_the_truth_as_often_as_they_say():
    miss = []
    for seed in range(12):
        case = instance(seed, noise=0.3)
        estimate = fit_unsigned(case.model, case.samples, estimator=ConsistentSdp()).estimate
        error = estimate.base_values - estimate.base.mapping @ case.truth
        miss.append(error / estimate.base_std)
    # 12 seeds scatter by 0.04. Counting open signs as known would give 1.24.
    assert 0.9 < np.sqrt(np.mean(np.square(miss))) < 1.15


def test_a_first_round_that_went_astray_is_put_right():
    case = instance(3059, noise=0.3, friction=True)
    once = find_signs(case.model, case.samples, rounds=1)
    found = find_signs(case.model, case.samples)
    assert np.any(segment_truth(case, once.segments) != once.signs)
    assert not np.any(segment_truth(case, found.segments) != found.signs)
    assert np.all(found.noise < 1.2 * case.noise) and found.confident


def test_expected_torque_is_not_as_certain_as_measured_torque():
    case = instance(3, noise=0.3, friction=True)
    result = fit_unsigned(case.model, case.samples, estimator=ConsistentSdp())
    samples = result.recovery.fit_samples
    naive = fit_samples(case.model, samples, ConsistentSdp())
    honest = with_sign_uncertainty(naive, case.model, samples, result.recovery)
    assert np.all(honest.base_std > naive.base_std)
    # Rows that count less, or a correction afterwards, which takes residuals as equally large
    # everywhere: a fifth apart where a parameter shows near zero torque only.
    ratio = honest.base_std / result.estimate.base_std
    assert np.median(ratio) == pytest.approx(1.0, abs=0.06)
    assert np.all((ratio > 0.85) & (ratio < 1.3))
    known = replace(result.recovery, has_sign=np.ones_like(result.recovery.has_sign))
    same = with_sign_uncertainty(naive, case.model, samples, known)
    np.testing.assert_allclose(same.base_covariance, naive.base_covariance, rtol=1e-6)


def test_fits_to_magnitudes_are_as_exact_as_magnitudes_allow():
    """Over 24 recordings; `benchmarks accuracy.magnitude_bound` has 300 of each kind."""
    found, least = paired_errors(0.2, True, range(24))
    unit = np.sqrt(least[:, 1])
    bound = np.sqrt(np.mean(least[:, 0] / least[:, 1], 0))
    ratio, interval = paired_ratio(found[:, 0] / unit, found[:, 1] / unit)
    assert np.all(bound > 1.03)
    assert np.all(ratio < 1.06 * bound)
    assert np.all(interval[1] > 0.97 * bound)
    # Constraints of physics only help.
    assert np.all(np.mean(found[:, 2] ** 2, 0) < 1.03 * np.mean(found[:, 0] ** 2, 0))
