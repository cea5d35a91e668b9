"""URScript on a virtual controller. In: program text. Out: commands, tick by tick.

Left to others: what the commands do to the arm.
"""

from taufit.virtual.urscript.machine import Machine, ScriptError, load
from taufit.virtual.urscript.parser import complete, parse

__all__ = ["Machine", "ScriptError", "complete", "load", "parse"]
