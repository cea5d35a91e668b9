"""Chain of a whole robot's description that a recording names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from taufit.core.errors import RobotError
from taufit.robot import read_robot
from taufit.robot.held_joints import RecordedChain, free_joints, recorded_chain
from taufit.robot.read import description_text


def chain_of_files(
    robot: str | os.PathLike[str], paths: Sequence[Path], topic: str | None = None
) -> RecordedChain | None:
    """Chain of a whole robot that a recording names; None if the description needs no choice."""
    path = Path(robot)
    if path.suffix.lower() not in (".urdf", ".xacro") or not path.is_file():
        return None
    text = description_text(path)
    names = free_joints(text)
    try:
        default = read_robot(path).joint_names
    except RobotError:
        default = ()
    if set(names) == set(default):
        return None
    from taufit.recording.draft.from_names import recorded_joints
    from taufit.recording.read import read_table

    table = read_table(paths[0], topic=topic)
    if table is None:
        return None
    positions, torques = recorded_joints(table, names)
    chain = recorded_chain(text, positions, torques)
    if chain is None or not default:
        return chain
    chosen = chain.read(str(path)).joint_names
    # One recorded joint more or less at the end is no reason to leave links out.
    return None if set(default) == set(chosen) or set(default) <= positions.keys() else chain
