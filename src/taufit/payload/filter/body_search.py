"""Maximum a posteriori body by Gauss-Newton in NumPy; equal to `kernel/payload_body.cpp`."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK

_MAX_ITERATIONS = 25
# Convergence: largest step in standard deviations.
_STEP_TOLERANCE = 1e-2
_INDEX = np.arange(10)
_LOGARITHMIC = np.array([0, 4, 6, 9])
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
_TENSOR_INDEX = (np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 0, 1, 2]))
_ENTRIES = np.arange(6)
_AXES = np.arange(1, 4)
_OFF_DIAGONAL = np.array([1, 3, 4])


def minimise_cost(  # noqa: PLR0913 - the compiled kernel's signature
    information: Float[Array, "10 10"],
    target: Float[Array, " 10"],
    box: Float[Array, " 3"],
    density: float,
    length_std: float,
    com_std: float,
    start: Float[Array, " 10"],
    parameters: Float[Array, " 10"],
    quantities: Float[Array, " 10"],
    covariance: Float[Array, "10 10"],
) -> float:
    """Minimise (phi(x) - phi_0)' A (phi(x) - phi_0) + prior from x = `start`.

    Args:
        information: A.
        target: A phi_0.
        box: Edges of the prior body [m]; nan for a cube of the density.
        density: Density of the prior body [kg/m^3].
        length_std: Standard deviation of the logarithms of its lengths.
        com_std: Standard deviation of its centre [m].
        start: Initial value; overwritten by the result.
        parameters: Overwritten by phi.
        quantities: Overwritten by m, c and inertia about c.
        covariance: Overwritten by the covariance of `quantities`.

    Returns:
        Fraction of the information on the inertia that is prior, 0 to 1.
    """

    def prior_at(x: Array) -> tuple[Array, Array, float]:
        """Information (its diagonal), gradient of half the cost, and cost of the prior."""
        mass = float(np.exp(x[0]))
        lengths = np.where(np.isfinite(box), box, (mass / density) ** (1.0 / 3.0))
        log_lengths = np.log(np.sqrt(mass / 12.0) * lengths)
        std = np.full(10, length_std)
        std[0] = 10.0
        std[1:4] = com_std
        # Off-diagonal entries are lengths of about the size of the diagonal ones.
        std[4 + _OFF_DIAGONAL] *= float(np.exp(log_lengths.mean()))
        deviation = x.copy()
        deviation[4 + _DIAGONAL] -= log_lengths
        weighted = deviation / std**2
        return 1.0 / std**2, weighted, float(deviation @ weighted)

    x = start.copy()
    phi, jacobian = _parameters(x)
    prior, gradient, cost = prior_at(x)
    weighted_parameters = information @ phi
    value = float(phi @ weighted_parameters - 2.0 * (target @ phi)) + cost
    damping = 0.0
    for _ in range(_MAX_ITERATIONS):
        curvature = jacobian.T @ information @ jacobian
        curvature[_INDEX, _INDEX] += prior
        descent = jacobian.T @ (target - weighted_parameters) - gradient
        size = 1.0 / np.sqrt(curvature[_INDEX, _INDEX])
        scaled = curvature * np.outer(size, size)
        while True:
            damped = scaled.copy()
            damped[_INDEX, _INDEX] += damping
            step = np.linalg.solve(damped, descent * size) * size
            step *= min(1.0, 1.0 / max(np.abs(step[_LOGARITHMIC]).max(), 1e-300))
            trial = x + step
            phi, jacobian = _parameters(trial)
            prior, gradient, cost = prior_at(trial)
            weighted_parameters = information @ phi
            new = float(phi @ weighted_parameters - 2.0 * (target @ phi)) + cost
            if new <= value + 1e-9 * abs(value) or damping > 1e6:
                break
            damping = max(10.0 * damping, 1e-3)
        x, value = trial, new
        damping = 0.0 if damping < 1e-3 else 0.1 * damping
        if np.abs(step / size).max() < _STEP_TOLERANCE:
            break
    curvature_end = jacobian.T @ information @ jacobian
    curvature_end[_INDEX, _INDEX] += prior
    size = 1.0 / np.sqrt(curvature_end[_INDEX, _INDEX])
    covariance_x = np.linalg.inv(curvature_end * np.outer(size, size)) * np.outer(size, size)
    quantities[:], quantities_jacobian = _quantities(x)
    covariance[:] = quantities_jacobian @ covariance_x @ quantities_jacobian.T
    parameters[:], start[:] = phi, x
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
# Pairs of coordinates of the six entries of c c'.
_ROW_AXIS, _COLUMN_AXIS = _TENSOR_INDEX


def _moments(x: Array) -> tuple[Array, Array]:
    """Six entries of the second moments L L' and their derivative by the six entries of L."""
    entries = x[4:].copy()
    entries[_DIAGONAL] = np.exp(entries[_DIAGONAL])
    half = _SQUARE @ entries
    derivative = 2.0 * half
    derivative[:, _DIAGONAL] *= entries[_DIAGONAL]
    return half @ entries, derivative


def _parameters(x: Array) -> tuple[Array, Array]:
    """phi(x) and its derivative."""
    mass, c = float(np.exp(x[0])), x[1:4]
    second_moments, moment_jacobian = _moments(x)
    outer = c[_ROW_AXIS] * c[_COLUMN_AXIS]
    phi = np.empty(10)
    phi[0] = mass
    phi[1:4] = mass * c
    phi[4:] = _TO_INERTIA @ (second_moments + mass * outer)
    centre_jacobian = np.zeros((6, 3))
    centre_jacobian[_ENTRIES, _ROW_AXIS] += mass * c[_COLUMN_AXIS]
    centre_jacobian[_ENTRIES, _COLUMN_AXIS] += mass * c[_ROW_AXIS]
    jacobian = np.zeros((PER_LINK, PER_LINK))
    jacobian[0, 0] = mass
    jacobian[1:4, 0] = phi[1:4]
    jacobian[_AXES, _AXES] = mass
    jacobian[4:, 0] = _TO_INERTIA @ (mass * outer)
    jacobian[4:, 1:4] = _TO_INERTIA @ centre_jacobian
    jacobian[4:, 4:] = _TO_INERTIA @ moment_jacobian
    return phi, jacobian


def _quantities(x: Array) -> tuple[Array, Array]:
    """(m, c, inertia about c) and its derivative by x."""
    mass = float(np.exp(x[0]))
    second_moments, moment_jacobian = _moments(x)
    out = np.concatenate([[mass], x[1:4], _TO_INERTIA @ second_moments])
    jacobian = np.zeros((PER_LINK, PER_LINK))
    jacobian[0, 0] = mass
    jacobian[1:4, 1:4] = np.eye(3)
    jacobian[4:, 4:] = _TO_INERTIA @ moment_jacobian
    return out, jacobian
