"""Annotations are checked while tests run: every array's shape and type, every argument's class.

tests/conftest.py switches it on unless TAUFIT_SHAPES=0; the axes' letters are bound per call, so
`Float[Array, "n j"]` twice in one signature means the same n and the same j twice.
"""

from __future__ import annotations

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

# Rooms whose annotations are true; a room joins by being listed and passing.
ROOMS = ["taufit.robot", "taufit.dynamics", "taufit.signals"]

# NumPy's scalars are numbers wherever numbers are meant, and whole numbers are real ones.
_NUMBERS = FrozenDict(
    {float: float | int | np.number, int: int | np.integer, bool: bool | np.bool_}
)

checker = beartype(conf=BeartypeConf(hint_overrides=_NUMBERS))
