"""Random serial arms and states, and the same arm for Pinocchio and MuJoCo."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from taufit.robot import Drives, JointLimits, Link, Robot
from taufit.robot.inertia import from_centre_of_mass, to_centre_of_mass, transform_parameters


def random_arm(seed: int, joints: int, *, helical: bool = False) -> Robot:
    """Revolute joints about any axis through any point, prismatic ones, any mounting."""
    rng = np.random.default_rng((seed, joints))
    links = []
    for i in range(joints):
        placement = np.eye(4)
        placement[:3, :3] = Rotation.random(rng=rng).as_matrix()
        placement[:3, 3] = rng.uniform(-0.5, 0.5, 3)
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        if rng.random() < 0.3:
            screw = np.concatenate([np.zeros(3), axis])
        else:
            pitch = 0.1 * rng.normal() if helical else 0.0
            screw = np.concatenate([axis, np.cross(rng.uniform(-0.3, 0.3, 3), axis) + pitch * axis])
        # A cloud of points is a body that can exist.
        points = rng.normal(size=(3, 6)) * rng.uniform(0.02, 0.2)
        mass = rng.uniform(0.1, 8.0)
        second = mass / 6 * (points - points.mean(1, keepdims=True)) @ points.T
        tensor = np.trace(second) * np.eye(3) - second
        inertial = from_centre_of_mass(mass, rng.uniform(-0.2, 0.2, 3), tensor)
        links.append(Link(f"link_{i + 1}", f"joint_{i + 1}", placement, screw, inertial))
    return Robot(
        "random arm",
        tuple(links),
        JointLimits.unlimited(joints),
        Drives.joint_torque(joints),
        mounting=tuple(rng.uniform(-np.pi, np.pi, 3).tolist()),
    )


def random_states(seed: int, n: int, joints: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng((seed, n, joints))
    q = rng.uniform(-2 * np.pi, 2 * np.pi, (n, joints))
    return q, rng.normal(size=(n, joints)), 3.0 * rng.normal(size=(n, joints))


def axis_point(link: Link) -> np.ndarray:
    """A point on a revolute or helical joint's axis, in the link's frame."""
    return np.cross(link.screw[:3], link.screw[3:])


def pinocchio_model(robot: Robot):
    """Pinocchio's model; its joint frames sit on the axes, so the links are shifted back."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = robot.gravity
    parent, before = 0, pin.SE3.Identity()
    for link in robot.links:
        w, u = link.screw[:3], link.screw[3:]
        shift = np.zeros(3) if link.prismatic else axis_point(link)
        if link.prismatic:
            joint = pin.JointModelPrismaticUnaligned(u)
        elif abs(w @ u) > 1e-12:
            joint = pin.JointModelHelicalUnaligned(w, float(w @ u))
        else:
            joint = pin.JointModelRevoluteUnaligned(w)
        placement = pin.SE3(link.placement[:3, :3], link.placement[:3, 3])
        on_axis = before * placement * pin.SE3(np.eye(3), shift)
        parent = model.addJoint(parent, joint, on_axis, link.joint)
        before = pin.SE3(np.eye(3), -shift)
        m, c, tensor = to_centre_of_mass(link.parameters)
        model.appendBodyToJoint(parent, pin.Inertia(m, c, tensor), before)
    return model


def to_axis_frames(robot: Robot) -> np.ndarray:
    """K with theta_pinocchio = K theta: the same bodies seen from frames on the joint axes."""
    out = np.zeros((10 * robot.joints, 10 * robot.joints))
    for i, link in enumerate(robot.links):
        shift = np.eye(4)
        if not link.prismatic:
            shift[:3, 3] = -axis_point(link)
        block = np.stack([transform_parameters(unit, shift) for unit in np.eye(10)], -1)
        out[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = block
    return out


def mujoco_model(robot: Robot):
    import mujoco

    def text(values) -> str:
        return " ".join(f"{float(x):.17g}" for x in values)

    head = tail = ""
    for link in robot.links:
        m, c, tensor = to_centre_of_mass(link.parameters)
        turn = Rotation.from_matrix(link.placement[:3, :3]).as_quat(scalar_first=True)
        w, u = link.screw[:3], link.screw[3:]
        if link.prismatic:
            joint = f'<joint type="slide" axis="{text(u)}"/>'
        else:
            joint = f'<joint type="hinge" axis="{text(w)}" pos="{text(axis_point(link))}"/>'
        entries = (tensor[i] for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        head += (
            f'<body pos="{text(link.placement[:3, 3])}" quat="{text(turn)}">{joint}'
            f'<inertial mass="{m:.17g}" pos="{text(c)}" fullinertia="{text(entries)}"/>'
        )
        tail += "</body>"
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><option gravity="{text(robot.gravity)}"/>'
        f"<worldbody>{head}{tail}</worldbody></mujoco>"
    )
