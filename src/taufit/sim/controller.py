"""Robot controller: feed-forward by its model, and a position servo of finite stiffness."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
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
        bandwidth_hz: Bandwidth of the position loop [Hz], one for all joints or one each.
        damping: Damping ratio z.
        integral_hz: Corner frequency of the integral action [Hz]; 0 for none.
        delay: Delay from command to reference [s].
        friction: Fraction of the true friction that is compensated.
        model: Robot model of the controller; None: the true one (without payload). Gravity
            compensators are compensated if this robot has some.
        knows_payload: Whether its model includes the payload.
    """

    bandwidth_hz: PerJoint = 12.0
    damping: float = 1.0
    integral_hz: float = 0.3
    delay: float = 0.012
    friction: float = 0.7
    model: Robot | None = None
    knows_payload: bool = False

    def gains(
        self, mass: Float[Array, "n j j"], quantile: float = 0.5
    ) -> tuple[Float[Array, " j"], Float[Array, " j"], Float[Array, " j"]]:
        """Stiffness, damping and integral gain per joint, from mass matrices along the motion.

        Gains are tuned for the quantile `quantile` of the effective inertia along the motion: the
        median, or less where some poses have much smaller inertia.
        """
        inertia = np.quantile(effective_inertia(mass), quantile, axis=0)
        w = 2.0 * np.pi * per_joint(self.bandwidth_hz, mass.shape[-1], "bandwidth_hz")
        stiffness = inertia * w**2
        return (
            stiffness,
            2.0 * self.damping * inertia * w,
            stiffness * 2.0 * np.pi * self.integral_hz,
        )


def effective_inertia(mass: Float[Array, "n j j"]) -> Float[Array, "n j"]:
    """Inertia of a joint while the others are free: 1 / (M^-1)_ii [kg m^2]."""
    return 1.0 / np.diagonal(np.linalg.inv(mass), axis1=-2, axis2=-1)


def error_growth(
    mass: Float[Array, "n j j"],
    stiffness: Float[Array, "j j"],
    damping: Float[Array, "j j"],
    step: float,
) -> float:
    """Largest growth factor of a control error per step, over all poses.

    The sampled loop about a pose maps (q, v, a) of one step to the next linearly; the factor is
    its spectral radius. The loop is stable if it is at most 1.
    """
    inverse = np.linalg.inv(mass)
    identity = np.broadcast_to(np.eye(mass.shape[-1]), mass.shape)
    stiffness_rate, damping_rate = inverse @ stiffness, inverse @ damping
    acceleration = [-stiffness_rate, -damping_rate, -0.5 * step * damping_rate]
    velocity = [step * acceleration[0], identity + step * acceleration[1], step * acceleration[2]]
    position = [identity + step * velocity[0], step * velocity[1], step * velocity[2]]
    loop = np.block([position, velocity, acceleration])
    # Eigenvalues have rounding errors.
    largest = float(np.abs(np.linalg.eigvals(loop)).max())
    return 1.0 if abs(largest - 1.0) < 1e-9 else largest


def require_stable(
    mass: Float[Array, "n j j"],
    stiffness: Float[Array, "j j"],
    damping: Float[Array, "j j"],
    step: float,
) -> None:
    """InfeasibleError for gains with which the sampled loop is unstable."""
    largest = error_growth(mass, stiffness, damping, step)
    if largest > 1.0:
        raise InfeasibleError(
            f"these controller gains are unstable: errors grow by {largest:.3g} per step of "
            f"{step * 1e3:.3g} ms. Lower the bandwidth or the damping."
        )
