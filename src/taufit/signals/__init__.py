"""From what was measured to what can be fitted. In: a `Recording`. Out: `Samples`.

Left to others: models of torque (dynamics, friction).
"""

from taufit.signals.conditioning import condition
from taufit.signals.delay import estimate_delay, tracking_delay
from taufit.signals.differentiation import DIFFERENTIATIONS
from taufit.signals.drive_gains import KNOWN_GAINS, Gains, controller_gains, known_gains
from taufit.signals.filtering import lowpass, zero_phase
from taufit.signals.quality import quality_report
from taufit.signals.samples import Samples

__all__ = [
    "DIFFERENTIATIONS",
    "KNOWN_GAINS",
    "Gains",
    "Samples",
    "condition",
    "controller_gains",
    "estimate_delay",
    "known_gains",
    "lowpass",
    "quality_report",
    "tracking_delay",
    "zero_phase",
]
