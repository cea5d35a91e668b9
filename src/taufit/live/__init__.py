"""What a robot carries, feels and loses while it moves.

In: a fitted model and samples as they come, from a robot that is on or a recording played back.
Out: readings, one per sample, and events. Detection is left to `payload`, `contact` and `health`.
"""

from taufit.live.account import Account
from taufit.live.monitor import Monitor
from taufit.live.reading import KINDS, MonitorEvent, Reading

__all__ = ["KINDS", "Account", "Monitor", "MonitorEvent", "Reading"]
