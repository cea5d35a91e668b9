"""Virtual controllers on the twin. In: a twin. Out: sockets on this computer that clients take for
the real thing.

Left to others: the arm (sim), the bytes (wire), URScript (sim.urscript).
"""

from taufit.sim.virtual.egm import VirtualEgm
from taufit.sim.virtual.franka import VirtualFranka
from taufit.sim.virtual.played import PlayedArm
from taufit.sim.virtual.ur_controller import UrController
from taufit.sim.virtual.ur_server import VirtualUr

__all__ = ["PlayedArm", "UrController", "VirtualEgm", "VirtualFranka", "VirtualUr"]
