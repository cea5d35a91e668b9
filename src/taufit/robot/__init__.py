"""What the arm is. In: a URDF, a DH table, screw axes or a bundled name. Out: a `Robot`.

Left to others: how it moves and what torque that takes (dynamics).
"""

from taufit.robot.from_dh import from_dh
from taufit.robot.inertia import PARAMETER_NAMES, pseudo_inertia
from taufit.robot.robot import Drives, Limits, Link, Robot

__all__ = ["PARAMETER_NAMES", "Drives", "Limits", "Link", "Robot", "from_dh", "pseudo_inertia"]
