"""Colours of all pages: one meaning each, the same in all charts."""

from __future__ import annotations

MODEL = "#14639e"
RESIDUAL = "#d1622b"
GOOD = "#1a7f4b"
SECOND_MODEL = "#8a4fa3"
LIMIT = "#b3261e"
MEASURED = "#6b7a86"
OTHER = "#b08a00"
INK = "#22313c"
OUTLINE = "#3c4650"
CAPTION = "#5b6b7a"
GRID = "#d9e0e6"
PLOT = "#fafbfc"
PAPER = "#fff"

# Colours of series without a fixed meaning, in order.
COLOURS = (MODEL, RESIDUAL, GOOD, SECOND_MODEL, LIMIT, MEASURED, OTHER)
