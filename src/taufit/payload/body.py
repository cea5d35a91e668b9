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

from taufit.arrays import Array, Float
from taufit.payload.settings import PayloadSettings

# Density of what grippers carry where the user does not say [kg/m^3], and spread of log lengths.
TYPICAL_DENSITY = 3500.0
_LENGTH_SPREAD = 0.7
_KNOWN_SPREAD = 0.35
_ROUNDS = 25
# A step smaller than this in standard deviations changes nothing.
_CONVERGED = 1e-2
_TEN = np.arange(10)
_LOGARITHMS = np.array([0, 4, 6, 9])


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A body with the covariance of how it is known.

    Attributes:
        parameters: Ten inertial parameters in the last link's frame.
        covariance: Of (m, c, and the inertia tensor's six entries about c).
        mass, centre, inertia: About the centre of mass.
        prior_share: How much of what is known about the inertia is prior, 0 to 1.
        x: The body as (log m, c, L), to start the next read-out from.
    """

    parameters: Float[Array, " 10"]
    covariance: Float[Array, "10 10"]
    mass: float
    centre: Float[Array, " 3"]
    inertia: Float[Array, "3 3"]
    prior_share: float
    x: Float[Array, " 10"]


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
_ENTRIES = np.arange(6)
_AXES = np.arange(1, 4)
_BESIDE = np.array([1, 3, 4])


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
        start: x of the last read-out, or None.
    """
    x = _start(information, target, settings) if start is None else start.copy()
    phi, jacobian = _parameters(x)
    prior, gradient, cost = _prior(x, settings)
    pushed = information @ phi
    value = float(phi @ pushed - 2.0 * (target @ phi)) + cost
    damping = 0.0
    for _ in range(_ROUNDS):
        curvature = jacobian.T @ information @ jacobian
        curvature[_TEN, _TEN] += prior
        slope = jacobian.T @ (target - pushed) - gradient
        size = 1.0 / np.sqrt(curvature[_TEN, _TEN])
        scaled = curvature * np.outer(size, size)
        while True:
            damped = scaled.copy()
            damped[_TEN, _TEN] += damping
            step = np.linalg.solve(damped, slope * size) * size
            step *= min(1.0, 1.0 / max(np.abs(step[_LOGARITHMS]).max(), 1e-300))
            trial = x + step
            phi, jacobian = _parameters(trial)
            prior, gradient, cost = _prior(trial, settings)
            pushed = information @ phi
            new = float(phi @ pushed - 2.0 * (target @ phi)) + cost
            if new <= value + 1e-9 * abs(value) or damping > 1e6:
                break
            damping = max(10.0 * damping, 1e-3)
        x, value = trial, new
        damping = 0.0 if damping < 1e-3 else 0.1 * damping
        if np.abs(step / size).max() < _CONVERGED:
            break
    full = jacobian.T @ information @ jacobian
    full[_TEN, _TEN] += prior
    size = 1.0 / np.sqrt(full[_TEN, _TEN])
    covariance_x = np.linalg.inv(full * np.outer(size, size)) * np.outer(size, size)
    told, jacobian_told = _described(x)
    covariance = jacobian_told @ covariance_x @ jacobian_told.T
    share = float(np.mean(np.sqrt(np.diag(covariance_x)[4:] * prior[4:]).clip(0.0, 1.0)))
    tensor = np.empty((3, 3))
    tensor[_SIX] = told[4:]
    tensor[_SIX[::-1]] = told[4:]
    return Body(phi, covariance, float(told[0]), told[1:4], tensor, share, x)


def _start(information: Array, target: Array, settings: PayloadSettings) -> Array:
    weak = np.diag([1e-4, *[1.0] * 3, *[10.0] * 6])
    linear = np.linalg.solve(information + weak, target)
    mass = max(float(linear[0]), 1e-2)
    centre = np.clip(linear[1:4] / mass, -1.0, 1.0)
    return np.concatenate([[np.log(mass)], centre, _prior_lower(mass, settings)])


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
    """Information (its diagonal), gradient of half the cost, and cost of the prior at x."""
    mass = float(np.exp(x[0]))
    known = settings.box is not None or settings.density is not None
    spread = _KNOWN_SPREAD if known else _LENGTH_SPREAD
    middle = _prior_lower(mass, settings)
    std = np.full(10, spread)
    std[0] = 10.0
    std[1:4] = settings.com_spread
    # What stands beside the diagonal is a length too, about as large as the diagonal's.
    std[4 + _BESIDE] *= float(np.exp(middle[_DIAGONAL].sum() / 3.0))
    off = x.copy()
    off[4:] -= middle
    information = 1.0 / std**2
    weighted = off * information
    return information, weighted, float(off @ weighted)


def _quadratic() -> Array:
    """T with (L L')_k = l' T_k l for the six entries l of a lower triangle."""
    out = np.zeros((6, 6, 6))
    for k, (i, j) in enumerate(_LOWER):
        for a, (row_a, column_a) in enumerate(_LOWER):
            for b, (row_b, column_b) in enumerate(_LOWER):
                if column_a == column_b and row_a == i and row_b == j:
                    out[k, a, b] += 1.0
    return 0.5 * (out + out.transpose(0, 2, 1))


_SQUARE = _quadratic()
# Pairs of coordinates behind the six entries of c c'.
_FIRST, _SECOND = _SIX


def _moments(x: Array) -> tuple[Array, Array]:
    """Second moments L L' in six entries and their derivative by the six of L."""
    entries = x[4:].copy()
    entries[_DIAGONAL] = np.exp(entries[_DIAGONAL])
    half = _SQUARE @ entries
    derivative = 2.0 * half
    derivative[:, _DIAGONAL] *= entries[_DIAGONAL]
    return half @ entries, derivative


def _parameters(x: Array) -> tuple[Array, Array]:
    """phi(x) and its derivative."""
    mass, c = float(np.exp(x[0])), x[1:4]
    about, turn = _moments(x)
    outer = c[_FIRST] * c[_SECOND]
    phi = np.empty(10)
    phi[0] = mass
    phi[1:4] = mass * c
    phi[4:] = _TO_INERTIA @ (about + mass * outer)
    turned = np.zeros((6, 3))
    turned[_ENTRIES, _FIRST] += mass * c[_SECOND]
    turned[_ENTRIES, _SECOND] += mass * c[_FIRST]
    jacobian = np.zeros((10, 10))
    jacobian[0, 0] = mass
    jacobian[1:4, 0] = phi[1:4]
    jacobian[_AXES, _AXES] = mass
    jacobian[4:, 0] = _TO_INERTIA @ (mass * outer)
    jacobian[4:, 1:4] = _TO_INERTIA @ turned
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
