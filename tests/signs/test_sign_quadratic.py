"""The quadratic form in the signs is the least-squares cost, and the refinement climbs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from benchmarks.sign_instances import instance

from taufit.signs.folded_normal import fit_folded_normal
from taufit.signs.quadratic_form import build_quadratic_form, independent_columns, joint_rows
from taufit.signs.segments import cut_segments, noise_scale


@pytest.fixture(scope="module")
def parts():
    case = instance(1, noise=0.1, friction=True, seconds=6.0)
    s, magnitude = case.samples, case.samples.torque
    noise = noise_scale(magnitude, s.run, s.keep)
    regressor = case.model.regressor(s.position, s.velocity, s.acceleration)
    weight = np.broadcast_to(1.0 / noise, magnitude.shape)
    cut = cut_segments(magnitude, s.velocity, s.time, s.run, s.keep, noise, s.rate_hz)
    return case, regressor, weight, cut, joint_rows(regressor, weight)


def test_form_is_the_least_squares_cost_of_any_signs(parts):
    case, regressor, weight, cut, rows = parts
    form = build_quadratic_form(rows, case.samples.torque, weight, cut.label, len(cut))
    use = cut.label >= 0
    weighted = regressor[use] * weight[use][:, None]
    rng = np.random.default_rng(0)
    for _ in range(5):
        signs = rng.choice([-1, 1], len(cut))
        target = case.samples.torque[use] * signs[cut.label[use]] * weight[use]
        theta, *_ = np.linalg.lstsq(weighted, target, rcond=1e-9)
        cost = np.sum((weighted @ theta - target) ** 2)
        # Normal equations of scaled columns: condition number squared times rounding.
        assert signs @ form.quadratic @ signs == pytest.approx(cost, rel=1e-7)
        fitted = rows.torque(form.parameters(signs))[use] * weight[use]
        np.testing.assert_allclose(fitted, weighted @ theta, atol=1e-5 * np.abs(target).max())


def test_known_signs_become_the_anchor(parts):
    case, regressor, weight, cut, rows = parts
    count = int(np.sum(cut.joint < 5))
    label = np.where(cut.label < count, cut.label, -1)
    label[:, 5] = count
    values = np.where(label == count, case.measured, case.samples.torque)

    form = build_quadratic_form(rows, values, weight, label, count)

    assert form.anchor == count
    use = label >= 0
    signs = np.append(np.random.default_rng(1).choice([-1, 1], count), 1)
    weighted = regressor[use] * weight[use][:, None]
    target = values[use] * signs[label[use]] * weight[use]
    theta, *_ = np.linalg.lstsq(weighted, target, rcond=1e-9)
    cost = np.sum((weighted @ theta - target) ** 2)
    assert signs @ form.quadratic @ signs == pytest.approx(cost, rel=1e-7)


def test_independent_columns_span_the_rest():
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(50, 7)) @ rng.normal(size=(7, 12))
    matrix[:, 3] = 0.0
    kept = independent_columns(matrix.T @ matrix)
    assert len(kept) == 7 and 3 not in kept
    rest, *_ = np.linalg.lstsq(matrix[:, kept], matrix, rcond=None)
    np.testing.assert_allclose(matrix[:, kept] @ rest, matrix, atol=1e-8)


def test_refinement_never_lowers_the_likelihood(parts):
    case, _, _, _, rows = parts
    magnitude = case.samples.torque
    known, keep = np.zeros(magnitude.shape, bool), np.ones(magnitude.shape, bool)
    full = np.zeros(len(case.truth))
    theta, *_ = np.linalg.lstsq(
        case.model.regressor(
            case.samples.position, case.samples.velocity, case.samples.acceleration
        ).reshape(-1, len(full)),
        (case.torque * 0.8).ravel(),
        rcond=1e-9,
    )
    start = _onto(rows, rows.torque, case, theta)

    def likelihood(fit):
        mu, sigma = fit.predicted, fit.noise
        both = np.logaddexp(
            -0.5 * ((magnitude - mu) / sigma) ** 2, -0.5 * ((magnitude + mu) / sigma) ** 2
        )
        return float(np.sum(both - np.log(sigma)))

    values = [
        likelihood(
            fit_folded_normal(
                rows, magnitude, known, keep, start, np.zeros(6), maximum_iterations=most
            )
        )
        for most in (1, 2, 4, 8)
    ]
    assert all(b >= a - 1e-6 * abs(a) for a, b in pairwise(values))


def _onto(rows, torque, case, theta):
    """Parameters of the independent columns with the same torque."""
    s = case.samples
    matrix = np.zeros((len(s) * 6, rows.width))
    for i, (part, columns) in enumerate(zip(rows.rows, rows.columns, strict=True)):
        matrix[np.ix_(np.arange(len(s)) * 6 + i, columns)] = part
    target = case.model.regressor(s.position, s.velocity, s.acceleration) @ theta
    return np.linalg.lstsq(matrix, target.ravel(), rcond=1e-9)[0]


def test_refinement_with_signs_is_weighted_least_squares(parts):
    case, _, _, _, rows = parts
    every = np.ones(case.measured.shape, bool)
    fit = fit_folded_normal(rows, case.measured, every, every, np.zeros(rows.width), np.zeros(6))
    np.testing.assert_allclose(fit.noise, case.noise, rtol=0.15)
    residual = (case.measured - fit.predicted) / fit.noise**2
    # The normal equations hold at the weights the noise settled on.
    scale = np.abs(rows.project(np.abs(residual)))
    assert np.all(np.abs(rows.project(residual)) <= 1e-4 * scale)
