"""Limit scaling: map any coefficients to coefficients of a motion within the joint limits.

All limits on position, speed, acceleration and jerk are linear in a joint's coefficients c and hold
at c = 0 (standing at the centre), so the feasible set is star-shaped about 0. With

    g(c) = maximum of  value(t) / limit  over times and limits

the map c -> c (1 + g^8)^(-1/8) shrinks any c to g < 1 and hardly changes small ones. The maximum is
smoothed (a p-norm), so the map has an exact derivative.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.robot import JointLimits

_EXPONENT = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class MotionLimits:
    """Joint limits relative to a centre pose. Infinite where there is no limit.

    Attributes:
        centre: Centre pose [rad or m].
        below, above: Free travel of each joint to either side [rad or m].
        velocity, acceleration, jerk: Maximum magnitudes.
    """

    centre: Float[Array, " j"]
    below: Float[Array, " j"]
    above: Float[Array, " j"]
    velocity: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    jerk: Float[Array, " j"]

    @classmethod
    def of(
        cls,
        limits: JointLimits,
        centre: Float[Array, " j"],
        jerk: Float[Array, " j"] | float = np.inf,
    ) -> MotionLimits:
        """Limits about a centre pose; InfeasibleError naming a joint without room."""
        joints = len(centre)
        below, above = centre - limits.lower, limits.upper - centre
        for i in range(joints):
            joint = f"joint {i + 1}"
            if not limits.lower[i] < limits.upper[i]:
                raise InfeasibleError(
                    f"{joint}: the lower position limit {limits.lower[i]:.4g} is not below the "
                    f"upper one {limits.upper[i]:.4g}."
                )
            if not (below[i] > 0 and above[i] > 0):
                raise InfeasibleError(
                    f"{joint}: the start pose {centre[i]:.4g} is not inside its position limits "
                    f"[{limits.lower[i]:.4g}, {limits.upper[i]:.4g}]."
                )
            for name in ("velocity", "acceleration"):
                value = getattr(limits, name)[i]
                if not value > 0:
                    raise InfeasibleError(f"{joint}: the {name} limit {value:.4g} is not positive.")
        bound = np.broadcast_to(np.asarray(jerk, float), (joints,))
        if not np.all(bound > 0):
            raise InfeasibleError("a jerk limit is not positive.")
        return cls(centre, below, above, limits.velocity, limits.acceleration, bound)

    def ratios(self, states: Float[Array, "4 n j"]) -> Float[Array, "4 n j"]:
        """Signed value over limit of displacement from the centre, speed, acceleration, jerk."""
        travel = np.where(states[0] > 0, self.above, self.below)
        return np.stack(
            [
                states[0] / travel,
                states[1] / self.velocity,
                states[2] / self.acceleration,
                states[3] / self.jerk,
            ]
        )


@dataclass(frozen=True, slots=True, eq=False)
class LimitScaling:
    """Map from free to feasible coefficients, on a time grid.

    Attributes:
        envelope: The limits.
        basis: Position, velocity, acceleration, jerk per unit coefficient, on the grid.
        norm_order: Order of the norm that approximates the maximum. Larger values use more of the
            limits and are less smooth.
    """

    envelope: MotionLimits
    basis: Float[Array, "4 n m"]
    norm_order: float = 60.0

    def apply(
        self, free: Float[Array, "j m"]
    ) -> tuple[Float[Array, "j m"], tuple[Float[Array, "j m"], Float[Array, " j"], Array, Array]]:
        """Feasible coefficients, and intermediate results for `pull`."""
        states = self.basis @ free.T
        ratios = self.envelope.ratios(states)
        size = np.abs(ratios)
        peak = np.maximum(size.max(axis=(0, 1)), 1e-12)
        powers = (size / peak) ** (self.norm_order - 1.0)
        total = np.sum(powers * (size / peak), axis=(0, 1))
        load = peak * total ** (1.0 / self.norm_order)
        shrink = (1.0 + load**_EXPONENT) ** (-1.0 / _EXPONENT)
        # d gauge / d ratio = (ratio/gauge)^(P-1) sign, written without overflow.
        slope = powers * np.sign(ratios) * total ** (1.0 / self.norm_order - 1.0)
        travel = np.where(states[0] > 0, self.envelope.above, self.envelope.below)
        slope[0] /= travel
        slope[1] /= self.envelope.velocity
        slope[2] /= self.envelope.acceleration
        slope[3] /= self.envelope.jerk
        gradient = slope.reshape(-1, slope.shape[2]).T @ self.basis.reshape(-1, self.basis.shape[2])
        return shrink[:, None] * free, (free, shrink, load, gradient)

    def pull(
        self,
        gradient: Float[Array, "j m"],
        memory: tuple[Float[Array, "j m"], Float[Array, " j"], Array, Array],
    ) -> Float[Array, "j m"]:
        """Gradient with respect to the free coefficients (chain rule)."""
        free, shrink, load, load_gradient = memory
        shrink_slope = -(shrink ** (_EXPONENT + 1.0)) * load ** (_EXPONENT - 1.0)
        directional = np.sum(gradient * free, axis=1) * shrink_slope
        return shrink[:, None] * gradient + directional[:, None] * load_gradient
