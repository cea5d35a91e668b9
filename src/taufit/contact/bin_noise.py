"""What noise a cell has: by the joints' friction states, the arm's pose, and beyond the training.

White noise, wandering and velocity noise of each joint are those of its friction state. Velocity
noise s of the joints acts through the inertia of the pose, M(q) diag(s) / h. Accelerations beyond
the training's bring friction and flexibility that no training has shown: variances grow by them at
the joint that accelerates, at joints that slide fast by what its inertia carries there, |M_ij| a_j,
and at all others as much as where it happens: arms that stop shake.
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

# Friction that an acceleration beyond the training's may bring, in friction levels.
_EXCESS_FRICTION = 0.3
# ... and what of it reaches other joints, in inertial torques of the training's acceleration.
_EXCESS_INERTIA = 0.5
# A joint's own friction jumps by this much, in friction levels, by state.
_FRICTION_JUMPS = (0.06, 0.06, 0.1, 0.3, 0.01)
# Inertia is that of a pose as long as no joint is further from it [rad or m].
_POSE_TOLERANCE = 0.02


class BinNoise:
    """Makes a `Cell` of a step of external torque.

    Args:
        external_torque: Where external torque comes from.
        noise: Residuals by friction state.
        friction: Level of each joint's friction [N m].
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
        # In the order of a cell's rows; velocity noise stands where the residual will.
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
        """The arm's inertia is another one from now on."""
        self._pose = None
        if self._is_compiled:
            self._loop.forget()

    def time_bin(
        self, block: ExternalTorqueBlock, i: int, *, unobservable: bool = False
    ) -> TimeBin:
        """Of one step.

        Args:
            block: Steps.
            i: Which of them.
            unobservable: Whether nothing can be said about the outside.
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
            return TimeBin(rows, velocity, observable)
        return self._numpy_bin(block, i, observable)

    def _numpy_bin(self, block: ExternalTorqueBlock, i: int, observable: Array) -> TimeBin:
        """The same as the kernel, in NumPy."""
        state = block.state[i]
        if (state != FAST).all() and (state == TURNING).any():
            # An arm that comes to a stop or turns as a whole shakes all its joints.
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
        return TimeBin(rows, velocity, observable)

    def _mass_matrix_at(self, position: Float[Array, " j"]) -> Float[Array, "j j"]:
        """Of the arm here or nearby."""
        if self._pose is None or np.abs(position - self._pose).max() > _POSE_TOLERANCE:
            self._pose = position.copy()
            self._mass_matrix = self._external_torque.mass_matrix(position[None])[0]
        return self._mass_matrix
