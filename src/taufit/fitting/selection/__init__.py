"""Choices made from the data. In: a `TorqueModel` and `Samples`. Out: friction terms and shapes,
and how far to lean on the nominal arm.

Left to others: the fit itself (fitting).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.fitting.selection.friction_terms import (
        TermSelection as TermSelection,
        select_friction_terms as select_friction_terms,
    )
    from taufit.fitting.selection.shapes import fit_shapes as fit_shapes

lazy_room(__name__)
