"""Motion files with the clearance data of `design`: cell, limits, home pose, digests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from taufit.clearance.approach import Approaches
from taufit.clearance.cell import Cell
from taufit.clearance.digest import PARTS, SCHEMA, digest, digests
from taufit.clearance.space import CollisionSpace
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.fields import Field
from taufit.core.plain_data import read_json
from taufit.excitation import Motion
from taufit.excitation.motion_file import motion_from_dict
from taufit.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class MotionFile:
    """Motion with the data of its file.

    Attributes:
        path: File.
        motion: Motion to play.
        robot_name: Name of the robot it was planned for; None if not in the file.
        mounting: Roll, pitch and yaw of the base it was planned for [rad]; None if not in the file.
        feasible: Feasibility noted by `design`.
        cell: Cell it was planned for; None in older files.
        home: Home pose with a proved straight leg to the start.
        digests: Stored digests; empty in older files.
        incomplete: Description of missing clearance data; empty if complete.
    """

    path: Path
    motion: Motion
    robot_name: str | None
    mounting: tuple[float, float, float] | None
    feasible: bool
    cell: Cell | None
    home: Float[Array, " j"] | None
    digests: dict[str, str]
    incomplete: str = ""


def read_motion_file(path: str | os.PathLike[str]) -> MotionFile:
    """Read a motion and its clearance."""
    data = read_json(path, "a JSON motion file")
    motion = motion_from_dict(data, str(path))
    root = Field(data, str(path))
    notes = root["notes"]
    mounting = notes["mounting"]
    robot = notes["robot"]
    stored = root["clearance"]
    cell, home, stored_digests, incomplete = None, None, {}, ""
    if not stored.missing:
        parts = stored["digests"]
        stored_digests = {name: parts[name].text("") for name in PARTS}
        if not stored["cell"].missing:
            cell = Cell.from_field(stored["cell"], motion.joints)
        if not stored["home"].missing:
            home = stored["home"].numbers(motion.joints)
        if stored["schema"].number(0.0) != SCHEMA:
            incomplete = "its clearance is of another version of taufit"
        elif cell is None:
            incomplete = "its clearance states no cell"
        elif stored["digest"].text("") != digest(stored_digests):
            incomplete = "its digests were edited"
    return MotionFile(
        Path(path),
        motion,
        None if robot.missing else robot.text(),
        None if mounting.missing else tuple(mounting.numbers(3).tolist()),
        notes["feasible"].missing or notes["feasible"].flag(),
        cell,
        home,
        stored_digests,
        incomplete,
    )


def clearance_block(motion: Motion, robot: Robot, cell: Cell) -> dict[str, Any]:
    """Plain data for the key "clearance" of a motion file.

    The leg from a home pose to the start is proved here, before anybody is at the robot; `home` is
    null if none was found.
    """
    space = CollisionSpace(robot, cell.scene(robot), cell.limits)
    start = motion.at(np.zeros(1))[0][0]
    homes = Approaches.from_space(space).homes_with_leg_to(start)
    home = homes[0] if homes else None
    part_digests = digests(motion, robot, cell, home)
    return {
        "schema": SCHEMA,
        "cell": cell.to_dict(),
        "home": None if home is None else home.tolist(),
        "digests": part_digests,
        "digest": digest(part_digests),
    }


def find_changed_parts(file: MotionFile, robot: Robot) -> list[str]:
    """Names of the parts of a certified file that changed since `design`.

    Inertia counts only if the motion was planned with torque limits.
    """
    if file.cell is None or not file.digests:
        return []
    current = digests(file.motion, robot, file.cell, file.home)
    relevant = [name for name in PARTS if name != "inertia"]
    if np.any(np.isfinite(file.cell.limits.torque)):
        relevant.append("inertia")
    return [PARTS[name] for name in relevant if file.digests.get(name) != current[name]]
