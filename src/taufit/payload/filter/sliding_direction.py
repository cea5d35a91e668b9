"""Sliding direction of the motors and fading of their unknown initial friction state."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms import Term, has_memory
from taufit.terms.friction.presliding import dahl_states, split_at_reversal

# Displacements over which breakaway friction fades, for friction models without memory [rad or m],
# and its standard deviations relative to the friction level.
BREAKAWAY_WIDTHS = (0.003, 0.03, 0.3)
BREAKAWAY_SHARES = (0.3, 0.15, 0.05)


def initial_state_widths(friction: Term | None) -> Float[Array, " w"]:
    """Displacements over which the initial friction state fades [rad or m]."""
    return np.array(
        friction.memory if friction is not None and has_memory(friction) else BREAKAWAY_WIDTHS
    )


class SlidingDirection:
    """Sliding direction and fading initial state of consecutive segments of motion.

    The effect of an initial state z0 of a friction element fades with the path X travelled since,
    regardless of direction:

        z_k(t) = z_k(t; z0 = 0) + z0_k exp(-X(t) / w_k).

    With a prior on z0, the exponentials reduce the information in the first part of a motion.
    """

    def __init__(self, friction: Term | None, joints: int) -> None:
        self.has_memory = has_memory(friction)
        self.widths = initial_state_widths(friction)
        self.joints = joints
        self.clear()

    def clear(self) -> None:
        """Reset the path."""
        self._remaining = np.ones((self.joints, len(self.widths)))
        self._states: list[Float[Array, " 1"] | None] = [None] * self.joints
        self._last_travel: Float[Array, " j"] | None = None

    def __call__(
        self, velocity: Float[Array, "n j"], step: float
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j w"]]:
        """Sliding direction in [-1, 1] and remaining fraction of each z0, per motor.

        Args:
            velocity: Motor velocities.
            step: Sampling period [s].
        """
        travel = velocity * step
        last_travel = travel[0] if self._last_travel is None else self._last_travel
        until_reversal, after_reversal, reversals = split_at_reversal(
            np.concatenate([[last_travel], travel[:-1]]), travel
        )
        path = np.abs(until_reversal)
        path[reversals] += np.abs(after_reversal)
        remaining = self._remaining * np.exp(-np.cumsum(path, axis=0)[..., None] / self.widths)
        direction = self._direction(velocity, travel, last_travel)
        self._remaining, self._last_travel = remaining[-1], travel[-1]
        return direction, remaining

    def _direction(
        self, velocity: Float[Array, "n j"], travel: Float[Array, "n j"], last: Float[Array, " j"]
    ) -> Float[Array, "n j"]:
        """sign(v), or the state of the fastest element if friction has memory."""
        if not self.has_memory:
            return np.sign(velocity)
        out = np.empty_like(velocity)
        for j in range(self.joints):
            states, self._states[j] = dahl_states(
                travel[:, j], (float(self.widths[0]),), float(last[j]), self._states[j]
            )
            out[:, j] = states[:, 0]
        return out
