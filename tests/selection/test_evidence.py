"""Priors as strong as the data support, friction that takes energy, ripple where there is some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.simulated_samples import simulated

from taufit.estimators import ConsistentSdp, is_consistent
from taufit.estimators.constraints import passivity_rows
from taufit.fitting import fit, fit_samples
from taufit.fitting.selection.prior_scales import estimate_prior_scales, maximise_evidence
from taufit.fitting.selection.ripple import with_ripple
from taufit.model.torque_model import TorqueModel
from taufit.signals.sample_source import as_source
from taufit.terms import Ripple, level_columns
from taufit.terms.friction import FRICTION_MODELS, Presliding


def _rated(model: TorqueModel, speed: float) -> TorqueModel:
    limits = replace(model.robot.limits, velocity=np.full(model.robot.joints, speed))
    return replace(model, robot=replace(model.robot, limits=limits))


@pytest.mark.parametrize("name", [n for n, kind in FRICTION_MODELS.items() if kind().parameters])
def test_no_consistent_fit_has_friction_that_gives_energy_up_to_rated_speed(name):
    friction = FRICTION_MODELS[name]()
    model, _, shape, samples = simulated(friction, seed=5, noise=0.5)
    # Noise alone decides on drag beyond the speeds seen, and a rated speed makes it matter.
    model = replace(_rated(model, 4.0), shape=shape)
    noisy = np.random.default_rng(1).normal(size=samples.torque.shape)
    odd = replace(samples, torque=samples.torque - 0.8 * samples.velocity**3 + noisy)

    estimate = fit_samples(model, odd, ConsistentSdp(), require_excitation=False)

    fitted = model if estimate.shape is None else replace(model, shape=estimate.shape)
    for entries, _ in passivity_rows(fitted):
        power = sum(x * estimate.values[i] for i, x in entries.items())
        largest = max(abs(x * estimate.values[i]) for i, x in entries.items())
        assert power >= -1e-6 * largest
    assert is_consistent(fitted, estimate.values)


def test_possible_includes_friction():
    model, theta, _, _ = simulated(Presliding(), seed=0)
    model = _rated(model, 4.0)
    gives = theta.copy()
    gives[model.layout.index("joint_2.viscous2")] = -5.0

    assert is_consistent(model, theta)
    assert not is_consistent(model, gives)


def test_a_curve_seen_at_low_speed_does_not_turn_down_before_the_rated_one():
    """Grease: friction like the square root of speed, seen up to a third of the rated speed."""
    model, _, _, samples = simulated(Presliding(), seed=6, noise=0.05)
    model = _rated(model, 3.0 * float(np.abs(samples.velocity).max()))
    grease = 4.0 * np.sign(samples.velocity) * np.sqrt(np.abs(samples.velocity))
    thick = replace(samples, torque=samples.torque + grease)
    for bend, falls in ((1.0, False), (0.0, True)):
        own = replace(model, friction=Presliding(bend=bend))
        theta = fit(own, thick).values
        speeds = np.linspace(0.1, float(own.robot.limits.velocity[0]), 40)
        terms = own.layout.split(theta).drive
        curves = [
            level_columns(own.friction, speeds, shape) @ term
            for shape, term in zip(own.joint_shape, terms, strict=True)
        ]
        assert np.any(np.diff(curves, axis=1) < -1e-9) == falls


def test_friction_that_must_rise_does():
    model, _, _, samples = simulated(Presliding(), seed=5, noise=0.2)
    model = _rated(model, 4.0)
    stribeck = 6.0 * np.tanh(samples.velocity / 0.01) * np.exp(-np.abs(samples.velocity))
    falling = replace(samples, torque=samples.torque + stribeck)
    slopes = []
    for rising in (False, True):
        estimator = ConsistentSdp(rising=rising)
        theta = fit_samples(model, falling, estimator, require_excitation=False).values
        terms = model.layout.split(theta).drive
        speeds = np.linspace(0.08, 4.0, 60)
        curves = level_columns(model.friction, speeds, model.joint_shape[0]) @ terms.T
        slopes.append(np.diff(curves, axis=0).min() / curves.max())
    assert slopes[0] < -1e-3 and slopes[1] > -1e-5


def test_strong_drag_makes_no_load_dependence_likely():
    model, _, _, samples = simulated(Presliding(), seed=3, noise=0.2)
    model = _rated(model, 30.0)
    thick = samples.velocity * 40.0 * samples.torque.std(axis=0) / 30.0
    search = maximise_evidence(
        model, as_source(replace(samples, torque=samples.torque + thick)), ()
    )

    assert np.all(search.viscous > 1.3) and np.all(search.load < 1.2)


def test_offsets_are_expected_as_large_as_the_arm_shows_them():
    model, theta, _, samples = simulated(Presliding(), seed=4, noise=0.2)
    at = np.flatnonzero(np.asarray(model.layout.quantities) == "offset")
    bare, spread = samples.torque - theta[at], samples.torque.std(axis=0)
    offset = np.resize([2.0, -2.0], len(at)) * spread
    without, with_some = (
        maximise_evidence(model, as_source(replace(samples, torque=bare + own)), ())
        for own in (0.0 * offset, offset)
    )

    assert without.offset < 0.1 < 0.7 < with_some.offset
    assert np.all(np.abs(without.theta[at]) < 0.1 * spread)
    np.testing.assert_allclose(with_some.theta[at], offset, atol=0.1 * spread.min() + 0.3)


def test_trust_in_a_wrong_link_falls_and_in_a_right_one_stays():
    model, _, _, samples = simulated(Presliding(), seed=2, noise=0.2)
    links = list(model.robot.parameters.reshape(-1, 10))
    links[1] = 0.2 * links[1]
    wrong = replace(model, robot=model.robot.with_parameters(np.concatenate(links)))

    right_trust = estimate_prior_scales(model, samples).link_weight
    wrong_trust = estimate_prior_scales(wrong, samples).link_weight

    assert wrong_trust[1] < 0.5 * right_trust[1]


def test_terms_the_motion_shows_are_as_large_with_evidence_as_in_truth():
    model, theta, _, samples = simulated(Presliding(), seed=3, noise=0.05)

    estimate = fit(model, samples)

    assert estimate.dropped == ()
    at = model.layout.drive_of(1)
    shown = [
        at.start + k for k, t in enumerate(model.layout.quantities[at]) if t in ("viscous", "load")
    ]
    np.testing.assert_allclose(estimate.values[shown], theta[shown], rtol=0.15)


def test_ripple_is_kept_in_the_joint_that_has_it_and_in_no_other():
    model, _, _, samples = simulated(Presliding(), seed=4, noise=0.1)
    waves = np.zeros_like(samples.torque)
    waves[:, 3] = 0.8 * np.sin(2.0 * samples.position[:, 3]) + 0.5 * np.cos(
        3.0 * samples.position[:, 3]
    )

    choice = with_ripple(model, None, samples)
    plain, held = choice.model, choice.dropped
    assert plain is model and held == ()

    choice = with_ripple(model, None, replace(samples, torque=samples.torque + waves))
    rippled, held = choice.model, choice.dropped
    assert rippled.friction == model.friction
    assert isinstance(rippled.terms[0], Ripple)
    kept = [n for n in rippled.names if ".ripple" in n and n not in held]
    assert kept and all(name.startswith("joint_4.") for name in kept)

    estimate = fit(rippled, replace(samples, torque=samples.torque + waves), dropped=held)
    # The joint turns too little to tell its waves apart; together they are found.
    assert estimate.torque_rms[3] < 1.2 * 0.1


@pytest.mark.parametrize("size, long_ones", [(0.25, False), (2.0, True)])
def test_waves_longer_than_the_travel_are_kept_only_where_they_are_plain_to_see(size, long_ones):
    model, _, _, samples = simulated(Presliding(), seed=4, noise=0.1)
    joint = int(np.argmax(np.ptp(samples.position, axis=0)))
    travel = float(np.ptp(samples.position[:, joint]))
    assert travel < 2.0 * np.pi, "the joint must not see a whole first wave"
    waves = np.zeros_like(samples.torque)
    waves[:, joint] = size * (
        np.sin(samples.position[:, joint]) + np.sin(3.0 * samples.position[:, joint])
    )

    # With more orders, short waves make up a long one within the travel.
    orders = (1.0, 2.0, 3.0)
    choice = with_ripple(model, None, replace(samples, torque=samples.torque + waves), orders)

    orders = {
        float(name.rpartition("_")[2])
        for name in choice.model.names
        if ".ripple" in name and name not in choice.dropped
    }
    longer = {order for order in orders if order * travel < 2.0 * np.pi}
    assert bool(longer) is long_ones


def test_more_motion_leaves_less_to_what_was_believed():
    model, _, _, samples = simulated(Presliding(), seed=4, noise=0.5)
    short, whole = (
        estimate_prior_scales(model, samples.rows(slice(0, n))).from_data
        for n in (120, len(samples))
    )

    assert np.all(whole.links >= short.links - 1e-6) and whole.links.sum() > short.links.sum() + 0.1
    assert np.all((whole.links >= 0.0) & (whole.links <= 1.0))
    coulomb = model.layout.drive_names.index("coulomb")
    assert np.all(whole.terms[:, coulomb] > 0.9)
    assert np.mean(whole.terms) > np.mean(short.terms)


def test_what_a_motion_does_not_show_did_not_come_from_it():
    model, _, _, samples = simulated(Presliding(), seed=4, noise=0.5)
    still = samples.keep.copy()
    still[:, -1] = False
    fit_of = estimate_prior_scales(model, replace(samples, keep=still)).from_data

    np.testing.assert_allclose(fit_of.terms[-1], 0.0, atol=1e-6)
