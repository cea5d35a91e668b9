"""Sign recovery for unsigned torque. In: a `TorqueModel` and `Samples` of torque magnitudes. Out:
signs with a certificate, and signed samples for any fit.

Left to others: the fit itself (fitting).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.signs.unknown_signs import find_signs as find_signs, fit_unsigned as fit_unsigned

lazy_package(__name__)
