"""Where a payload's centre is, seen from the flange: two small drawings."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.report.palette import CAPTION, GRID, INK, MODEL

_SIZE, _HALF = 220.0, 110.0


def sketch(centre: Float[Array, " 3"]) -> str:
    """The centre of mass in the flange's x-z and y-z planes, to one scale."""
    reach = max(float(np.max(np.abs(centre))), 0.03) * 1.25
    views = "".join(
        _view(k * (_SIZE + 20.0), name, float(centre[k]), float(centre[2]), reach)
        for k, name in enumerate("xy")
    )
    return (
        f'<svg viewBox="0 0 {2 * _SIZE + 20:g} {_SIZE:g}" width="{2 * _SIZE + 20:g}" role="img" '
        f'aria-label="centre of mass seen from the flange">{views}</svg>'
    )


def _view(left: float, name: str, across: float, out: float, reach: float) -> str:
    scale = 0.9 * _HALF / reach
    middle, base = left + _HALF, _HALF
    x, y = middle + scale * across, base - scale * out
    half = 0.03 * scale
    return (
        f'<line x1="{left:g}" y1="{base:g}" x2="{left + _SIZE:g}" y2="{base:g}" stroke="{GRID}"/>'
        f'<line x1="{middle:g}" y1="0" x2="{middle:g}" y2="{_SIZE:g}" stroke="{GRID}"/>'
        f'<rect x="{middle - half:.1f}" y="{base:g}" width="{2 * half:.1f}" height="6" '
        f'fill="{INK}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{MODEL}"/>'
        f'<text x="{left + _SIZE - 12:g}" y="{base - 4:g}" fill="{CAPTION}" '
        f'font-size="12">{name}</text>'
        f'<text x="{middle + 4:g}" y="12" fill="{CAPTION}" font-size="12">z</text>'
        f'<text x="{left + 4:g}" y="{_SIZE - 6:g}" fill="{CAPTION}" font-size="12">'
        f"{name} {1e3 * across:.1f} mm, z {1e3 * out:.1f} mm</text>"
    )
