"""Friction from forward and backward runs at constant velocity."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.calibration import FrictionPairs, fit_friction, pairs_in, pairs_of
from taufit.core.errors import PoorExcitationError, TaufitError
from taufit.signals.samples import Samples
from taufit.terms import TermInput
from taufit.terms.friction import Linear, Polynomial, Stribeck, StribeckLoad

SPEEDS = np.radians([0.1, 0.2, 0.5, 0.8, 1, 1.5, 2, 2.5, 3, 4, 5, 8, 10, 15, 20, 30])


def simulated(model, terms, shape, *, seed=0, noise=0.0, load=(0.5, 40.0)):
    rng = np.random.default_rng(seed)
    velocity = np.repeat(SPEEDS, 20)
    carried = rng.uniform(*load, velocity.shape)
    torque = model.columns(TermInput(velocity, load=carried), np.array(shape)) @ np.array(terms)
    return FrictionPairs(velocity, torque + noise * rng.normal(size=torque.shape), carried)


@pytest.mark.parametrize("seed", range(3))
def test_stribeck_with_load_is_recovered_from_pairs(seed):
    rng = np.random.default_rng(seed)
    shape = np.array([0.03, 0.05, 0.004]) * np.exp(rng.uniform(-0.7, 0.7, 3))
    terms = [0.4, 0.3, -0.2, 0.6, 1.0, 0.02, 0.3]
    fit = fit_friction(simulated(StribeckLoad(), terms, shape), StribeckLoad(), drop=False)
    np.testing.assert_allclose(fit.shape, shape, rtol=1e-4)
    np.testing.assert_allclose(fit.coefficients, terms, rtol=1e-3, atol=1e-3)
    assert fit.correlation > 0.999999


def test_variable_projection_is_never_worse_than_one_run_of_levenberg_marquardt():
    for seed in range(3):
        pairs = simulated(
            Stribeck(), [0.4, 0.3, -0.2, 0.6, 1.0], [0.02, 0.06], seed=seed, noise=0.03
        )
        one = fit_friction(pairs, Stribeck(), method="levenberg_marquardt", drop=False)
        grid = fit_friction(pairs, Stribeck(), drop=False)
        assert grid.cost <= one.cost * (1 + 1e-9)


def test_terms_the_data_do_not_support_are_dropped_and_named():
    pairs = simulated(Linear(), [0.8, 0.5], [], noise=0.02)
    fit = fit_friction(pairs, Polynomial())
    assert {"viscous2", "viscous3"} <= set(fit.dropped)
    assert any("viscous3" in text for text in fit.warnings)
    np.testing.assert_allclose(fit.torque(np.array([0.3])), [0.95], atol=0.02)
    wild = fit_friction(pairs, Polynomial(), drop=False)
    assert any("not known" in text for text in wild.warnings) and wild.valid_to < 1.0
    # What the cubic says far outside the tested speeds is what the warning is about.
    assert wild.coefficient_std[2] * 2.0**3 > 0.2


def test_a_joint_without_load_refuses_load_terms():
    pairs = simulated(Stribeck(), [0.4, 0, 0, 0.6, 1.0], [0.02, 0.06], load=(0.0, 0.001))
    with pytest.raises(PoorExcitationError, match="joint 1 carries no load"):
        fit_friction(pairs, StribeckLoad())
    assert fit_friction(pairs, Stribeck(), drop=False).rms < 1e-6


def test_pairs_cancel_gravity_and_offset():
    q = np.linspace(-1, 1, 200)
    gravity = 20 * np.cos(q) + 3.0
    forward = (q, np.full(200, 0.2), gravity + 1.7)
    backward = (q[::-1], np.full(200, -0.2), (gravity - 1.7)[::-1])
    pairs = pairs_of(forward, backward)
    np.testing.assert_allclose(pairs.torque, 1.7, atol=1e-3)
    np.testing.assert_allclose(pairs.velocity, 0.2)
    assert pairs.load.min() > 13
    with pytest.raises(PoorExcitationError, match="share no positions"):
        pairs_of(forward, (q + 5, np.full(200, -0.2), gravity))
    with pytest.raises(TaufitError, match="goes forwards"):
        pairs_of(backward, forward)


def test_pairs_are_found_in_a_recording_of_single_joint_runs():
    rate, parts = 100.0, []
    for speed in (0.05, 0.1, 0.3):
        n = int(0.6 / speed * rate)
        v = np.concatenate([np.full(n, speed), np.zeros(30), np.full(n, -speed), np.zeros(30)])
        parts.append(v)
    v = np.concatenate(parts)
    q = np.cumsum(v) / rate
    torque = 10 * np.cos(q) + 0.8 * np.sign(v) + 0.5 * v
    still = np.zeros_like(v)
    samples = Samples.from_arrays(
        np.stack([still, q], 1),
        np.stack([still, v], 1),
        np.stack([still, still], 1),
        np.stack([still, torque], 1),
        rate_hz=rate,
    )
    pairs = pairs_in(samples, 2)
    assert len(np.unique(pairs.velocity.round(6))) == 3
    fit = fit_friction(pairs, Linear(), drop=False)
    np.testing.assert_allclose(fit.coefficients, [0.8, 0.5], atol=0.01)
    with pytest.raises(PoorExcitationError, match="joint 1 has no constant-velocity"):
        pairs_in(samples, 1)


def test_bad_pairs_are_refused():
    pairs = simulated(Linear(), [0.8, 0.5], [])
    with pytest.raises(TaufitError, match="is not known"):
        fit_friction(pairs, Linear(), method="guessing")
    broken = FrictionPairs(pairs.velocity, pairs.torque * np.nan, pairs.load)
    with pytest.raises(TaufitError, match="torque of friction pair 0 is not finite"):
        fit_friction(broken, Linear())
