"""Model selection. In: a `TorqueModel` and `Samples`. Out: friction terms, shapes and prior scales.

Elsewhere: the fit itself (fitting).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.fitting.selection.friction_terms import (
        TermSelection as TermSelection,
        select_friction_terms as select_friction_terms,
    )
    from taufit.fitting.selection.shapes import fit_shapes as fit_shapes

lazy_package(__name__)
