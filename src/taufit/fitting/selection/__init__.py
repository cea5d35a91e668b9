"""Model selection. In: a `TorqueModel` and `Samples`. Out: friction terms, shapes and prior scales.

Elsewhere: the fit itself (fitting).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.fitting.selection.shapes import fit_shapes as fit_shapes
    from taufit.fitting.selection.term_selection import (
        TermSelection as TermSelection,
        select_friction_terms as select_friction_terms,
    )

lazy_package(__name__)
