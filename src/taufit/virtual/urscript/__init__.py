"""URScript on a virtual controller. In: program text. Out: commands, tick by tick.

Left to others: what the commands do to the arm.
"""

from taufit.virtual.urscript.machine import Machine, ScriptError, load_program
from taufit.virtual.urscript.parser import is_complete, parse_program

__all__ = ["Machine", "ScriptError", "is_complete", "load_program", "parse_program"]
