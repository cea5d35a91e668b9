"""From what was measured to what can be fitted. In: a `Recording`. Out: `Samples`.

Left to others: models of torque (dynamics, friction).
"""

from taufit.signals.conditioning import condition
from taufit.signals.drive_gains import KNOWN_GAINS, Gains, controller_gains, known_gains
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples

__all__ = [
    "KNOWN_GAINS",
    "Gains",
    "Samples",
    "condition",
    "controller_gains",
    "known_gains",
    "lowpass",
]
