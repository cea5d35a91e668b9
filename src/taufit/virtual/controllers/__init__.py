"""Simulated controllers on a simulated robot. In: a twin. Out: sockets that clients use like real
ones.

Not here: the robot (sim), protocols (wire), URScript (virtual.urscript).
"""

from taufit.virtual.controllers.egm import VirtualEgm
from taufit.virtual.controllers.franka import VirtualFranka
from taufit.virtual.controllers.repeating_robot import RepeatingRobot
from taufit.virtual.controllers.ur_controller import UrController
from taufit.virtual.controllers.ur_server import VirtualUr

__all__ = ["RepeatingRobot", "UrController", "VirtualEgm", "VirtualFranka", "VirtualUr"]
