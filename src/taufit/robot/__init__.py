"""What the arm is. In: a URDF, a DH table, screw axes or a bundled name. Out: a `Robot`.

Left to others: how it moves and what torque that takes (dynamics).
"""

from taufit.robot.checks import oddities
from taufit.robot.compensator import Compensator
from taufit.robot.from_dh import from_dh
from taufit.robot.from_screws import from_screws
from taufit.robot.from_urdf import from_urdf
from taufit.robot.from_yaml import from_yaml, to_yaml
from taufit.robot.inertia import pseudo_inertia
from taufit.robot.read import bundled_robots, read_robot, write_robot
from taufit.robot.robot import Drives, Limits, Link, Robot

__all__ = [
    "Compensator",
    "Drives",
    "Limits",
    "Link",
    "Robot",
    "bundled_robots",
    "from_dh",
    "from_screws",
    "from_urdf",
    "from_yaml",
    "oddities",
    "pseudo_inertia",
    "read_robot",
    "to_yaml",
    "write_robot",
]
