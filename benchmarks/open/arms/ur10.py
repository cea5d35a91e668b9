"""Universal Robots UR10 (CB3): a ROS 2 bag of 28 s."""

from pathlib import Path
from typing import Any

from benchmarks.open.arm import Arm, parts

BAG = "ur10_bag/ur10_exciting_trajectory.db3"


def read(path: Path) -> Any:
    from taufit.recording import read_recording

    return read_recording(path, torque_kind="torque")


ARM = Arm(
    title="Universal Robots UR10",
    source="github unisa-acg/inverse-dynamics-solver (41e196d)",
    licence="BSD-3-Clause",
    torque="motor current times the authors' gains, filtered by them",
    torque_source="motor_torque",
    robot="ur10",
    read=read,
    splits={
        "unseen motion": parts(BAG, (0, 2408), (2471, 3441)),
        "short data": parts(BAG, (0, 1000), (2471, 3441)),
    },
    why_not={"poor excitation": "one exciting log", "other day": "one log"},
)
