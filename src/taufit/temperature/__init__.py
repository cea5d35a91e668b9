"""Friction that follows temperature. In: a `TorqueModel` and `Samples`. Out: the same with a law of
temperature, and temperatures where nobody measured them.

Left to others: the laws themselves (friction).
"""

from taufit.temperature.repeated import repeat_identification
from taufit.temperature.slopes import follow_temperature, friction_at

__all__ = ["follow_temperature", "friction_at", "repeat_identification"]
