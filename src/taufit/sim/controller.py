"""The robot's own controller: feed-forward by its model, and a stiff but not rigid servo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.robot import Robot
from taufit.sim.effects import PerJoint, per_joint


@dataclass(frozen=True, slots=True, eq=False)
class Controller:
    """Computed torque plus PD with a little integral action, at 1 kHz.

        tau = model(q_r, v_r, a_r) + feedforward friction(v_r)
              + M w^2 (q_r - q) + 2 z M w (v_r - v) + integral,    w = 2 pi bandwidth_hz

    with M the joint's effective inertia and r the command, `delay` seconds ago.

    Attributes:
        bandwidth_hz: Of the position loop, one for all joints or one each.
        damping: z.
        integral_hz: Corner of the integral action; 0 for none.
        delay: From command to reference [s].
        friction: Share of the true friction it compensates.
        model: The arm it assumes; the true one (without payload) where None. It knows gravity
            compensators if this robot has some.
        knows_payload: Whether its model carries the payload.
    """

    bandwidth_hz: PerJoint = 12.0
    damping: float = 1.0
    integral_hz: float = 0.3
    delay: float = 0.012
    friction: float = 0.7
    model: Robot | None = None
    knows_payload: bool = False

    def gains(
        self, mass: Float[Array, "n j j"], share: float = 0.5
    ) -> tuple[Float[Array, " j"], Float[Array, " j"], Float[Array, " j"]]:
        """Stiffness, damping and integral gain per joint, from inertia matrices on the way.

        `share` of the way is lighter for the joint than what it is tuned for: half, or less where
        the arm comes through poses in which a joint feels much less than usual.
        """
        effective = np.quantile(effective_inertia(mass), share, axis=0)
        w = 2.0 * np.pi * per_joint(self.bandwidth_hz, mass.shape[-1], "bandwidth_hz")
        stiffness = effective * w**2
        return (
            stiffness,
            2.0 * self.damping * effective * w,
            stiffness * 2.0 * np.pi * self.integral_hz,
        )


def effective_inertia(mass: Float[Array, "n j j"]) -> Float[Array, "n j"]:
    """What a joint's motor feels when the others are free: 1 / (M^-1)_ii."""
    return 1.0 / np.diagonal(np.linalg.inv(mass), axis1=-2, axis2=-1)


def growth(
    mass: Float[Array, "n j j"],
    stiffness: Float[Array, "j j"],
    damping: Float[Array, "j j"],
    step: float,
) -> float:
    """The factor by which an error grows from step to step in the worst pose.

    The sampled loop about a pose maps (q, v, a) of one step to the next linearly; the factor is
    its largest eigenvalue. The loop is stable where it is at most 1.
    """
    inverse = np.linalg.inv(mass)
    one = np.broadcast_to(np.eye(mass.shape[-1]), mass.shape)
    sprung, damped = inverse @ stiffness, inverse @ damping
    acceleration = [-sprung, -damped, -0.5 * step * damped]
    velocity = [step * acceleration[0], one + step * acceleration[1], step * acceleration[2]]
    position = [one + step * velocity[0], step * velocity[1], step * velocity[2]]
    loop = np.block([position, velocity, acceleration])
    # Eigenvalues are known to rounding only.
    worst = float(np.abs(np.linalg.eigvals(loop)).max())
    return 1.0 if abs(worst - 1.0) < 1e-9 else worst


def check_stable(
    mass: Float[Array, "n j j"],
    stiffness: Float[Array, "j j"],
    damping: Float[Array, "j j"],
    step: float,
) -> None:
    """Refuse gains with which the sampled loop would run away."""
    worst = growth(mass, stiffness, damping, step)
    if worst > 1.0:
        raise InfeasibleError(
            f"these controller gains are unstable: errors grow by {worst:.3g} per step of "
            f"{step * 1e3:.3g} ms. Lower the bandwidth or the damping."
        )
