"""Maximum a posteriori body: information on ten parameters -> physically consistent body.

A body is x = (log m, c, L): mass, centre of mass, and L lower triangular with L L' the second
moments of mass about that centre. Its ten parameters phi(x) are physically consistent for every x.
The maximum a posteriori x under

    (phi(x) - phi_0)' A (phi(x) - phi_0)  +  prior on c and L

is found by Gauss-Newton (compiled, or `body_search`); the curvature there gives the covariance
(Laplace approximation).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.gaussian import inverse_at_unit_diagonal
from taufit.payload.filter import body_search
from taufit.payload.settings import PayloadSettings
from taufit.robot.inertia import transform_parameters

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Default density of payloads [kg/m^3]; standard deviations of log lengths, without and with box or
# density given.
TYPICAL_DENSITY = 3500.0
_LENGTH_STD = 0.7
_DESCRIBED_LENGTH_STD = 0.35
# Size of a payload at a stated place [m], and rounds that fit its moments to its mass.
_SIZE, _MASS_ROUNDS = 0.1, 4
# Diagonal entries of L; entries of a symmetric 3 x 3 matrix in the order xx, xy, yy, xz, yz, zz.
_DIAGONAL = np.array([0, 2, 5])
TENSOR_INDEX = (np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 0, 1, 2]))


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A body with covariance.

    Attributes:
        parameters: Ten inertial parameters in the last link's frame.
        covariance: Covariance of m, c and the six entries of the inertia tensor about c.
        mass, centre, inertia: Mass [kg], centre [m], inertia about the centre [kg m^2].
        prior_share: Fraction of the information on the inertia that is prior, 0 to 1.
        x: The body as (log m, c, L), c from its stated place; initial value of the next evaluation.
    """

    parameters: Float[Array, " 10"]
    covariance: Float[Array, "10 10"]
    mass: float
    centre: Float[Array, " 3"]
    inertia: Float[Array, "3 3"]
    prior_share: float
    x: Float[Array, " 10"]


def most_probable_body(
    information: Float[Array, "10 10"],
    target: Float[Array, " 10"],
    settings: PayloadSettings,
    start: Float[Array, " 10"] | None = None,
) -> Body:
    """Maximum a posteriori body under information A and target A phi_0.

    Args:
        information: A.
        target: A phi_0.
        settings: Prior: bounding box, density, place and standard deviation of the centre.
        start: x of the previous evaluation, or None.
    """
    if settings.place is not None:
        shift = place_shift(settings.place)
        body = most_probable_body(
            shift.T @ information @ shift, shift.T @ target, replace(settings, place=None), start
        )
        return replace(
            body, parameters=shift @ body.parameters, centre=body.centre + settings.place
        )
    x = _initial_body(information, target, settings) if start is None else start.copy()
    is_described = settings.box is not None or settings.density is not None
    phi, quantities, covariance = np.empty(10), np.empty(10), np.empty((10, 10))
    minimise = body_search.minimise_cost if _kernel is None else _kernel.most_probable_body
    share = minimise(
        np.ascontiguousarray(information),
        np.ascontiguousarray(target),
        np.full(3, np.nan) if settings.box is None else np.array(settings.box, float),
        settings.density or TYPICAL_DENSITY,
        _DESCRIBED_LENGTH_STD if is_described else _LENGTH_STD,
        settings.com_std,
        x,
        phi,
        quantities,
        covariance,
    )
    if not share >= 0.0:
        raise TaufitError(
            "what the samples say about the payload contradicts itself: its information is not "
            "that of a minimum. Check the recording for values that are not measurements."
        )
    tensor = np.empty((3, 3))
    tensor[TENSOR_INDEX] = quantities[4:]
    tensor[TENSOR_INDEX[::-1]] = quantities[4:]
    return Body(phi, covariance, float(quantities[0]), quantities[1:4], tensor, share, x)


def place_shift(place: tuple[float, float, float]) -> Float[Array, "10 10"]:
    """Parameters in the last link's frame of parameters in a parallel frame at a place."""
    pose = np.eye(4)
    pose[:3, 3] = place
    return np.stack([transform_parameters(unit, pose) for unit in np.eye(10)], axis=1)


def mass_at_place(
    information: Float[Array, "10 10"], target: Float[Array, " 10"], settings: PayloadSettings
) -> tuple[float, float]:
    """Mass and its standard deviation where the place is stated, possibly negative [kg].

    The moments about the place are those of the mass within `com_std`, and of a size of 10 cm.
    """
    assert settings.place is not None
    shift = place_shift(settings.place)
    inner, right = shift.T @ information @ shift, shift.T @ target
    size, mass, std = settings.light_mass, 0.0, 0.0
    for _ in range(_MASS_ROUNDS):
        first, second = size * settings.com_std, size * (settings.com_std**2 + _SIZE**2)
        prior = np.array([1e-4, *[first**-2] * 3, *[second**-2] * 6])
        covariance = inverse_at_unit_diagonal(inner + np.diag(prior))
        mass, std = float(covariance[0] @ right), float(np.sqrt(covariance[0, 0]))
        size = max(abs(mass), std)
    return mass, std


def _initial_body(information: Array, target: Array, settings: PayloadSettings) -> Array:
    weak = np.diag([1e-4, *[1.0] * 3, *[10.0] * 6])
    linear = np.linalg.solve(information + weak, target)
    mass = max(float(linear[0]), 1e-2)
    centre = np.clip(linear[1:4] / mass, -1.0, 1.0)
    return np.concatenate([[np.log(mass)], centre, _prior_factor(mass, settings)])


def _prior_factor(mass: float, settings: PayloadSettings) -> Array:
    """L of the prior shape: logarithm of its diagonal, zeros off the diagonal."""
    std = _box_edges(mass, settings) / np.sqrt(12.0)
    out = np.zeros(6)
    out[_DIAGONAL] = np.log(np.sqrt(mass) * std)
    return out


def _box_edges(mass: float, settings: PayloadSettings) -> Array:
    """Edges of a solid box: as given, or of a cube with the density."""
    if settings.box is not None:
        return np.array(settings.box)
    return np.full(3, (mass / (settings.density or TYPICAL_DENSITY)) ** (1.0 / 3.0))
