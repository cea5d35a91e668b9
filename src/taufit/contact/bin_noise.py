"""Noise of a time bin by friction regime, pose, and acceleration outside the training range.

White noise, random walk and velocity noise of each joint are those of its friction regime. Velocity
noise s acts through the mass matrix, M(q) diag(s) / h. Accelerations above the training range bring
friction and flexibility not in the training data: variances grow at the accelerating joint, at fast
joints by its inertial torque there, |M_ij| a_j, and at all others as much as at the joint itself,
since a stop excites vibration of the whole robot.
"""

from __future__ import annotations

import numpy as np

from taufit.contact.change_test import INNOVATION_LIMIT, INNOVATION_LIMIT_AT_REST, TimeBin
from taufit.contact.external_torque import ExternalTorque, ExternalTorqueBlock
from taufit.core.arrays import Array, Float
from taufit.model.noise_by_state import NoiseByState
from taufit.terms.friction.states import FAST, REST, SLOW, STATES, TURNING

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Friction due to acceleration above the training range, in friction levels.
_EXCESS_FRICTION = 0.3
# Its effect on other joints, relative to the inertial torque of the training acceleration.
_EXCESS_INERTIA = 0.5
# Jumps of a joint's friction by regime, in friction levels.
_FRICTION_JUMPS = (0.06, 0.06, 0.1, 0.3, 0.01)
# Largest joint displacement for which the mass matrix is reused [rad or m].
_POSE_TOLERANCE = 0.02


class BinNoise:
    """Builds a `TimeBin` from external torque.

    Args:
        external_torque: Source of the external torque.
        noise: Residual noise by friction regime.
        friction: Friction level of each joint [N m].
    """

    def __init__(
        self, external_torque: ExternalTorque, noise: NoiseByState, friction: Float[Array, " j"]
    ) -> None:
        self._external_torque, self._joint_index = (
            external_torque,
            np.arange(external_torque.joints),
        )
        limits = np.full(len(STATES), INNOVATION_LIMIT)
        limits[REST] = INNOVATION_LIMIT_AT_REST
        # Order of the rows of a bin; velocity noise takes the place of the residual.
        self._tables = np.stack(
            [
                noise.velocity / external_torque.step,
                noise.white**2,
                noise.walk**2 * external_torque.step,
                (np.array(_FRICTION_JUMPS)[:, None] * friction) ** 2,
                noise.level,
                np.repeat(limits[:, None], external_torque.joints, axis=1),
            ]
        )
        self._excess_friction = 2.0 * np.minimum(noise.level[TURNING], _EXCESS_FRICTION * friction)
        max_acceleration = external_torque.max_acceleration
        self._excess_inertia = np.where(
            np.isfinite(max_acceleration), _EXCESS_INERTIA * max_acceleration, 0.0
        )
        self._pose: Array | None = None
        self._is_compiled = _kernel is not None and external_torque.is_compiled
        if self._is_compiled:
            self._loop = _kernel.CellNoise(
                self._tables,
                self._excess_friction,
                self._excess_inertia,
                external_torque.rotor_matrix,
                _POSE_TOLERANCE,
            )

    def clear_mass_matrix(self) -> None:
        """Drop the stored mass matrix after a change of payload."""
        self._pose = None
        if self._is_compiled:
            self._loop.forget()

    def time_bin(
        self, block: ExternalTorqueBlock, i: int, *, unobservable: bool = False
    ) -> TimeBin:
        """Time bin with its noise.

        Args:
            block: External torque.
            i: Index of the bin in the block.
            unobservable: Whether no joint is observable.
        """
        joints = len(self._joint_index)
        observable = np.zeros(joints, bool) if unobservable else block.observable[i]
        if self._is_compiled:
            rows, velocity = np.empty((6, joints)), np.empty((joints, joints))
            position, torque, state = block.position[i], block.torque[i], block.state[i]
            kernel = self._external_torque.engine.kernel
            self._loop.fill(
                kernel, position, torque, state, block.acceleration_excess[i], rows, velocity
            )
        else:
            rows, velocity = self._numpy_bin(block, i)
        rows[4] = np.hypot(rows[4], block.drift_std[i])
        return TimeBin(rows, velocity, observable)

    def _numpy_bin(
        self, block: ExternalTorqueBlock, i: int
    ) -> tuple[Float[Array, "6 j"], Float[Array, "j j"]]:
        """NumPy equivalent of the kernel."""
        state = block.state[i]
        if (state != FAST).all():
            # A robot that creeps may stop or reverse as a whole: vibration of all joints.
            state = np.where(state == SLOW, TURNING, state)
        rows = np.ascontiguousarray(self._tables[:, state, self._joint_index])
        mass_matrix = self._mass_matrix_at(block.position[i])
        velocity = mass_matrix * rows[0]
        rows[0] = block.torque[i]
        excess = block.acceleration_excess[i]
        coupling = mass_matrix * self._excess_inertia * excess
        np.fill_diagonal(
            coupling, self._excess_friction * np.where(state == FAST, excess, excess.max())
        )
        excess_variance = np.sum(coupling**2, axis=1)
        rows[1] += 4.0 * excess_variance
        rows[2] += excess_variance
        return rows, velocity

    def _mass_matrix_at(self, position: Float[Array, " j"]) -> Float[Array, "j j"]:
        """Mass matrix at this pose or close to it."""
        if self._pose is None or np.abs(position - self._pose).max() > _POSE_TOLERANCE:
            self._pose = position.copy()
            self._mass_matrix = self._external_torque.mass_matrix(position[None])[0]
        return self._mass_matrix
