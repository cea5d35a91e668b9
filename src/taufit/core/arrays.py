"""Array types, and the letters that name their axes.

n samples, j joints, p parameters, b base parameters, r rows = n*j, k friction terms.
"""

from __future__ import annotations

import numpy as np

# Real numbers; complex ones where a derivative is taken by a complex step.
from jaxtyping import Bool, Inexact as Float, Int

Array = np.ndarray

__all__ = ["Array", "Bool", "Float", "Int"]
