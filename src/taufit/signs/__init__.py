"""Torque whose sign was not recorded. In: a `TorqueModel` and `Samples` of magnitudes. Out: signs
with a certificate, and samples that any fit takes.

Left to others: the fit itself (fitting).
"""

from taufit.signs.unknown_signs import find_signs, fit_unsigned

__all__ = ["find_signs", "fit_unsigned"]
