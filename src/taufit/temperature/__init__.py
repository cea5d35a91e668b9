"""Temperature-dependent friction. In: a `TorqueModel` and `Samples`. Out: the model with a
temperature law, and estimated temperatures where none were measured.

Left to others: the laws themselves (friction).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.temperature.runwise_fits import repeat_identification as repeat_identification
    from taufit.temperature.temperature_slopes import (
        friction_at as friction_at,
        select_temperature_law as select_temperature_law,
    )

lazy_package(__name__)
