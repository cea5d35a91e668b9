"""Every estimator and every friction model recovers the truth from clean simulated data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.simulated_samples import simulated

from taufit.estimators import ESTIMATORS, Wls, is_consistent
from taufit.fitting import fit_samples as fit_samples
from taufit.terms import TermInput, term_to_dict
from taufit.terms.friction import (
    FRICTION_MODELS,
    FittedWidth,
    Presliding,
    Stribeck,
    TemperatureDependent,
)

MODELS = [
    *(kind() for kind in FRICTION_MODELS.values()),
    Presliding(widths=(3e-4, 3e-2), load=False),
    FittedWidth(Stribeck(degree=1)),
    TemperatureDependent(law="exponential"),
    TemperatureDependent(law="arrhenius"),
]


@pytest.mark.parametrize(
    "friction", MODELS, ids=lambda m: "-".join(map(str, term_to_dict(m).values()))[:40]
)
def test_every_friction_model_is_recovered(friction):
    # Seed 1 has joints with nearly equal speeds: curves with a twin across a fold.
    model, theta, shape, samples = simulated(friction, seed=1)
    estimate = fit_samples(model, samples, Wls())
    # Loads are found by iteration to 1e-7 of themselves; everything else to rounding.
    np.testing.assert_allclose(estimate.torque_rms, 0.0, atol=1e-6)
    np.testing.assert_allclose(
        estimate.base_values, estimate.base.mapping @ theta, atol=2e-5, rtol=2e-5
    )
    if shape is not None:
        np.testing.assert_allclose(estimate.shape, shape, rtol=1e-5)


@pytest.fixture(scope="module")
def clean():
    """Clean samples of a two-joint arm for each friction model."""
    return {
        name: simulated(kind(), n=600, joints=2, seed=3) for name, kind in FRICTION_MODELS.items()
    }


@pytest.mark.parametrize("friction", FRICTION_MODELS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_recovers_every_friction_model(name, friction, clean):
    model, theta, shape, samples = clean[friction]
    estimate = fit_samples(model, samples, ESTIMATORS[name]())
    # Loads are found by iteration to 1e-7 of themselves; everything else to rounding.
    close = 2e-5 if "load" in model.friction.needs else 1e-6
    np.testing.assert_allclose(
        estimate.base_values, estimate.base.mapping @ theta, atol=close, rtol=close
    )
    if shape is not None:
        np.testing.assert_allclose(estimate.shape, shape, rtol=close)
    assert estimate.warnings == ()
    if name in ("consistent_sdp", "pbpr"):
        assert is_consistent(model, estimate.values)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_recovers_a_larger_arm(name):
    model, theta, _, samples = simulated(FRICTION_MODELS["linear"](), n=600)
    estimate = fit_samples(model, samples, ESTIMATORS[name]())
    np.testing.assert_allclose(
        estimate.base_values, estimate.base.mapping @ theta, atol=1e-7, rtol=1e-7
    )


def test_the_shape_of_a_term_that_is_not_there_is_free():
    """Without static friction its velocity changes nothing; all else is recovered."""
    model, theta, shape, samples = simulated(Stribeck(), joints=2)
    gone = np.array([name.endswith(".static") for name in model.names])
    theta = np.where(gone, 0.0, theta)
    true = replace(model, shape=shape)
    torque = true.regressor(samples.position, samples.velocity, samples.acceleration) @ theta
    estimate = fit_samples(model, replace(samples, torque=torque), Wls())
    np.testing.assert_allclose(estimate.shape[:, 0], shape[:, 0], rtol=1e-5)
    np.testing.assert_allclose(
        estimate.base_values, estimate.base.mapping @ theta, atol=2e-5, rtol=2e-5
    )


def test_filtered_torque_is_explained_by_filtered_columns():
    from taufit.signals.filtering import lowpass

    model, theta, _, samples = simulated(FRICTION_MODELS["linear"](), n=1200)
    smooth = replace(samples, cutoff_hz=5.0)
    # Rigid-body columns are what the filtered motion gives; here only friction is filtered.
    rigid = model.with_values(np.where(np.arange(len(theta)) < 44, theta, 0.0))
    columns = model.friction_columns(TermInput(samples.friction_velocity))
    own = columns @ theta[44 : 44 + columns.shape[-1]]
    torque = (
        rigid.torque(samples.position, samples.velocity, samples.acceleration)
        + lowpass(smooth, own)
        + theta[-4:]
    )
    estimate = fit_samples(model, replace(smooth, torque=torque), Wls())
    np.testing.assert_allclose(estimate.base_values, estimate.base.mapping @ theta, atol=1e-8)
