"""What noise a cell has: by the joints' friction states, the arm's pose, and beyond the training.

White noise, wandering and velocity noise of each joint are those of its friction state. Velocity
noise s of the joints acts through the inertia of the pose, M(q) diag(s) / h. Accelerations beyond
the training's bring friction and flexibility that no training has shown: variances grow by them at
the joint that accelerates, at joints that slide fast by what its inertia carries there, |M_ij| a_j,
and at all others as much as where it happens: arms that stop shake.
"""

from __future__ import annotations

import numpy as np

from taufit.contact.change_test import CLIP, CLIP_AT_REST, TimeBin
from taufit.contact.external_torque import ExternalTorque, ExternalTorqueBlock
from taufit.core.arrays import Array, Float
from taufit.model.noise_by_state import NoiseByState
from taufit.terms.friction.states import FAST, REST, SLOW, STATES, TURNING

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Friction that an acceleration beyond the training's may bring, in friction levels.
_ROUGH = 0.3
# ... and what of it reaches other joints, in inertial torques of the training's acceleration.
_SHAKES = 0.5
# A joint's own friction jumps by this much, in friction levels, by state.
_JUMPS = (0.06, 0.06, 0.1, 0.3, 0.01)
# Inertia is that of a pose as long as no joint is further from it [rad or m].
_SAME_POSE = 0.02


class BinNoise:
    """Makes a `Cell` of a step of external torque.

    Args:
        felt: Where external torque comes from.
        noise: Residuals by friction state.
        friction: Level of each joint's friction [N m].
    """

    def __init__(
        self, felt: ExternalTorque, noise: NoiseByState, friction: Float[Array, " j"]
    ) -> None:
        self._felt, self._every = felt, np.arange(felt.joints)
        clip = np.full(len(STATES), CLIP)
        clip[REST] = CLIP_AT_REST
        # In the order of a cell's rows; velocity noise stands where the residual will.
        self._tables = np.stack(
            [
                noise.velocity / felt.step,
                noise.white**2,
                noise.walk**2 * felt.step,
                (np.array(_JUMPS)[:, None] * friction) ** 2,
                noise.level,
                np.repeat(clip[:, None], felt.joints, axis=1),
            ]
        )
        self._rough = 2.0 * np.minimum(noise.level[TURNING], _ROUGH * friction)
        fastest = felt.fastest
        self._shaking = np.where(np.isfinite(fastest), _SHAKES * fastest, 0.0)
        self._posed: Array | None = None
        self._compiled = _kernel is not None and felt.compiled
        if self._compiled:
            self._loop = _kernel.CellNoise(
                self._tables, self._rough, self._shaking, felt.turning, _SAME_POSE
            )

    def forget(self) -> None:
        """The arm's inertia is another one from now on."""
        self._posed = None
        if self._compiled:
            self._loop.forget()

    def cell(self, felt: ExternalTorqueBlock, i: int, *, blind: bool = False) -> TimeBin:
        """Of one step.

        Args:
            felt: Steps.
            i: Which of them.
            blind: Whether nothing can be said about the outside.
        """
        joints = len(self._every)
        sure = np.zeros(joints, bool) if blind else felt.sure[i]
        if self._compiled:
            rows, velocity = np.empty((6, joints)), np.empty((joints, joints))
            at, torque, state = felt.position[i], felt.torque[i], felt.state[i]
            kernel = self._felt.engine.kernel
            self._loop.fill(kernel, at, torque, state, felt.jolts[i], rows, velocity)
            return TimeBin(rows, velocity, sure)
        return self._filled(felt, i, sure)

    def _filled(self, felt: ExternalTorqueBlock, i: int, sure: Array) -> TimeBin:
        """The same as the kernel, in NumPy."""
        state = felt.state[i]
        if (state != FAST).all() and (state == TURNING).any():
            # An arm that comes to a stop or turns as a whole shakes all its joints.
            state = np.where(state == SLOW, TURNING, state)
        rows = np.ascontiguousarray(self._tables[:, state, self._every])
        mass = self._inertia(felt.position[i])
        velocity = mass * rows[0]
        rows[0] = felt.torque[i]
        jolts = felt.jolts[i]
        reach = mass * self._shaking * jolts
        np.fill_diagonal(reach, self._rough * np.where(state == FAST, jolts, jolts.max()))
        rough = np.sum(reach**2, axis=1)
        rows[1] += 4.0 * rough
        rows[2] += rough
        return TimeBin(rows, velocity, sure)

    def _inertia(self, position: Float[Array, " j"]) -> Float[Array, "j j"]:
        """Of the arm here or nearby."""
        if self._posed is None or np.abs(position - self._posed).max() > _SAME_POSE:
            self._posed = position.copy()
            self._mass = self._felt.inertia(position[None])[0]
        return self._mass
