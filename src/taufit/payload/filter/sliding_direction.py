"""How the motors slide, chunk by chunk: their direction, and what is left of an unknown start."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms import Term, has_memory
from taufit.terms.friction.presliding import dahl_states, split_at_reversal

# Displacements over which a break-away fades where the friction model has no memory of its own
# [rad or m], and how much of the friction level it may be.
BREAKAWAY_WIDTHS = (0.003, 0.03, 0.3)
BREAKAWAY_SHARES = (0.3, 0.15, 0.05)


def fading_widths(friction: Term | None) -> Float[Array, " w"]:
    """Displacements over which what happened before the first sample fades."""
    return np.array(
        friction.memory if friction is not None and has_memory(friction) else BREAKAWAY_WIDTHS
    )


class SlidingDirection:
    """Direction of sliding and fading starts of consecutive chunks of motion.

    Whatever state z0 the elements of a motor had before the first sample, its effect on them fades
    with the path X travelled since, whichever the direction:

        z_k(t) = z_k(t; z0 = 0) + z0_k exp(-X(t) / w_k).

    With a prior on z0 the last factors say how little the first moments of a motion are worth.
    """

    def __init__(self, friction: Term | None, joints: int) -> None:
        self.has_memory = has_memory(friction)
        self.widths = fading_widths(friction)
        self.joints = joints
        self.clear()

    def clear(self) -> None:
        """Forget the path."""
        self._remaining = np.ones((self.joints, len(self.widths)))
        self._states: list[Float[Array, " 1"] | None] = [None] * self.joints
        self._last_travel: Float[Array, " j"] | None = None

    def __call__(
        self, velocity: Float[Array, "n j"], step: float
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j w"]]:
        """Direction of sliding in [-1, 1], and what is left of each z0, per motor.

        Args:
            velocity: Of the motors.
            step: Between two samples [s].
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
        """sign(v), or the quickest element's state where friction remembers its path."""
        if not self.has_memory:
            return np.sign(velocity)
        out = np.empty_like(velocity)
        for j in range(self.joints):
            states, self._states[j] = dahl_states(
                travel[:, j], (float(self.widths[0]),), float(last[j]), self._states[j]
            )
            out[:, j] = states[:, 0]
        return out
