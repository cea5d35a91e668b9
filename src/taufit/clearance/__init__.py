"""Clearance check of playback. In: a motion file, the robot, its controller's report. Out: a
`Clearance`.

Left to others: planning the motion (excitation), sending it (wire) and asking the user (cli).
"""

from taufit.clearance.approach import Approaches, Way
from taufit.clearance.cell import Cell
from taufit.clearance.clearance import Clearance, ClearanceCheck
from taufit.clearance.identity import Identity, compare_arms
from taufit.clearance.motion_file import MotionFile, clearance_block, read_motion_file
from taufit.clearance.space import Space

__all__ = [
    "Approaches",
    "Cell",
    "Clearance",
    "ClearanceCheck",
    "Identity",
    "MotionFile",
    "Space",
    "Way",
    "clearance_block",
    "compare_arms",
    "read_motion_file",
]
