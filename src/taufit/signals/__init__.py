"""From what was measured to what can be fitted. In: a `Recording`. Out: `Samples`.

Left to others: models of torque (dynamics, friction).
"""

from taufit.signals.samples import Samples

__all__ = ["Samples"]
