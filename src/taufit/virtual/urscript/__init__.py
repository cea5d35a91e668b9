"""URScript interpreter. In: program text. Out: commands, tick by tick.

Not here: execution of motion commands (controllers).
"""

from taufit.virtual.urscript.machine import Machine, ScriptError, load_program
from taufit.virtual.urscript.parser import is_complete, parse_program

__all__ = ["Machine", "ScriptError", "is_complete", "load_program", "parse_program"]
