"""Strip of dots over one axis: each named value a dot, outliers with their names, as SVG."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.number_text import MINUS, fixed
from taufit.report.palette import css

_WIDTH, _HEIGHT, _BASE, _LEFT, _RIGHT = 380.0, 150.0, 122.0, 24.0, 350.0
_RADIUS = 4.6
# Largest number of dots; more values become columns of a histogram.
_MAX_DOTS = 100
_BINS = 48


def dot_strip(
    caption: str,
    values: Float[Array, " n"],
    names: Sequence[str],
    is_outlier: Sequence[bool],
    limit: float,
) -> str:
    """SVG of values in percent.

    Args:
        caption: Title.
        values: Values [%].
        names: Name of each value, for the outliers and for the pointer.
        is_outlier: Whether a value is named.
        limit: Value from which outliers are named; infinite for none.
    """
    edge = limit if np.isfinite(limit) else 0.0
    low = min(float(values.min()), -20.0)
    high = max(float(values.max()), 1.15 * edge, 20.0)
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 10**6) if (high - low) / s <= 4.5)
    low, high = step * np.floor(low / step), step * np.ceil(high / step)

    def place(value: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (value - low) / (high - low)

    ticks = np.arange(low, high + 0.5 * step, step)
    axis = "".join(
        f'<path d="M{place(t):.1f} 26V{_BASE}" stroke="{css("grid")}"/><text x="{place(t):.1f}" '
        f'y="{_BASE + 16}" text-anchor="middle" font-size="12" fill="{css("soft")}">'
        f"{_signed(float(t))}</text>"
        for t in ticks
    )
    axis += f'<path d="M{_LEFT} {_BASE}H{_RIGHT}" stroke="{css("line")}"/>'
    if np.isfinite(limit):
        axis += (
            f'<path d="M{place(limit):.1f} 26V{_BASE}" stroke="{css("bad")}" stroke-width="1.5" '
            'stroke-dasharray="5 4"/>'
        )
    inliers = [k for k in range(len(values)) if not is_outlier[k]]
    outliers = [k for k in range(len(values)) if is_outlier[k]]
    body = _columns(values[inliers], place) if len(inliers) > _MAX_DOTS else ""
    body += _dots(values, names, inliers if len(inliers) <= _MAX_DOTS else [], outliers, place)
    note = (
        "none stands out"
        if not outliers
        else f"{names[outliers[0]]} {_signed(float(values[outliers[0]]))}"
    )
    note += f" and {len(outliers) - 1} more" if len(outliers) > 1 else ""
    label = html.escape(f"{caption}: {len(values)} robots, {note}", quote=True)
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{label}"><text x="0" '
        f'y="14" font-size="13" font-weight="650" fill="{css("ink")}">{html.escape(caption)}</text>'
        f'<text x="{_WIDTH - 4}" y="14" text-anchor="end" font-size="12" fill="{css("soft")}">'
        f"{html.escape(note)}</text>{axis}{body}</svg>"
    )


def _dots(
    values: Float[Array, " n"],
    names: Sequence[str],
    usual: Sequence[int],
    odd: Sequence[int],
    place: object,
) -> str:
    """Dots, stacked where they meet."""
    out = []
    label_spans: list[tuple[float, float]] = []
    for k in sorted([*usual, *odd], key=lambda k: float(values[k])):
        x = place(float(values[k]))  # type: ignore[operator]
        y = _BASE - _RADIUS - 1.0
        while any(
            abs(x - a) < 2 * _RADIUS and abs(y - b) < 2 * _RADIUS - 0.1 for a, b in label_spans
        ):
            y -= 2 * _RADIUS + 0.4
        label_spans.append((x, y))
        is_odd = k in odd
        colour, opacity = (css("residual"), 1.0) if is_odd else (css("model"), 0.75)
        out.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" '
            f'fill="{colour}" fill-opacity="{opacity:g}">'
            f"<title>{html.escape(names[k])}: {_signed(float(values[k]))}</title></circle>"
        )
        if is_odd:
            at = min(max(x, 30.0), _WIDTH - 30.0)
            out.append(
                f'<text x="{at:.1f}" y="{y - 8:.1f}" text-anchor="middle" font-size="12.5" '
                f'font-weight="650" fill="{css("residual")}">{html.escape(names[k])}</text>'
            )
    return "".join(out)


def _columns(values: Float[Array, " n"], place: object) -> str:
    counts, edges = np.histogram(values, _BINS)
    height = (_BASE - 36.0) / max(int(counts.max()), 1)
    return "".join(
        f'<rect x="{place(float(a)):.1f}" y="{_BASE - height * count:.1f}" '  # type: ignore[operator]
        f'width="{max(place(float(b)) - place(float(a)) - 0.5, 0.5):.1f}" '  # type: ignore[operator]
        f'height="{height * count:.1f}" fill="{css("model")}" fill-opacity="0.75"><title>'
        f"{count} robots</title></rect>"
        for count, a, b in zip(counts.tolist(), edges[:-1], edges[1:], strict=True)
        if count
    )


def _signed(value: float) -> str:
    text = fixed(value, 0)
    return f"{text} %" if text == "0" or text.startswith(MINUS) else f"+{text} %"
