"""Motion files with the clearance `design` has proved: cell, limits, a clear leg, digests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taufit.clearance.approach import Approaches
from taufit.clearance.cell import Cell
from taufit.clearance.digest import PARTS, SCHEMA, digest, digests
from taufit.clearance.space import Space
from taufit.core.arrays import Array, Float
from taufit.core.fields import Field
from taufit.core.plain_data import read_json
from taufit.excitation import Motion
from taufit.excitation.motion_file import motion_from_dict
from taufit.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class MotionFile:
    """A motion and what its file says about it.

    Attributes:
        path: The file.
        motion: To be played.
        robot_name: Of the robot it was planned for; None where the file does not say.
        mounting: Roll, pitch and yaw of the base it was planned for [rad]; None likewise.
        feasible: What `design` noted.
        cell: It was planned in; None in older files.
        home: A roomy pose from which the straight leg to the start was proved.
        digests: Saved ones; empty in older files.
        incomplete: What a clearance in the file lacks, in words; empty where it is whole.
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
    saved = root["clearance"]
    cell, home, prints, incomplete = None, None, {}, ""
    if not saved.missing:
        parts = saved["digests"]
        prints = {name: parts[name].text("") for name in PARTS}
        if not saved["cell"].missing:
            cell = Cell.from_field(saved["cell"], motion.joints)
        if not saved["home"].missing:
            home = saved["home"].numbers(motion.joints)
        if saved["schema"].number(0.0) != SCHEMA:
            incomplete = "its clearance is of another version of taufit"
        elif cell is None:
            incomplete = "its clearance states no cell"
        elif saved["digest"].text("") != digest(prints):
            incomplete = "its digests were edited"
    return MotionFile(
        Path(path),
        motion,
        None if robot.missing else robot.text(),
        None if mounting.missing else tuple(mounting.numbers(3).tolist()),
        notes["feasible"].missing or notes["feasible"].flag(),
        cell,
        home,
        prints,
        incomplete,
    )


def clearance_block(motion: Motion, robot: Robot, cell: Cell) -> dict[str, Any]:
    """Plain data for the key "clearance" of a motion file.

    The leg from a roomy pose to the start is proved here, so that it is known before anybody
    stands at the arm; `home` is null where none was found.
    """
    space = Space(robot, cell.scene(robot), cell.limits)
    start = motion.at(np.zeros(1))[0][0]
    homes = Approaches.among(space).homes_before(start)
    home = homes[0] if homes else None
    prints = digests(motion, robot, cell, home)
    return {
        "schema": SCHEMA,
        "cell": cell.to_dict(),
        "home": None if home is None else home.tolist(),
        "digests": prints,
        "digest": digest(prints),
    }


def changed_parts(file: MotionFile, robot: Robot) -> list[str]:
    """Parts of a certified file that are not what `design` saw, in words.

    Inertia counts only where the motion was planned within torque limits.
    """
    if file.cell is None or not file.digests:
        return []
    now = digests(file.motion, robot, file.cell, file.home)
    counted = [name for name in PARTS if name != "inertia"]
    if np.any(np.isfinite(file.cell.limits.torque)):
        counted.append("inertia")
    return [PARTS[name] for name in counted if file.digests.get(name) != now[name]]
