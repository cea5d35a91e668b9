"""The read-out: information on ten parameters -> a body that can exist, with its covariance.

A body is x = (log m, c, L): mass, centre of mass, and L lower triangular with L L' the second
moments of mass about that centre. Its ten parameters phi(x) are physically possible for every x.
The most probable x under

    (phi(x) - phi_0)' A (phi(x) - phi_0)  +  prior on c and L

is found by Gauss-Newton; the curvature there gives the covariance (Laplace).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from taufit.arrays import Array, Float
from taufit.payload.settings import PayloadSettings

# Density of what grippers carry where the user does not say [kg/m^3], and spread of log lengths.
TYPICAL_DENSITY = 3500.0
_LENGTH_SPREAD = 0.7
_KNOWN_SPREAD = 0.35
_ROUNDS = 25


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A body with the covariance of how it is known.

    Attributes:
        parameters: Ten inertial parameters in the last link's frame.
        covariance: Of (m, c, and the inertia tensor's six entries about c).
        mass, centre, inertia: About the centre of mass.
        prior_share: How much of what is known about the inertia is prior, 0 to 1.
    """

    parameters: Float[Array, " 10"]
    covariance: Float[Array, "10 10"]
    mass: float
    centre: Float[Array, " 3"]
    inertia: Float[Array, "3 3"]
    prior_share: float


_LOWER = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
_DIAGONAL = np.array([0, 2, 5])
# Ixx, Ixy, Iyy, Ixz, Iyz, Izz from second moments xx, xy, yy, xz, yz, zz: I = tr(S) 1 - S.
_TO_INERTIA = np.array(
    [
        [0, 0, 1, 0, 0, 1],
        [0, -1, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 1],
        [0, 0, 0, -1, 0, 0],
        [0, 0, 0, 0, -1, 0],
        [1, 0, 1, 0, 0, 0],
    ],
    float,
)
_SIX = (np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 0, 1, 2]))


def most_probable_body(
    information: Float[Array, "10 10"],
    target: Float[Array, " 10"],
    settings: PayloadSettings,
    start: Float[Array, " 10"] | None = None,
) -> Body:
    """The most probable possible body under information A and target A phi_0.

    Args:
        information: A.
        target: A phi_0.
        settings: Give the prior: bounding box, density, spread of the centre.
        start: Ten parameters near the solution, e.g. of the last read-out.
    """
    mass, centre, lower = _start(information, target, settings, start)
    x = np.concatenate([[np.log(mass)], centre, lower])
    phi, jacobian = _parameters(x)
    value = -np.inf
    damping = 0.0
    for _ in range(_ROUNDS):
        prior, gradient, cost = _prior(x, settings)
        difference = target - information @ phi
        new = float(phi @ (information @ phi) - 2.0 * (target @ phi)) + cost
        step_information = jacobian.T @ information @ jacobian + prior
        slope = jacobian.T @ difference - gradient
        size = np.sqrt(np.diag(step_information))
        scaled = step_information / np.outer(size, size)
        while True:
            damped = scaled + damping * np.eye(10)
            step = cho_solve(cho_factor(damped, check_finite=False), slope / size) / size
            step *= min(1.0, 1.0 / max(np.abs(step[[0, 4, 6, 9]]).max(), 1e-300))
            trial = x + step
            phi_trial, jacobian_trial = _parameters(trial)
            value = (
                float(phi_trial @ (information @ phi_trial) - 2.0 * (target @ phi_trial))
                + _prior(trial, settings)[2]
            )
            if value <= new + 1e-9 * abs(new) or damping > 1e6:
                break
            damping = max(10.0 * damping, 1e-3)
        x, phi, jacobian = trial, phi_trial, jacobian_trial
        damping = 0.0 if damping < 1e-3 else 0.1 * damping
        if np.abs(step * size).max() < 1e-3:
            break
    prior = _prior(x, settings)[0]
    full = jacobian.T @ information @ jacobian + prior
    size = np.sqrt(np.diag(full))
    covariance_x = np.linalg.inv(full / np.outer(size, size)) / np.outer(size, size)
    told, jacobian_told = _described(x)
    covariance = jacobian_told @ covariance_x @ jacobian_told.T
    share = float(np.mean(np.sqrt(np.diag(covariance_x)[4:] * np.diag(prior)[4:]).clip(0.0, 1.0)))
    tensor = np.empty((3, 3))
    tensor[_SIX] = told[4:]
    tensor[_SIX[::-1]] = told[4:]
    return Body(phi, covariance, float(told[0]), told[1:4], tensor, share)


def _start(
    information: Array, target: Array, settings: PayloadSettings, start: Array | None
) -> tuple[float, Array, Array]:
    if start is None or start[0] <= 0.0:
        weak = np.diag([1e-4, *[1.0] * 3, *[10.0] * 6])
        start = np.linalg.solve(information + weak, target)
    mass = max(float(start[0]), 1e-2)
    centre = np.clip(start[1:4] / mass, -1.0, 1.0)
    return mass, centre, _prior_lower(mass, settings)


def _prior_lower(mass: float, settings: PayloadSettings) -> Array:
    """L of the shape believed in before any data: log of its diagonal, zeros beside it."""
    std = _lengths(mass, settings) / np.sqrt(12.0)
    out = np.zeros(6)
    out[_DIAGONAL] = np.log(np.sqrt(mass) * std)
    return out


def _lengths(mass: float, settings: PayloadSettings) -> Array:
    """Edges of a solid box: as told, or a cube of the density."""
    if settings.box is not None:
        return np.array(settings.box)
    return np.full(3, (mass / (settings.density or TYPICAL_DENSITY)) ** (1.0 / 3.0))


def _prior(x: Array, settings: PayloadSettings) -> tuple[Array, Array, float]:
    """Information, gradient of half the cost, and cost of the prior at x."""
    mass = float(np.exp(x[0]))
    known = settings.box is not None or settings.density is not None
    spread = _KNOWN_SPREAD if known else _LENGTH_SPREAD
    middle = _prior_lower(mass, settings)
    std = np.empty(10)
    std[0] = 10.0
    std[1:4] = settings.com_spread if settings.box is None else settings.com_spread + 0.0
    std[4:] = spread
    # What stands beside the diagonal is a length too, about as large as the diagonal's.
    scale = float(np.exp(np.mean(middle[_DIAGONAL])))
    for k, (i, j) in enumerate(_LOWER):
        if i != j:
            std[4 + k] = spread * scale
    off = np.concatenate([[x[0]], x[1:4], x[4:] - middle])
    weighted = off / std**2
    return np.diag(1.0 / std**2), weighted, float(off @ weighted)


def _lower(x: Array) -> Array:
    out = np.zeros((3, 3))
    for k, (i, j) in enumerate(_LOWER):
        out[i, j] = np.exp(x[4 + k]) if i == j else x[4 + k]
    return out


def _moments(x: Array) -> tuple[Array, Array]:
    """Second moments L L' in six entries and their derivative by the six of L."""
    lower = _lower(x)
    square = lower @ lower.T
    derivative = np.empty((6, 6))
    for k, (i, j) in enumerate(_LOWER):
        turn = np.zeros((3, 3))
        turn[i] = lower[:, j] * (lower[i, j] if i == j else 1.0)
        turn = turn + turn.T
        derivative[:, k] = turn[_SIX]
    return square[_SIX], derivative


def _parameters(x: Array) -> tuple[Array, Array]:
    """phi(x) and its derivative."""
    mass, c = float(np.exp(x[0])), x[1:4]
    about, turn = _moments(x)
    outer = np.outer(c, c)[_SIX]
    phi = np.concatenate([[mass], mass * c, _TO_INERTIA @ (about + mass * outer)])
    jacobian = np.zeros((10, 10))
    jacobian[0, 0] = mass
    jacobian[1:4, 0] = mass * c
    jacobian[1:4, 1:4] = mass * np.eye(3)
    jacobian[4:, 0] = _TO_INERTIA @ (mass * outer)
    for k in range(3):
        e = np.zeros((3, 3))
        e[k] = c
        jacobian[4:, 1 + k] = _TO_INERTIA @ (mass * (e + e.T)[_SIX])
    jacobian[4:, 4:] = _TO_INERTIA @ turn
    return phi, jacobian


def _described(x: Array) -> tuple[Array, Array]:
    """(m, c, inertia about c) and its derivative by x."""
    mass = float(np.exp(x[0]))
    about, turn = _moments(x)
    out = np.concatenate([[mass], x[1:4], _TO_INERTIA @ about])
    jacobian = np.zeros((10, 10))
    jacobian[0, 0] = mass
    jacobian[1:4, 1:4] = np.eye(3)
    jacobian[4:, 4:] = _TO_INERTIA @ turn
    return out, jacobian
