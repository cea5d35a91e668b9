"""Comparison of the connected robot with that of a motion or model, by poses instead of names.

Calibrated tables differ by metres in single entries (parallel axes trade lengths), their poses by
millimetres. So two robots are compared by the positions of wrist and flange for the same joint
positions: calibrations of 31 real UR robots lie within 7.3 mm of their own model, other models at
least 29 mm away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.core.names import clean_name
from taufit.dynamics import forward_kinematics
from taufit.robot import Limits, Robot, bundled_robots, from_dh, from_urdf, read_robot
from taufit.wire.identity import ControllerReport
from taufit.wire.ur_state import DhTable

# Pose distance above which a robot is another one, and above which a note is given [m].
OTHER_ARM, DOUBTFUL = 0.015, 0.008
# Largest angle between reported and planned gravity [rad].
TILT = np.radians(3.0)
# Models with equal tables, indistinguishable by poses.
TWINS = ({"ur5e", "ur7e"}, {"ur10e", "ur12e"})
_POSES = 200
# a2, a3, d1, d4, d5, d6 [m] of models that are not bundled: Universal Robots, "DH parameters for
# calculations of kinematics and dynamics".
_LENGTHS = {
    "ur16e": (-0.4784, -0.36, 0.1807, 0.17415, 0.11985, 0.11655),
    "ur20": (-0.8620, -0.7287, 0.2363, 0.2010, 0.1593, 0.1543),
    "ur30": (-0.6370, -0.5037, 0.2363, 0.2010, 0.1593, 0.1543),
}
_SAME_TABLE = {"ur7e": "ur5e", "ur12e": "ur10e"}


@dataclass(frozen=True, slots=True)
class Identity:
    """Comparison of the connected robot with the expected one.

    Attributes:
        reasons: Contradictions; empty if none.
        notes: Messages for the user.
        known: Whether the controller reported anything that identifies a robot.
    """

    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    known: bool


def compare_arms(robot: Robot, report: ControllerReport) -> Identity:
    """Compare the robot reported by a controller with the expected one.

    Args:
        robot: Robot of a motion or model, with its mounting.
        report: Report of the controller.
    """
    reasons: list[str] = []
    notes: list[str] = []
    models = nearest_models(robot)
    by_poses = _by_poses(robot, report, bool(models), reasons, notes)
    by_name = _by_name(robot, report, set(models), by_poses, reasons, notes)
    by_flange = _by_flange(robot, report, bool(models), reasons, notes)
    if report.gravity is not None and 9.0 < float(np.linalg.norm(report.gravity)) < 10.5:
        _by_gravity(robot, report.gravity, reasons)
    else:
        notes.append("the mounting is not compared: the controller does not report gravity")
    return Identity(tuple(reasons), tuple(notes), by_poses or by_name or by_flange)


def pose_gap(first: Robot, second: Robot, *, freedom: str = "yaw", flange: bool = True) -> float:
    """Largest distance of wrist and flange of two robots over fixed random joint positions [m].

    Args:
        first, second: Robots with the same number of joints.
        freedom: Alignment of the second base: "yaw" (rotation about z) or "rigid" (any placement).
        flange: Whether the flange counts besides the wrist.
    """
    if first.joints != second.joints:
        return np.inf
    one, two = _points(first), _points(second)
    if not flange:
        one, two = one[:, :1], two[:, :1]
    a, b = one.reshape(-1, 3), two.reshape(-1, 3)
    if freedom == "yaw":
        angle = np.arctan2(
            np.sum(b[:, 0] * a[:, 1] - b[:, 1] * a[:, 0]), np.sum(a[:, :2] * b[:, :2])
        )
        turn = np.array(
            [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
        )
        moved = b @ turn.T
    else:
        left, _, right = np.linalg.svd((b - b.mean(0)).T @ (a - a.mean(0)))
        sign = np.sign(np.linalg.det(left @ right))
        turn = (left * [1, 1, sign]) @ right
        moved = (b - b.mean(0)) @ turn + a.mean(0)
    return float(np.linalg.norm(a - moved, axis=1).max())


@lru_cache(maxsize=32)
def _points(robot: Robot) -> Float[Array, "n 2 3"]:
    """Wrist (point of the last axis nearest to the one before) and flange."""
    slides = np.array([link.prismatic for link in robot.links])
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSES, robot.joints))
    q = np.where(slides, q / np.pi, q)
    frames = forward_kinematics(robot, q)
    tip = frames[:, -1, :3, 3]
    if robot.joints < 2 or slides[-2:].any():
        return np.stack([tip, tip], axis=1)
    (p, u), (r, w) = (_axis(frames, robot, robot.joints - k) for k in (1, 2))
    across = np.cross(u, w)
    size = np.maximum(np.sum(across**2, axis=1), 1e-12)
    along = np.sum(np.cross(r - p, w) * across, axis=1) / size
    wrist = p + np.clip(along, -10.0, 10.0)[:, None] * u
    return np.stack([wrist, tip], axis=1)


def _axis(frames: Array, robot: Robot, joint: int) -> tuple[Array, Array]:
    """Point and direction of a joint axis, in the base frame."""
    screw = robot.links[joint].screw
    turn, origin = frames[:, joint, :3, :3], frames[:, joint, :3, 3]
    return turn @ np.cross(screw[:3], screw[3:]) + origin, turn @ screw[:3]


def robot_of_table(table: DhTable) -> Robot:
    """Robot without inertial data from a controller's Denavit-Hartenberg table."""
    rows = np.column_stack([table.theta, table.d, table.a, table.alpha])
    return from_dh(rows, name="controller")


@lru_cache(maxsize=1)
def _family() -> dict[str, Robot]:
    """Nominal robots by name: bundled ones, and others of Universal Robots."""
    out = {name: read_robot(name) for name in bundled_robots()}
    for name, (a2, a3, d1, d4, d5, d6) in _LENGTHS.items():
        half = np.pi / 2
        rows = [(0, d1, 0, half), (0, 0, a2, 0), (0, 0, a3, 0), (0, d4, 0, half)]
        out[name] = from_dh(np.array([*rows, (0, d5, 0, -half), (0, d6, 0, 0)]), name=name)
    for name, same in _SAME_TABLE.items():
        out[name] = out[same]
    return out


def nearest_models(robot: Robot) -> dict[str, float]:
    """Nominal models within 15 mm of a robot, with their distance [m], nearest first."""
    gaps = [
        (pose_gap(robot, one), name)
        for name, one in _family().items()
        if one.joints == robot.joints
    ]
    return {name: gap for gap, name in sorted(gaps) if gap <= OTHER_ARM}


def known_limits(robot: Robot) -> Limits | None:
    """Limits of the bundled robot with the same kinematics; None if there is none.

    Robots with equal kinematics (Panda and FR3) are distinguished by name; for another name the
    wider limits apply.
    """
    near = [name for name in nearest_models(robot) if name in bundled_robots()]
    if robot.name in near:
        near = [robot.name]
    found = [read_robot(name).limits for name in near]
    if not found:
        return None
    return Limits(
        np.min([one.lower for one in found], axis=0),
        np.max([one.upper for one in found], axis=0),
        np.max([one.velocity for one in found], axis=0),
        np.max([one.acceleration for one in found], axis=0),
        np.max([one.torque for one in found], axis=0),
    )


def _named(models: dict[str, float]) -> str:
    return " or ".join(models) if models else "no model that taufit knows"


def _by_poses(
    robot: Robot, report: ControllerReport, nominal: bool, reasons: list[str], notes: list[str]
) -> bool:
    """Compare a DH table or URDF; the flange counts if the expected robot is nominal (no tool)."""
    if report.table is not None:
        other = robot_of_table(report.table)
        gap = pose_gap(robot, other, flange=nominal)
        what = "the controller's Denavit-Hartenberg table"
    elif report.urdf is not None:
        try:
            other = described_robot(report.urdf, robot)
        except RobotError as error:
            notes.append(f"/robot_description cannot be compared: {error}")
            return False
        gap = pose_gap(robot, other, freedom="rigid", flange=False)
        what = "/robot_description"
    else:
        return False
    if gap > OTHER_ARM:
        found = _named(nearest_models(other))
        reasons.append(
            f"{what} is that of {found}, not of {robot.name}: poses are up to {1e3 * gap:.0f} mm "
            f"apart ({1e3 * OTHER_ARM:.0f} mm are allowed). Use what was made for this arm"
        )
    elif gap > DOUBTFUL:
        notes.append(
            f"{what} gives poses up to {1e3 * gap:.1f} mm from {robot.name}'s; calibrations are "
            f"usually within {1e3 * DOUBTFUL:.0f} mm"
        )
    return True


def described_robot(urdf: str, robot: Robot) -> Robot:
    """Chain of a URDF with the joints of a robot."""
    import xml.etree.ElementTree as ET

    from taufit.robot.from_urdf import parse_xml

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


def _by_name(
    robot: Robot,
    report: ControllerReport,
    models: set[str],
    by_poses: bool,
    reasons: list[str],
    notes: list[str],
) -> bool:
    """Compare model names; e-Series robots are named without their e."""
    found = re.match(r"\s*ur\s*(\d+)", report.model.lower())
    if found is None or not any(name.startswith("ur") for name in models):
        return False
    number = found[1]
    named = {name for name in models if re.sub(r"\D", "", name) == number}
    if not named:
        reasons.append(
            f"the controller says it moves a {clean_name(report.model, 30)}; this is for "
            f"{robot.name}. Use what was made for this arm"
        )
        return True
    if not by_poses:
        series = report.software.split(".")[0]
        if series.isdigit() and not any(
            name.endswith("e") == (int(series) >= 5) or int(number) >= 15 for name in named
        ):
            reasons.append(
                f"the controller (software {clean_name(report.software, 20)}) moves a "
                f"{'e-Series' if int(series) >= 5 else 'CB3'} arm; this is for {robot.name}"
            )
    notes += [
        f"{' and '.join(sorted(twins))} have equal tables and cannot be told apart by them"
        for twins in TWINS
        if twins & models
    ]
    return True


def _by_flange(
    robot: Robot, report: ControllerReport, nominal: bool, reasons: list[str], notes: list[str]
) -> bool:
    """Compare radius and height of the flange in the current pose; yaw of the base is ignored."""
    if report.flange is None or report.position is None:
        return False
    if len(report.position) != robot.joints:
        return False
    own = forward_kinematics(robot, np.asarray(report.position, float)[None])[0, -1, :3, 3]
    gap = float(
        np.hypot(np.hypot(*own[:2]) - np.hypot(*report.flange[:2]), own[2] - report.flange[2])
    )
    if gap <= OTHER_ARM:
        return True
    text = (
        f"the controller reports the flange {1e3 * gap:.0f} mm from where {robot.name} has it in "
        "this pose"
    )
    if nominal:
        reasons.append(f"{text}. Use what was made for this arm")
    else:
        notes.append(f"{text}; the description may end at a tool")
    return True


def _by_gravity(robot: Robot, gravity: Float[Array, " 3"], reasons: list[str]) -> None:
    own = robot.gravity
    cosine = float(own @ gravity / (np.linalg.norm(own) * np.linalg.norm(gravity)))
    angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    if angle > TILT:
        reasons.append(
            f"the controller's gravity is tilted by {np.degrees(angle):.0f} degrees against the "
            "mounting this was made for (3 are allowed). Set the mounting in the controller, or "
            "design again with --mounting"
        )
