"""C99 without allocation: robot dynamics and friction from the traced model.

In: a `FittedModel`. Out: the texts of source, headers and CMake target. `arm.c`, `arm.h`, `arm.hpp`
and `arm.cmake` are templates in their own language; tables and friction are filled in here.
"""

from taufit.export.c.names import c_name
from taufit.export.c.texts import CTexts, c_texts

__all__ = ["CTexts", "c_name", "c_texts"]
