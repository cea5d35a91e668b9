"""The most probable body by Gauss-Newton in NumPy; `kernel/payload_body.cpp` does the same."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK

_ROUNDS = 25
# A step smaller than this in standard deviations changes nothing.
_CONVERGED = 1e-2
_TEN = np.arange(10)
_LOGARITHMS = np.array([0, 4, 6, 9])
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


def search(  # noqa: PLR0913 - the compiled kernel's signature
    information: Float[Array, "10 10"],
    target: Float[Array, " 10"],
    box: Float[Array, " 3"],
    density: float,
    spread: float,
    com_spread: float,
    at: Float[Array, " 10"],
    parameters: Float[Array, " 10"],
    described: Float[Array, " 10"],
    covariance: Float[Array, "10 10"],
) -> float:
    """Minimise (phi(x) - phi_0)' A (phi(x) - phi_0) + prior, from x = `at` on.

    Args:
        information: A.
        target: A phi_0.
        box: Edges of the prior body [m]; nan for a cube of the density.
        density: [kg/m^3].
        spread: Standard deviation of the logarithms of its lengths.
        com_spread: Standard deviation of its centre [m].
        at: Where to start; overwritten by the result.
        parameters: Overwritten by phi.
        described: Overwritten by (m, c, inertia about c).
        covariance: Overwritten by that of `described`.

    Returns:
        How much of what is known about the inertia is prior, 0 to 1.
    """

    def prior_at(x: Array) -> tuple[Array, Array, float]:
        """Information (its diagonal), gradient of half the cost, and cost of the prior."""
        mass = float(np.exp(x[0]))
        lengths = np.where(np.isfinite(box), box, (mass / density) ** (1.0 / 3.0))
        middle = np.log(np.sqrt(mass / 12.0) * lengths)
        std = np.full(10, spread)
        std[0] = 10.0
        std[1:4] = com_spread
        # What stands beside the diagonal is a length too, about as large as the diagonal's.
        std[4 + _BESIDE] *= float(np.exp(middle.mean()))
        off = x.copy()
        off[4 + _DIAGONAL] -= middle
        weighted = off / std**2
        return 1.0 / std**2, weighted, float(off @ weighted)

    x = at.copy()
    phi, jacobian = _parameters(x)
    prior, gradient, cost = prior_at(x)
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
            prior, gradient, cost = prior_at(trial)
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
    described[:], jacobian_described = _described(x)
    covariance[:] = jacobian_described @ covariance_x @ jacobian_described.T
    parameters[:], at[:] = phi, x
    return float(np.mean(np.sqrt(np.diag(covariance_x)[4:] * prior[4:]).clip(0.0, 1.0)))


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
    jacobian = np.zeros((PER_LINK, PER_LINK))
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
    jacobian = np.zeros((PER_LINK, PER_LINK))
    jacobian[0, 0] = mass
    jacobian[1:4, 1:4] = np.eye(3)
    jacobian[4:, 4:] = _TO_INERTIA @ turn
    return out, jacobian
