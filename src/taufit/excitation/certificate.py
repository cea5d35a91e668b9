"""Certificate of a motion: every constraint checked on a time grid, with its smallest margin."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.dynamics import inverse_dynamics, jacobian
from taufit.excitation.limit_scaling import MotionLimits
from taufit.excitation.motion import Motion
from taufit.excitation.scene import Clearances, Scene
from taufit.model.torque_model import TorqueModel

POINTS = 5000


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
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

    checks: tuple[ConstraintCheck, ...]
    points: int

    @property
    def tightest_constraint(self) -> ConstraintCheck:
        return min(self.checks, key=lambda check: check.margin)

    @property
    def feasible(self) -> bool:
        return self.tightest_constraint.margin >= -1e-9


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
    deviations = np.stack([q - envelope.centre, v, a, jerk])
    checks = []
    ratios = np.abs(envelope.ratios(deviations))
    bounds = (envelope.above, envelope.velocity, envelope.acceleration, envelope.jerk)
    names = ("position", "velocity", "acceleration", "jerk")
    for name, ratio, bound in zip(names, ratios, bounds, strict=True):
        for joint in np.flatnonzero(np.isfinite(bound)):
            worst_index = int(np.argmax(ratio[:, joint]))
            checks.append(
                ConstraintCheck(
                    f"{name} of joint {joint + 1}",
                    1.0 - ratio[worst_index, joint],
                    time[worst_index],
                )
            )
    if np.any(np.isfinite(torque)):
        load = np.abs(predicted_torque(model, q, v, a)) / torque
        for joint in np.flatnonzero(np.isfinite(torque)):
            worst_index = int(np.argmax(load[:, joint]))
            checks.append(
                ConstraintCheck(
                    f"torque of joint {joint + 1}",
                    1.0 - load[worst_index, joint],
                    time[worst_index],
                )
            )
    if np.isfinite(scene.tip_speed):
        speed = np.linalg.norm(np.einsum("nij,nj->ni", jacobian(model.robot, q)[:, 3:], v), axis=1)
        worst_index = int(np.argmax(speed))
        checks.append(
            ConstraintCheck(
                "speed of the tip", 1.0 - speed[worst_index] / scene.tip_speed, time[worst_index]
            )
        )
    clearances = Clearances(model.robot, scene)
    if clearances.names:
        smallest = np.full(len(clearances.names), np.inf)
        smallest_time = np.zeros(len(clearances.names))
        for start in range(0, points, 1000):
            clearance = clearances.values(q[start : start + 1000])
            low = clearance.min(0)
            worst_index = np.argmin(clearance, 0)
            is_smaller = low < smallest
            smallest[is_smaller], smallest_time[is_smaller] = (
                low[is_smaller],
                time[start + worst_index[is_smaller]],
            )
        checks += [
            ConstraintCheck(f"clearance of {name}", float(margin), float(t), "m")
            for name, margin, t in zip(clearances.names, smallest, smallest_time, strict=True)
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


def require_feasible_pose(
    model: TorqueModel, envelope: MotionLimits, scene: Scene, torque: Float[Array, " j"]
) -> None:
    """InfeasibleError if standing at the centre pose violates a constraint.

    Motions that violate a constraint are shrunk towards this pose.
    """
    q = envelope.centre[None]
    clearance = Clearances(model.robot, scene).values(q)
    if clearance.size and clearance.min() < 0:
        name = Clearances(model.robot, scene).names[int(np.argmin(clearance[0]))]
        raise InfeasibleError(
            f"the start pose itself breaks the clearance of {name} by "
            f"{-clearance.min() * 1000:.0f} mm."
        )
    if np.any(np.isfinite(torque)):
        holding_torque = np.abs(predicted_torque(model, q, 0 * q, 0 * q))[0]
        if np.any(holding_torque > torque):
            joint = int(np.argmax(holding_torque / torque))
            raise InfeasibleError(
                f"holding the start pose takes {holding_torque[joint]:.3g} N m in joint "
                f"{joint + 1}, above "
                f"its torque limit of {torque[joint]:.3g} N m."
            )
    if not scene.tip_speed > 0:
        raise InfeasibleError("the tip speed limit is not positive.")
