"""Search for a collision-free centre pose."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.excitation.scene.clearances import Clearances
from taufit.excitation.scene.scene import Scene
from taufit.robot import JointLimits, Robot


def find_free_pose(
    robot: Robot, limits: JointLimits, scene: Scene, seed: int = 0, tries: int = 400
) -> Float[Array, " j"]:
    """Find a pose well inside the limits with much free space in every direction.

    The best of random poses in the middle of the ranges; the middle itself if there are no
    constraints.
    """
    middle = 0.5 * (limits.lower + limits.upper)
    clearances = Clearances(robot, scene)
    if not clearances.names:
        return middle
    rng = np.random.default_rng(seed)
    half = 0.5 * (limits.upper - limits.lower)
    # Half a turn either way covers every pose of a revolute joint.
    travel = np.minimum(0.6 * half, np.pi)
    q = middle + rng.uniform(-1.0, 1.0, size=(tries, robot.joints)) * travel
    q[0] = middle
    clearance = clearances.values(q)
    score = np.minimum(clearance.min(1), 0.15) - 0.05 * np.mean(((q - middle) / half) ** 2, axis=1)
    best = int(np.argmax(score))
    if clearance[best].min() < 0:
        violation_share = (clearance < 0).mean(axis=0)
        name = clearances.names[int(np.argmax(violation_share))]
        raise InfeasibleError(
            f"no pose was found in which the arm keeps its clearance (short by "
            f"{-clearance[best].min() * 1000:.0f} mm at best; most often in the way: {name}, in "
            f"{100 * violation_share.max():.0f} % of {tries} poses). Loosen the cell, the "
            "clearance or the "
            "capsule radius."
        )
    return q[best]
