"""Kinetic energy of a robot and effective energy of a collision at the tip, with uncertainty.

    T = 1/2 v' M(q) v,     1/m_u = u' J M^-1 J' u,     E = 1/2 m_u s^2

M is the mass matrix of links and rotors, J the tip's linear Jacobian, s the tip's speed and u its
direction: m_u is the effective mass along u, E the corresponding energy. T and 1/m_u depend on M,
which is linear in the parameters, so with w = M^-1 J' u

    dT = 1/2 v' dM v,     dm_u = m_u^2 w' dM w

and the covariance of the base parameters gives standard deviations.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import engine, jacobian, mass_matrix
from taufit.model.fitted_model import FittedModel, require_fitted

# Tip speed below which its direction is undefined [m/s].
_STANDSTILL_SPEED = 1e-6
# Relative standard deviation of the drive gain, if torque was measured as current.
_GAIN_SCATTER = 0.015
_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class TipEnergy:
    """Energies of a moving robot, state by state.

    Attributes:
        kinetic: Kinetic energy T of links and rotors [J].
        kinetic_std: Standard deviation of T [J].
        speed: Speed of the tip [m/s].
        effective_mass: Effective mass m_u along the tip's velocity [kg]; NaN at standstill.
        effective_mass_std: Standard deviation of m_u [kg].
        effective: Effective energy E [J]; 0 at standstill.
        effective_std: Standard deviation of E [J].
    """

    kinetic: Float[Array, " n"]
    kinetic_std: Float[Array, " n"]
    speed: Float[Array, " n"]
    effective_mass: Float[Array, " n"]
    effective_mass_std: Float[Array, " n"]
    effective: Float[Array, " n"]
    effective_std: Float[Array, " n"]

    def kinetic_interval(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """95 % interval of T."""
        half = NORMAL_95 * self.kinetic_std
        return self.kinetic - half, self.kinetic + half

    def effective_interval(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """95 % interval of E."""
        half = NORMAL_95 * self.effective_std
        return self.effective - half, self.effective + half


def tip_energy(
    model: FittedModel,
    position: Float[Array, "n j"],
    velocity: Float[Array, "n j"],
) -> TipEnergy:
    """Kinetic energy, effective mass and effective energy at the tip.

    A model of link-side torque has no rotors: its energies are those of the links. Standard
    deviations are zero if the model has no covariance.

    Args:
        model: Fitted model.
        position, velocity: Joint positions and velocities.
    """
    require_fitted(model, "give energies")
    parts = [
        _tip_energy_block(model, position[k : k + _BLOCK], velocity[k : k + _BLOCK])
        for k in range(0, len(position), _BLOCK)
    ]
    names = TipEnergy.__slots__
    return TipEnergy(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def mass_matrix_with_rotors(
    model: FittedModel, position: Float[Array, "n j"]
) -> Float[Array, "n j j"]:
    """Mass matrix M(q) of links and rotors at the joints [kg m^2]."""
    matrix = mass_matrix(model.robot, position)
    if not model.layout.has("rotor"):
        return matrix
    rotors = np.diag(model.values[model.layout.block_slice("rotor")])
    coupling = model.columns.coupling
    return matrix + (rotors if coupling is None else coupling.T @ rotors @ coupling)


def _tip_energy_block(
    model: FittedModel, q: Float[Array, "n j"], v: Float[Array, "n j"]
) -> TipEnergy:
    matrix = mass_matrix_with_rotors(model, q)
    kinetic = 0.5 * np.einsum("ni,nij,nj->n", v, matrix, v)
    linear = jacobian(model.robot, q)[:, 3:]
    tip = np.einsum("nij,nj->ni", linear, v)
    speed = np.linalg.norm(tip, axis=1)
    is_moving = speed > _STANDSTILL_SPEED
    direction = np.where(is_moving[:, None], tip / np.where(is_moving, speed, 1.0)[:, None], 0.0)
    joint_direction = np.einsum("nij,ni->nj", linear, direction)
    response = np.linalg.solve(matrix, joint_direction[..., None])[..., 0]
    mobility = np.einsum("nj,nj->n", joint_direction, response)
    mass = np.where(is_moving, 1.0 / np.where(is_moving, mobility, 1.0), np.nan)
    scatter = 0.0 if model.training.conditioning.gain is None else _GAIN_SCATTER
    kinetic_std = np.hypot(0.5 * _quadratic_form_std(model, q, v), scatter * kinetic)
    finite_mass = np.where(is_moving, mass, 0.0)
    mass_std = np.hypot(
        finite_mass**2 * _quadratic_form_std(model, q, response), scatter * finite_mass
    )
    half_square = 0.5 * speed**2
    return TipEnergy(
        kinetic,
        kinetic_std,
        speed,
        mass,
        np.where(is_moving, mass_std, np.nan),
        half_square * finite_mass,
        half_square * mass_std,
    )


def _quadratic_form_std(
    model: FittedModel, q: Float[Array, "n j"], direction: Float[Array, "n j"]
) -> Float[Array, " n"]:
    """Standard deviation of w' M(q) w over the covariance of the base parameters."""
    base = model.training.base
    if base is None:
        return np.zeros(len(q))
    zero = np.zeros_like(q)
    links = engine(model.robot).regressor(q, zero, direction) - engine(model.robot).regressor(
        q, zero, zero
    )
    row = np.zeros((len(q), model.layout.size))
    row[:, model.layout.links] = np.einsum("nj,njp->np", direction, links)
    if model.layout.has("rotor"):
        row[:, model.layout.block_slice("rotor")] = model.columns.at_motors(direction) ** 2
    base_row = row[:, [model.layout.index(name) for name in base.names]]
    return np.asarray(
        np.sqrt(np.maximum(np.einsum("nb,bc,nc->n", base_row, base.covariance, base_row), 0.0))
    )
