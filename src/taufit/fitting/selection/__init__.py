"""Choices made from the data. In: a `TorqueModel` and `Samples`. Out: friction terms and shapes,
and how far to lean on the nominal arm.

Left to others: the fit itself (fitting).
"""

from taufit.fitting.selection.friction_terms import Choice, choose
from taufit.fitting.selection.shapes import fit_shapes

__all__ = ["Choice", "choose", "fit_shapes"]
