"""Terms a recording does not support are found, and those it does are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from test_estimation_recovery import simulated

from taufit.estimation import Wls, fit_samples, unsupported_terms
from taufit.friction import Linear, Polynomial


def test_bic_drops_what_is_not_there_and_keeps_what_is():
    model, theta, _, samples = simulated(Linear(), noise=0.1)
    cubic = replace(model, friction=Polynomial())
    estimate = fit_samples(cubic, samples, Wls())
    gone = unsupported_terms(cubic, estimate)
    # Eight superfluous terms; each survives by chance with probability P(chi2 > ln 1200) < 1 %.
    assert len(gone) >= 7
    assert all(name.endswith(("viscous2", "viscous3")) for name in gone)
    again = fit_samples(cubic, samples, Wls(), dropped=gone)
    assert again.torque_rms.sum() < 1.01 * estimate.torque_rms.sum()

    curved = cubic.nominal
    curved[: len(theta) - 12] = theta[: len(theta) - 12]
    for i, name in enumerate(cubic.names):
        if name.endswith("viscous2"):
            curved[i] = 0.5
    torque = cubic.with_values(curved).torque(
        samples.position, samples.velocity, samples.acceleration
    )
    noisy = torque + 0.1 * np.random.default_rng(0).normal(size=torque.shape)
    estimate = fit_samples(cubic, replace(samples, torque=noisy), Wls())
    kept = set(unsupported_terms(cubic, estimate))
    assert not any({f"joint_{i}.viscous2", f"joint_{i}.viscous3"} <= kept for i in range(1, 5)), (
        "quadratic drag is there, so one of the two must stay"
    )
