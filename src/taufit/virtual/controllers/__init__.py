"""Virtual controllers on the twin. In: a twin. Out: sockets on this computer that clients take for
the real thing.

Left to others: the arm (sim), the bytes (wire), URScript (sim.urscript).
"""

from taufit.virtual.controllers.egm import VirtualEgm
from taufit.virtual.controllers.franka import VirtualFranka
from taufit.virtual.controllers.repeating_robot import RepeatingRobot
from taufit.virtual.controllers.ur_controller import UrController
from taufit.virtual.controllers.ur_server import VirtualUr

__all__ = ["RepeatingRobot", "UrController", "VirtualEgm", "VirtualFranka", "VirtualUr"]
