"""Estimates of methods that solve for the ten parameters by least squares."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK
from taufit.payload.estimate import PayloadEstimate, interval
from taufit.robot.inertia import pseudo_inertia, tensor_entries, to_centre_of_mass


def linear_estimate(
    time: float,
    phi: Float[Array, " 10"],
    covariance: Float[Array, "10 10"] | None,
    ready: bool,
) -> PayloadEstimate:
    """Estimate from ten parameters and their covariance, physical consistency not enforced.

    Covariance of the centre c = h / m and of the inertia about c is propagated to first order. A
    method without valid covariance passes None; its estimate has no intervals (nan).
    """
    mass, centre, inertia = to_centre_of_mass(phi)
    jacobian = np.zeros((PER_LINK, PER_LINK))
    jacobian[0, 0] = 1.0
    scale = phi[0] if abs(phi[0]) > 1e-6 else 1e-6
    jacobian[1:4, 0] = -centre / scale
    jacobian[1:4, 1:4] = np.eye(3) / scale
    step = 1e-6
    for k in range(10):
        perturbed = phi.copy()
        perturbed[k] += step
        jacobian[4:, k] = (
            tensor_entries(to_centre_of_mass(perturbed)[2]) - tensor_entries(inertia)
        ) / step
    std = np.full(PER_LINK, np.nan)
    if covariance is not None:
        std = np.sqrt(np.maximum(np.diag(jacobian @ covariance @ jacobian.T), 0.0))
    low, high = interval(mass, std[0])
    warnings = []
    if np.linalg.eigvalsh(pseudo_inertia(phi)).min() < -1e-9:
        warnings.append(
            "this estimate is not physically possible (no body has such a mass distribution); the "
            "method filter gives one that is."
        )
    return PayloadEstimate(
        time,
        phi,
        mass,
        float(std[0]),
        (float(low), float(high)),
        centre,
        std[1:4],
        interval(centre, std[1:4]),
        inertia,
        interval(tensor_entries(inertia), std[4:]),
        ready=ready,
        accurate=False,
        empty=bool(low <= 0.0),
        from_prior=False,
        warnings=tuple(warnings),
    )
