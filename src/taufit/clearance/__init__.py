"""Clearance check of playback. In: a motion file, the robot, its controller's report. Out: a
`Clearance`.

Left to others: planning the motion (excitation), sending it (wire) and asking the user (cli).
"""

from taufit.clearance.approach import Approaches, JointPath
from taufit.clearance.cell import Cell
from taufit.clearance.clearance import Clearance, ClearanceCheck
from taufit.clearance.identity import RobotComparison, compare_arms
from taufit.clearance.motion_file import MotionFile, clearance_block, read_motion_file
from taufit.clearance.space import CollisionSpace

__all__ = [
    "Approaches",
    "Cell",
    "Clearance",
    "ClearanceCheck",
    "CollisionSpace",
    "JointPath",
    "MotionFile",
    "RobotComparison",
    "clearance_block",
    "compare_arms",
    "read_motion_file",
]
