"""Comparison of the connected robot with that of a motion or model, by poses instead of names.

Calibrated tables differ by metres in single entries (parallel axes trade lengths), their poses by
millimetres. So two robots are compared by the positions of wrist and flange for the same joint
positions: calibrations of 31 real UR robots lie within 7.3 mm of their own model, other models at
least 29 mm away.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.core.names import clean_name
from taufit.dynamics import forward_kinematics
from taufit.robot import JointLimits, Robot, bundled_robots, from_dh, from_urdf, read_robot
from taufit.wire.controller_report import ControllerReport
from taufit.wire.ur_state import DhTable

# Pose distance above which a robot is another one, and above which a note is given [m].
OTHER_ROBOT_M, DOUBTFUL_M = 0.015, 0.008
# Largest angle between reported and planned gravity [rad].
MAXIMUM_TILT = np.radians(3.0)
# Models with equal tables, indistinguishable by poses.
EQUAL_TABLES = ({"ur5e", "ur7e"}, {"ur10e", "ur12e"})
_POSE_COUNT = 200
# a2, a3, d1, d4, d5, d6 [m] of models that are not bundled: Universal Robots, "DH parameters for
# calculations of kinematics and dynamics".
_UR_LENGTHS = {
    "ur16e": (-0.4784, -0.36, 0.1807, 0.17415, 0.11985, 0.11655),
    "ur20": (-0.8620, -0.7287, 0.2363, 0.2010, 0.1593, 0.1543),
    "ur30": (-0.6370, -0.5037, 0.2363, 0.2010, 0.1593, 0.1543),
}
_SAME_TABLE = {"ur7e": "ur5e", "ur12e": "ur10e"}


@dataclass(frozen=True, slots=True)
class RobotComparison:
    """Comparison of the connected robot with the expected one.

    Attributes:
        reasons: Contradictions; empty if none.
        notes: Messages for the user.
        is_identified: Whether the controller reported anything that identifies a robot.
    """

    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    is_identified: bool


def compare_arms(robot: Robot, report: ControllerReport) -> RobotComparison:
    """Compare the robot reported by a controller with the expected one.

    Args:
        robot: Robot of a motion or model, with its mounting.
        report: Report of the controller.
    """
    reasons: list[str] = []
    notes: list[str] = []
    models = nearest_models(robot)
    poses_compared = _compare_poses(robot, report, bool(models), reasons, notes)
    names_compared = _compare_names(robot, report, set(models), poses_compared, reasons, notes)
    flange_compared = _compare_flange(robot, report, bool(models), reasons, notes)
    if report.gravity is not None and 9.0 < float(np.linalg.norm(report.gravity)) < 10.5:
        _compare_gravity(robot, report.gravity, reasons)
    else:
        notes.append("the mounting is not compared: the controller does not report gravity")
    return RobotComparison(
        tuple(reasons), tuple(notes), poses_compared or names_compared or flange_compared
    )


def pose_gap(first: Robot, second: Robot, *, freedom: str = "yaw", flange: bool = True) -> float:
    """Largest distance of wrist and flange of two robots over fixed random joint positions [m].

    Args:
        first, second: Robots with the same number of joints.
        freedom: Alignment of the second base: "yaw" (rotation about z) or "rigid" (any placement).
        flange: Whether the flange counts besides the wrist.
    """
    if first.joints != second.joints:
        return np.inf
    first_points, second_points = _points(first), _points(second)
    if not flange:
        first_points, second_points = first_points[:, :1], second_points[:, :1]
    a, b = first_points.reshape(-1, 3), second_points.reshape(-1, 3)
    if freedom == "yaw":
        angle = np.arctan2(
            np.sum(b[:, 0] * a[:, 1] - b[:, 1] * a[:, 0]), np.sum(a[:, :2] * b[:, :2])
        )
        rotation = np.array(
            [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
        )
        aligned = b @ rotation.T
    else:
        left, _, right = np.linalg.svd((b - b.mean(0)).T @ (a - a.mean(0)))
        sign = np.sign(np.linalg.det(left @ right))
        rotation = (left * [1, 1, sign]) @ right
        aligned = (b - b.mean(0)) @ rotation + a.mean(0)
    return float(np.linalg.norm(a - aligned, axis=1).max())


@lru_cache(maxsize=32)
def _points(robot: Robot) -> Float[Array, "n 2 3"]:
    """Wrist (point of the last axis nearest to the one before) and flange."""
    is_prismatic = robot.is_prismatic
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSE_COUNT, robot.joints))
    q = np.where(is_prismatic, q / np.pi, q)
    frames = forward_kinematics(robot, q)
    tip = frames[:, -1, :3, 3]
    if robot.joints < 2 or is_prismatic[-2:].any():
        return np.stack([tip, tip], axis=1)
    (p, u), (r, w) = (_axis(frames, robot, robot.joints - k) for k in (1, 2))
    common_normal = np.cross(u, w)
    size = np.maximum(np.sum(common_normal**2, axis=1), 1e-12)
    distance_along = np.sum(np.cross(r - p, w) * common_normal, axis=1) / size
    wrist = p + np.clip(distance_along, -10.0, 10.0)[:, None] * u
    return np.stack([wrist, tip], axis=1)


def _axis(frames: Array, robot: Robot, joint: int) -> tuple[Array, Array]:
    """Point and direction of a joint axis, in the base frame."""
    screw = robot.links[joint].screw
    rotation, origin = frames[:, joint, :3, :3], frames[:, joint, :3, 3]
    return rotation @ np.cross(screw[:3], screw[3:]) + origin, rotation @ screw[:3]


def robot_from_dh_table(table: DhTable) -> Robot:
    """Robot without inertial data from a controller's Denavit-Hartenberg table."""
    rows = np.column_stack([table.theta, table.d, table.a, table.alpha])
    return from_dh(rows, name="controller")


@lru_cache(maxsize=1)
def _nominal_robots() -> dict[str, Robot]:
    """Nominal robots by name: bundled ones, and others of Universal Robots."""
    robots = {name: read_robot(name) for name in bundled_robots()}
    for name, (a2, a3, d1, d4, d5, d6) in _UR_LENGTHS.items():
        half = np.pi / 2
        rows = [(0, d1, 0, half), (0, 0, a2, 0), (0, 0, a3, 0), (0, d4, 0, half)]
        robots[name] = from_dh(np.array([*rows, (0, d5, 0, -half), (0, d6, 0, 0)]), name=name)
    for name, equal_model in _SAME_TABLE.items():
        robots[name] = robots[equal_model]
    return robots


def nearest_models(robot: Robot) -> dict[str, float]:
    """Nominal models within 15 mm of a robot, with their distance [m], nearest first."""
    gaps = [
        (pose_gap(robot, nominal), name)
        for name, nominal in _nominal_robots().items()
        if nominal.joints == robot.joints
    ]
    return {name: gap for gap, name in sorted(gaps) if gap <= OTHER_ROBOT_M}


def catalogue_limits(robot: Robot) -> JointLimits | None:
    """Limits of the bundled robot with the same kinematics; None if there is none.

    Robots with equal kinematics (Panda and FR3) are distinguished by name; for another name the
    wider limits apply.
    """
    names = [name for name in nearest_models(robot) if name in bundled_robots()]
    if robot.name in names:
        names = [robot.name]
    limits = [read_robot(name).limits for name in names]
    if not limits:
        return None
    return JointLimits(
        np.min([limit_set.lower for limit_set in limits], axis=0),
        np.max([limit_set.upper for limit_set in limits], axis=0),
        np.max([limit_set.velocity for limit_set in limits], axis=0),
        np.max([limit_set.acceleration for limit_set in limits], axis=0),
        np.max([limit_set.torque for limit_set in limits], axis=0),
    )


def _join_names(models: dict[str, float]) -> str:
    return " or ".join(models) if models else "no model that taufit knows"


def _compare_poses(
    robot: Robot, report: ControllerReport, is_nominal: bool, reasons: list[str], notes: list[str]
) -> bool:
    """Compare a DH table or URDF; the flange counts if the expected robot is nominal (no tool)."""
    if report.dh_table is not None:
        reported = robot_from_dh_table(report.dh_table)
        gap = pose_gap(robot, reported, flange=is_nominal)
        source = "the controller's Denavit-Hartenberg table"
    elif report.urdf is not None:
        try:
            reported = robot_from_description(report.urdf, robot)
        except RobotError as error:
            notes.append(f"/robot_description cannot be compared: {error}")
            return False
        gap = pose_gap(robot, reported, freedom="rigid", flange=False)
        source = "/robot_description"
    else:
        return False
    if gap > OTHER_ROBOT_M:
        models = _join_names(nearest_models(reported))
        reasons.append(
            f"{source} is that of {models}, not of {robot.name}: poses are up to {1e3 * gap:.0f} "
            "mm "
            f"apart ({1e3 * OTHER_ROBOT_M:.0f} mm are allowed). Use what was made for this arm"
        )
    elif gap > DOUBTFUL_M:
        notes.append(
            f"{source} gives poses up to {1e3 * gap:.1f} mm from {robot.name}'s; calibrations are "
            f"usually within {1e3 * DOUBTFUL_M:.0f} mm"
        )
    return True


def robot_from_description(urdf: str, robot: Robot) -> Robot:
    """Chain of a URDF with the joints of a robot."""
    import xml.etree.ElementTree as ET

    from taufit.robot.urdf import parse_xml

    root: ET.Element = parse_xml(urdf)
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    missing = [name for name in robot.joint_names if name not in joints]
    if missing:
        raise RobotError(f"it has no joint {clean_name(missing[0], 60)}")
    first, last = joints[robot.joint_names[0]], joints[robot.joint_names[-1]]
    base, tip = first.find("parent"), last.find("child")
    if base is None or tip is None:
        raise RobotError("a joint of it has no parent or child")
    return from_urdf(urdf, base=base.get("link"), tip=tip.get("link"))


def _compare_names(
    robot: Robot,
    report: ControllerReport,
    models: set[str],
    by_poses: bool,
    reasons: list[str],
    notes: list[str],
) -> bool:
    """Compare model names; e-Series robots are named without their e."""
    match = re.match(r"\s*ur\s*(\d+)", report.model.lower())
    if match is None or not any(name.startswith("ur") for name in models):
        return False
    number = match[1]
    matching = {name for name in models if re.sub(r"\D", "", name) == number}
    if not matching:
        reasons.append(
            f"the controller says it moves a {clean_name(report.model, 30)}; this is for "
            f"{robot.name}. Use what was made for this arm"
        )
        return True
    if not by_poses:
        series = report.software.split(".")[0]
        if series.isdigit() and not any(
            name.endswith("e") == (int(series) >= 5) or int(number) >= 15 for name in matching
        ):
            reasons.append(
                f"the controller (software {clean_name(report.software, 20)}) moves a "
                f"{'e-Series' if int(series) >= 5 else 'CB3'} arm; this is for {robot.name}"
            )
    notes += [
        f"{' and '.join(sorted(twins))} have equal tables and cannot be told apart by them"
        for twins in EQUAL_TABLES
        if twins & models
    ]
    return True


def _compare_flange(
    robot: Robot, report: ControllerReport, is_nominal: bool, reasons: list[str], notes: list[str]
) -> bool:
    """Compare radius and height of the flange in the current pose; yaw of the base is ignored."""
    if report.flange is None or report.position is None:
        return False
    if len(report.position) != robot.joints:
        return False
    expected_flange = forward_kinematics(robot, np.asarray(report.position, float)[None])[
        0, -1, :3, 3
    ]
    gap = float(
        np.hypot(
            np.hypot(*expected_flange[:2]) - np.hypot(*report.flange[:2]),
            expected_flange[2] - report.flange[2],
        )
    )
    if gap <= OTHER_ROBOT_M:
        return True
    text = (
        f"the controller reports the flange {1e3 * gap:.0f} mm from where {robot.name} has it in "
        "this pose"
    )
    if is_nominal:
        reasons.append(f"{text}. Use what was made for this arm")
    else:
        notes.append(f"{text}; the description may end at a tool")
    return True


def _compare_gravity(robot: Robot, gravity: Float[Array, " 3"], reasons: list[str]) -> None:
    expected = robot.gravity
    cosine = float(expected @ gravity / (np.linalg.norm(expected) * np.linalg.norm(gravity)))
    angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    if angle > MAXIMUM_TILT:
        reasons.append(
            f"the controller's gravity is tilted by {np.degrees(angle):.0f} degrees against the "
            "mounting this was made for (3 are allowed). Set the mounting in the controller, or "
            "design again with --mounting"
        )
