"""From samples to parameters. In: a `TorqueModel` and `Samples`. Out: an `Estimate`.

Left to others: whether to believe it (validation), what an arm carries (payload).
"""

from taufit.estimation.information import Information

__all__ = ["Information"]
