"""Random trees with branches, sliding and bound joints, and the same tree for Pinocchio."""

from __future__ import annotations

import numpy as np
from tests.dynamics.random_arms import axis_point, random_arm

from taufit.robot import Drives, JointLimits, Robot
from taufit.robot.tree import TreeRobot, build_tree


def random_tree(seed: int, bodies: int | None = None) -> TreeRobot:
    """Links of a random arm on random parents; half of the trees record in another order."""
    rng = np.random.default_rng((seed, 7))
    bodies = int(rng.integers(5, 21)) if bodies is None else bodies
    joints = int(rng.integers(max(2, bodies // 2), bodies + 1))
    arm = random_arm(seed, bodies)
    parents = [-1]
    for b in range(1, bodies):
        near = int(rng.integers(max(-1, b - 4), b))
        parents.append(near if rng.random() < 0.4 else b - 1)
    order = rng.permutation(bodies)
    free = order[:joints] if seed % 2 else np.sort(order[:joints])
    binding = np.zeros((bodies, joints))
    binding[free, np.arange(joints)] = 1.0
    for b in order[joints:]:
        for j in rng.choice(joints, size=1 + int(rng.random() < 0.3), replace=False):
            binding[b, j] = rng.choice([-1.0, 1.0, 0.5, -1.2178])
    offset = np.where(binding.max(axis=1) == 1.0, 0.0, 0.3 * rng.normal(size=bodies))
    shared = Robot(
        "random tree",
        arm.links,
        JointLimits.unlimited(joints),
        Drives.direct_drive(joints),
        mounting=arm.mounting,
    )
    return build_tree(shared, parents, binding, offset, [arm.links[b].joint for b in free])


def pinocchio_tree(robot: TreeRobot):
    """Pinocchio's model of all joints as if free, and their places in its vectors."""
    import pinocchio as pin

    model, frames, places = pin.Model(), {-1: (0, pin.SE3.Identity())}, []
    model.gravity.linear = robot.gravity
    for b, link in enumerate(robot.links):
        parent, before = frames[robot.parents[b]]
        # Pinocchio's joint frame lies on the axis, the link's is shifted back from it.
        shift = pin.SE3(np.eye(3), np.zeros(3) if link.is_prismatic else axis_point(link))
        kind = "Prismatic" if link.is_prismatic else "Revolute"
        axis = link.screw[3:] if link.is_prismatic else link.screw[:3]
        joint = model.addJoint(
            parent,
            getattr(pin, f"JointModel{kind}Unaligned")(*axis),
            before * pin.SE3(link.placement[:3, :3], link.placement[:3, 3]) * shift,
            link.joint,
        )
        frames[b] = joint, shift.inverse()
        places.append(joint)
    return model, places, frames
