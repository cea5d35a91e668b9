"""Colours of all pages: one meaning each, in a light and a dark scheme.

Text differs from paper and card by at least 4.5:1, lines by 3:1, and the colours of curves by at
least 30 units of CIE Lab for red- and green-blind eyes (tests/report/test_palette.py).
"""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff",
    "card": "#f4f6f8",
    "ink": "#1b2733",
    "soft": "#53616e",
    "line": "#d3dae0",
    "grid": "#e6eaee",
    "measured": "#82909c",
    "model": "#0a5fa8",
    "residual": "#b04a0a",
    "good": "#0b6e45",
    "warn": "#855400",
    "bad": "#a81f18",
    "body": "#c3cbd3",
    "rim": "#53616e",
}
DARK = {
    "paper": "#12181e",
    "card": "#1a222a",
    "ink": "#e3e9ee",
    "soft": "#a3b0bb",
    "line": "#35424d",
    "grid": "#242e37",
    "measured": "#67737e",
    "model": "#6fb4f0",
    "residual": "#f0934a",
    "good": "#5ccb97",
    "warn": "#e6b655",
    "bad": "#f5948b",
    "body": "#4a5763",
    "rim": "#a3b0bb",
}
# Colours of curves: they must differ for every eye.
CURVES = ("measured", "model", "residual", "ink")


def css(name: str) -> str:
    """Colour of the current scheme, for style sheets, SVG and charts."""
    return f"var(--{name})"


MODEL = css("model")
RESIDUAL = css("residual")
GOOD = css("good")
SECOND_MODEL = css("ink")
LIMIT = css("bad")
MEASURED = css("measured")
OTHER = css("warn")
INK = css("ink")
OUTLINE = css("soft")
CAPTION = css("soft")
GRID = css("line")
PLOT = css("card")
PAPER = css("paper")

# Colours and line patterns of series without a fixed meaning, in order.
COLOURS = (MODEL, RESIDUAL, INK, MEASURED)
DASHES: tuple[tuple[int, ...], ...] = ((), (7, 4), (2, 3), (10, 3, 2, 3))


def style_variables() -> str:
    """CSS variables of both schemes."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in scheme.items()) for scheme in (LIGHT, DARK)
    )
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"@media print{{:root{{color-scheme:light;{light}}}}}"
        f":root.printing{{color-scheme:light;{light}}}"
    )
