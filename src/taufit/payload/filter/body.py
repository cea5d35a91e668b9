"""The read-out: information on ten parameters -> a body that can exist, with its covariance.

A body is x = (log m, c, L): mass, centre of mass, and L lower triangular with L L' the second
moments of mass about that centre. Its ten parameters phi(x) are physically possible for every x.
The most probable x under

    (phi(x) - phi_0)' A (phi(x) - phi_0)  +  prior on c and L

is found by Gauss-Newton (compiled, or as in `body_search`); the curvature there gives the
covariance (Laplace).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.payload.filter import body_search
from taufit.payload.settings import PayloadSettings

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Density of what grippers carry where the user does not say [kg/m^3], and spread of log lengths.
TYPICAL_DENSITY = 3500.0
_LENGTH_SPREAD = 0.7
_KNOWN_SPREAD = 0.35
# Entries of L on its diagonal, and of a symmetric 3 x 3 matrix in the order xx, xy, yy, xz, yz, zz.
_DIAGONAL = np.array([0, 2, 5])
_SIX = (np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 0, 1, 2]))


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
    known = settings.box is not None or settings.density is not None
    phi, described, covariance = np.empty(10), np.empty(10), np.empty((10, 10))
    search = body_search.search if _kernel is None else _kernel.most_probable_body
    share = search(
        np.ascontiguousarray(information),
        np.ascontiguousarray(target),
        np.full(3, np.nan) if settings.box is None else np.array(settings.box, float),
        settings.density or TYPICAL_DENSITY,
        _KNOWN_SPREAD if known else _LENGTH_SPREAD,
        settings.com_spread,
        x,
        phi,
        described,
        covariance,
    )
    if not share >= 0.0:
        raise TaufitError(
            "what the samples say about the payload contradicts itself: its information is not "
            "that of a minimum. Check the recording for values that are not measurements."
        )
    tensor = np.empty((3, 3))
    tensor[_SIX] = described[4:]
    tensor[_SIX[::-1]] = described[4:]
    return Body(phi, covariance, float(described[0]), described[1:4], tensor, share, x)


def _start(information: Array, target: Array, settings: PayloadSettings) -> Array:
    weak = np.diag([1e-4, *[1.0] * 3, *[10.0] * 6])
    linear = np.linalg.solve(information + weak, target)
    mass = max(float(linear[0]), 1e-2)
    centre = np.clip(linear[1:4] / mass, -1.0, 1.0)
    return np.concatenate([[np.log(mass)], centre, _prior_lower(mass, settings)])


def _prior_lower(mass: float, settings: PayloadSettings) -> Array:
    """L of the prior shape: log of its diagonal, zeros beside it."""
    std = _lengths(mass, settings) / np.sqrt(12.0)
    out = np.zeros(6)
    out[_DIAGONAL] = np.log(np.sqrt(mass) * std)
    return out


def _lengths(mass: float, settings: PayloadSettings) -> Array:
    """Edges of a solid box: as given, or a cube of the density."""
    if settings.box is not None:
        return np.array(settings.box)
    return np.full(3, (mass / (settings.density or TYPICAL_DENSITY)) ** (1.0 / 3.0))
