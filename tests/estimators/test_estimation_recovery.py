"""Every estimator and every friction model recovers the truth from clean simulated data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.estimators import ESTIMATORS, Wls, is_consistent
from taufit.fitting import fit_samples as fit_samples
from taufit.friction import (
    FRICTION_MODELS,
    FittedWidth,
    FrictionInput,
    Presliding,
    Stribeck,
    StribeckLoadSmooth,
    TemperatureDependent,
    friction_to_dict,
    start_shape,
)
from taufit.model.torque_model import TorqueModel
from taufit.robot import from_dh
from taufit.robot.inertia import from_centre_of_mass
from taufit.signals.samples import Samples

ROWS = np.array(
    [[0, 0.3, 0.0, np.pi / 2], [0.1, 0.1, 0.4, 0], [0, 0.05, 0.1, -np.pi / 2], [0, 0.3, 0, 0.4]]
)
RATE = 50.0


def arm(seed: int = 0, joints: int = 4):
    rng = np.random.default_rng(seed)
    links = [
        from_centre_of_mass(m, rng.normal(size=3) * 0.05, np.diag(rng.uniform(0.02, 0.03, 3)))
        for m in (6.0, 4.0, 2.0, 1.0)[:joints]
    ]
    return from_dh(ROWS[:joints], parameters=np.array(links), name="test arm")


def fourier(n: int, speed: float, seed: int, joints: int = 4):
    """A lively motion in its first half and one a tenth as fast in its second."""
    rng = np.random.default_rng(seed)
    parts = []
    for share, w in ((1.0, 2 * np.pi * 0.1), (0.1, 2 * np.pi * 0.05)):
        t = np.arange(n // 2)[:, None] / RATE
        q, v, a = np.zeros((3, n // 2, joints))
        for k in range(1, 6):
            x, y = rng.normal(size=(2, joints))
            q += (x * np.sin(k * w * t) - y * np.cos(k * w * t)) / (k * w)
            v += x * np.cos(k * w * t) + y * np.sin(k * w * t)
            a += k * w * (y * np.cos(k * w * t) - x * np.sin(k * w * t))
        gain = share * speed / np.abs(v).max(axis=0)
        parts.append((q * gain, v * gain, a * gain))
    return tuple(np.concatenate(both) for both in zip(*parts, strict=True))


def simulated(friction, *, seed: int = 0, n: int = 1200, noise: float = 0.0, joints: int = 4):
    """A model, its true parameters and shape, and samples of it."""
    rng = np.random.default_rng(seed)
    model = TorqueModel(arm(joints=joints), friction=friction)
    shape = None
    if friction.shapes:
        spread = rng.uniform(-0.3, 0.3, (joints, len(friction.shapes)))
        shape = start_shape(friction) * np.exp(spread)
    theta = model.nominal
    for i, name in enumerate(model.names):
        term = name.rsplit(".", 1)[1]
        if name.startswith("joint"):
            theta[i] = {
                "rotor": 0.0,
                "offset": rng.normal() * 0.5,
                "load": rng.uniform(0.02, 0.06),
                "viscous2": rng.uniform(-0.1, 0.1),
                "viscous3": rng.uniform(-0.1, 0.1),
                "viscous_per_degree": -0.01,
            }.get(term, rng.uniform(0.3, 1.0))
    if isinstance(friction, StribeckLoadSmooth):
        theta[[name.endswith("load_static") for name in model.names]] = 0.05
    q, v, a = fourier(n, 1.2, seed, joints)
    half = np.arange(n) // (n // 2)
    temperature = 25 + 15 * np.sin(np.arange(n)[:, None] / 200 + np.arange(joints))
    true = replace(model, shape=shape).with_values(theta)
    rigid = true.robot
    from taufit.dynamics import inverse_dynamics

    load = inverse_dynamics(rigid, q, v, a)
    torque = np.empty_like(q)
    for k in (0, 1):
        at = half == k
        torque[at] = (
            true.structure.regressor(
                q[at], v[at], a[at], load=load[at], temperature=temperature[at], step=1.0 / RATE
            )
            @ theta
        )
    torque = torque + noise * rng.normal(size=torque.shape)
    samples = replace(
        Samples.from_arrays(q, v, a, torque, rate_hz=RATE),
        temperature=temperature,
        run=half,
        names=("fast", "slow"),
    )
    return model, theta, shape, samples


MODELS = [
    *(kind() for kind in FRICTION_MODELS.values()),
    Presliding(widths=(3e-4, 3e-2), load=False),
    FittedWidth(Stribeck(degree=1)),
    TemperatureDependent(law="exponential"),
    TemperatureDependent(law="arrhenius"),
]


@pytest.mark.parametrize(
    "friction", MODELS, ids=lambda m: "-".join(map(str, friction_to_dict(m).values()))[:40]
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
    columns = model.friction_columns(FrictionInput(samples.friction_velocity))
    own = columns @ theta[44 : 44 + columns.shape[-1]]
    torque = (
        rigid.torque(samples.position, samples.velocity, samples.acceleration)
        + lowpass(smooth, own)
        + theta[-4:]
    )
    estimate = fit_samples(model, replace(smooth, torque=torque), Wls())
    np.testing.assert_allclose(estimate.base_values, estimate.base.mapping @ theta, atol=1e-8)
