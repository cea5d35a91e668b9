"""Certificate of a motion: every constraint checked on a time grid, with its smallest margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.dynamics import inverse_dynamics, jacobian
from taufit.excitation.limit_scaling import MotionLimits
from taufit.excitation.motion import Motion
from taufit.excitation.scene import Clearances, Scene
from taufit.model.torque_model import TorqueModel

POINTS = 5000


@dataclass(frozen=True, slots=True)
class Check:
    """Result for one constraint over the motion.

    Attributes:
        name: Constraint, e.g. "velocity of joint 3".
        margin: Smallest margin, as a fraction of the limit; in metres for distances. Negative is a
            violation.
        time: Time of the smallest margin [s].
        unit: "1" or "m".
    """

    name: str
    margin: float
    time: float
    unit: str = "1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """All constraints of a motion, checked at `points` times.

    Attributes:
        checks: One per constraint.
        points: Number of times checked.
    """

    checks: tuple[Check, ...]
    points: int

    @property
    def tightest(self) -> Check:
        return min(self.checks, key=lambda check: check.margin)

    @property
    def feasible(self) -> bool:
        return self.tightest.margin >= -1e-9


def certify(
    motion: Motion,
    envelope: MotionLimits,
    scene: Scene,
    model: TorqueModel,
    torque: Float[Array, " j"],
    points: int | None = None,
    *,
    seconds: float | None = None,
) -> Certificate:
    """Check every constraint at `points` times of the motion, or of its first `seconds`."""
    points = POINTS if points is None else points
    time = np.linspace(0.0, motion.duration if seconds is None else seconds, points)
    q, v, a = motion.at(time)
    jerk = np.gradient(a, time, axis=0)
    moved = np.stack([q - envelope.centre, v, a, jerk])
    checks = []
    ratios = np.abs(envelope.ratios(moved))
    bounds = (envelope.above, envelope.velocity, envelope.acceleration, envelope.jerk)
    names = ("position", "velocity", "acceleration", "jerk")
    for name, ratio, bound in zip(names, ratios, bounds, strict=True):
        for joint in np.flatnonzero(np.isfinite(bound)):
            at = int(np.argmax(ratio[:, joint]))
            checks.append(Check(f"{name} of joint {joint + 1}", 1.0 - ratio[at, joint], time[at]))
    if np.any(np.isfinite(torque)):
        load = np.abs(predicted_torque(model, q, v, a)) / torque
        for joint in np.flatnonzero(np.isfinite(torque)):
            at = int(np.argmax(load[:, joint]))
            checks.append(Check(f"torque of joint {joint + 1}", 1.0 - load[at, joint], time[at]))
    if np.isfinite(scene.tip_speed):
        speed = np.linalg.norm(np.einsum("nij,nj->ni", jacobian(model.robot, q)[:, 3:], v), axis=1)
        at = int(np.argmax(speed))
        checks.append(Check("speed of the tip", 1.0 - speed[at] / scene.tip_speed, time[at]))
    clearances = Clearances(model.robot, scene)
    if clearances.names:
        worst = np.full(len(clearances.names), np.inf)
        when = np.zeros(len(clearances.names))
        for start in range(0, points, 1000):
            free = clearances.values(q[start : start + 1000])
            low = free.min(0)
            at = np.argmin(free, 0)
            better = low < worst
            worst[better], when[better] = low[better], time[start + at[better]]
        checks += [
            Check(f"clearance of {name}", float(margin), float(t), "m")
            for name, margin, t in zip(clearances.names, worst, when, strict=True)
        ]
    return Certificate(tuple(checks), points)


def predicted_torque(
    model: TorqueModel,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
) -> Float[Array, "n j"]:
    """Joint torque of the robot's links without friction [N m]."""
    return inverse_dynamics(model.robot, q, v, a)


def require_rest_is_allowed(
    model: TorqueModel, envelope: MotionLimits, scene: Scene, torque: Float[Array, " j"]
) -> None:
    """InfeasibleError if standing at the centre pose violates a constraint.

    Motions that violate a constraint are shrunk towards this pose.
    """
    q = envelope.centre[None]
    free = Clearances(model.robot, scene).values(q)
    if free.size and free.min() < 0:
        name = Clearances(model.robot, scene).names[int(np.argmin(free[0]))]
        raise InfeasibleError(
            f"the start pose itself breaks the clearance of {name} by {-free.min() * 1000:.0f} mm."
        )
    if np.any(np.isfinite(torque)):
        hold = np.abs(predicted_torque(model, q, 0 * q, 0 * q))[0]
        if np.any(hold > torque):
            joint = int(np.argmax(hold / torque))
            raise InfeasibleError(
                f"holding the start pose takes {hold[joint]:.3g} N m in joint {joint + 1}, above "
                f"its torque limit of {torque[joint]:.3g} N m."
            )
    if not scene.tip_speed > 0:
        raise InfeasibleError("the tip speed limit is not positive.")
