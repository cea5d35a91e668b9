"""Array types, and the letters that name their axes.

n samples, j joints, p parameters, b base parameters, r rows = n*j, k friction terms.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING or "jaxtyping" in sys.modules:  # loaded by whoever checks shapes
    # Real numbers; complex ones where a derivative is taken by a complex step.
    from jaxtyping import Bool, Inexact as Float, Int
else:

    class _AnyShape:
        """Array type with names of its axes that nobody checks: quicker to load than a checker."""

        def __class_getitem__(cls, item: tuple[type, str]) -> type:
            return type("Array", (np.ndarray,), {"dim_str": item[1]})

    Bool = Float = Int = _AnyShape

Array = np.ndarray

__all__ = ["Array", "Bool", "Float", "Int"]
