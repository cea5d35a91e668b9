"""The ten inertial parameters of a link, in the order m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.

h = m c is the first moment, I the inertia tensor about the link frame's origin; off-diagonal
entries are tensor elements (Ixy = -integral of x y dm).
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float

# Position of (row, column) of the tensor in the six inertia entries.
_TENSOR = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])


def inertia_tensor(parameters: Float[Array, "*links 10"]) -> Float[Array, "*links 3 3"]:
    """Inertia tensor about the frame origin."""
    return np.asarray(parameters)[..., 4:][..., _TENSOR]


def tensor_entries(tensor: Float[Array, "*links 3 3"]) -> Float[Array, "*links 6"]:
    """Entries Ixx, Ixy, Iyy, Ixz, Iyz, Izz of a symmetric tensor."""
    t = np.asarray(tensor)
    return np.stack(
        [t[..., 0, 0], t[..., 0, 1], t[..., 1, 1], t[..., 0, 2], t[..., 1, 2], t[..., 2, 2]], -1
    )


def from_centre_of_mass(
    mass: float, centre: Float[Array, " 3"], tensor: Float[Array, "3 3"]
) -> Float[Array, " 10"]:
    """Parameters from mass, centre of mass and the tensor about the centre of mass.

    I = I_C + m (c'c 1 - c c').
    """
    c = np.asarray(centre, float)
    about_origin = np.asarray(tensor, float) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.concatenate([[mass], mass * c, tensor_entries(about_origin)])


def to_centre_of_mass(
    parameters: Float[Array, " 10"],
) -> tuple[float, Float[Array, " 3"], Float[Array, "3 3"]]:
    """Mass, centre of mass and tensor about it; the centre of a massless link is the origin."""
    m = float(parameters[0])
    c = np.asarray(parameters[1:4]) / m if m != 0.0 else np.zeros(3)
    tensor = inertia_tensor(parameters) - m * (c @ c * np.eye(3) - np.outer(c, c))
    return m, c, tensor


def pseudo_inertia(parameters: Float[Array, "*links 10"]) -> Float[Array, "*links 4 4"]:
    """Pseudo-inertia P = [[tr(I)/2 1 - I, h], [h', m]]; a link is consistent iff P >= 0."""
    p = np.asarray(parameters)
    tensor = inertia_tensor(p)
    half_trace = 0.5 * np.trace(tensor, axis1=-2, axis2=-1)
    out = np.empty((*p.shape[:-1], 4, 4))
    out[..., :3, :3] = half_trace[..., None, None] * np.eye(3) - tensor
    out[..., :3, 3] = out[..., 3, :3] = p[..., 1:4]
    out[..., 3, 3] = p[..., 0]
    return out


def from_pseudo_inertia(pseudo: Float[Array, "*links 4 4"]) -> Float[Array, "*links 10"]:
    """Inverse of `pseudo_inertia`: I = tr(S) 1 - S with S the upper-left block."""
    s = pseudo[..., :3, :3]
    tensor = np.trace(s, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - s
    return np.concatenate(
        [pseudo[..., 3, 3][..., None], pseudo[..., :3, 3], tensor_entries(tensor)], -1
    )


def transform_parameters(
    parameters: Float[Array, " 10"], placement: Float[Array, "4 4"]
) -> Float[Array, " 10"]:
    """Inertial parameters in another frame: `placement` is the old frame in the new one.

    Pseudo-inertia transforms as T P T'.
    """
    return from_pseudo_inertia(placement @ pseudo_inertia(parameters) @ placement.T)
