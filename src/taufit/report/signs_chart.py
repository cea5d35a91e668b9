"""Chart of |torque| per joint with segments coloured by recovered sign and certainty."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.report.palette import INK, MODEL, OUTLINE, PAPER, RESIDUAL

if TYPE_CHECKING:
    from taufit.signs.unknown_signs import RecoveredSigns, SignedSegment, UnsignedFit

_POSITIVE, _NEGATIVE, _CURVE, _INK = MODEL, RESIDUAL, OUTLINE, INK
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _ROW_GAP = 960.0, 92.0, 64.0, 12.0, 34.0, 14.0
_MAX_POINTS = 1200


def signs_chart(result: RecoveredSigns | UnsignedFit) -> str:
    """Self-contained SVG: blue is positive, orange negative, hatched is uncertain.

    Segments show their sign, joint, time and margin as tooltips.
    """
    from taufit.signs.unknown_signs import UnsignedFit

    signs = result.recovery if isinstance(result, UnsignedFit) else result
    samples = signs.samples
    torque = samples.torque if samples.raw_torque is None else samples.raw_torque
    joints = sorted({segment.joint for segment in signs.segments})
    run_offsets, total = _run_offsets(signs)
    height = _TOP + len(joints) * (_HEIGHT + _ROW_GAP) + 30.0
    plot = _WIDTH - _LEFT - _RIGHT
    scale = plot / max(total, 1e-9)
    ambiguous = int(signs.ambiguous.sum())
    title = (
        f"{len(signs.segments)} segments, {ambiguous} not sure, "
        f"{'proven optimal' if signs.certified else 'not proven'}, "
        f"chi2 per degree of freedom {signs.chi2_per_dof:.2f}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'role="img" aria-label="{html.escape(title, quote=True)}" '
        'style="max-width:100%;height:auto;font:12px system-ui,sans-serif">',
        '<defs><pattern id="ambiguous" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><path d="M0 0V6" stroke="{PAPER}" stroke-width="3.4"/>'
        "</pattern></defs>",
        f'<rect width="{_WIDTH:.0f}" height="{height:.0f}" fill="{PAPER}"/>',
        f'<text x="{_LEFT}" y="20" fill="{_INK}">{html.escape(title)}</text>',
        _legend(),
    ]
    clock = samples.time + run_offsets[samples.run]
    for row, joint in enumerate(joints):
        top = _TOP + row * (_HEIGHT + _ROW_GAP)
        magnitude = np.abs(torque[:, joint])
        peak = float(np.max(magnitude, initial=0.0)) or 1.0
        parts.append(
            f'<g><text x="{_LEFT - 8}" y="{top + 14:.1f}" text-anchor="end" fill="{_INK}">joint '
            f'{joint + 1}</text><text x="{_LEFT - 8}" y="{top + 30:.1f}" text-anchor="end" '
            f'fill="{_CURVE}">{peak:.3g} N m</text>'
            f'<path d="M{_LEFT} {top + _HEIGHT:.1f}h{plot:.1f}" stroke="{_CURVE}" '
            'stroke-width="0.6"/>'
        )
        parts.extend(
            _segment_box(segment, run_offsets[segment.run], scale, top)
            for segment in signs.segments
            if segment.joint == joint
        )
        for run in np.unique(samples.run):
            rows = samples.run == run
            parts.append(_curve(clock[rows], magnitude[rows], scale, top, peak))
        parts.append("</g>")
    parts.append(_axis(total, scale, height - 18.0))
    parts.append("</svg>")
    return "".join(parts)


def _run_offsets(signs: RecoveredSigns) -> tuple[Float[Array, " r"], float]:
    """Start of each run in the chart, one after the other, and total duration [s]."""
    samples = signs.samples
    runs = np.arange(int(samples.run.max(initial=0)) + 1)
    time_ranges = [
        (float(samples.time[samples.run == r].min()), float(samples.time[samples.run == r].max()))
        if np.any(samples.run == r)
        else (0.0, 0.0)
        for r in runs
    ]
    lengths = np.array([high - low for low, high in time_ranges])
    gap = 0.01 * lengths.sum()
    run_starts = np.concatenate([[0.0], np.cumsum(lengths + gap)[:-1]])
    return run_starts - np.array([low for low, _ in time_ranges]), float(
        lengths.sum() + gap * (len(runs) - 1)
    )


def _segment_box(segment: SignedSegment, start: float, scale: float, top: float) -> str:
    x, width = _LEFT + (segment.t0 + start) * scale, (segment.t1 - segment.t0) * scale
    colour = _POSITIVE if segment.sign > 0 else _NEGATIVE
    margin = f"{segment.margin:.1f}" if np.isfinite(segment.margin) else "beyond what was searched"
    label = (
        f"joint {segment.joint + 1}, {segment.t0:.2f}-{segment.t1:.2f} s, sign "
        f"{segment.sign:+d}, margin {margin}"
    )
    if segment.reason:
        label += f": {segment.reason}"
    box = f'x="{x:.1f}" y="{top:.1f}" width="{max(width, 0.5):.1f}" height="{_HEIGHT:.0f}"'
    out = f'<g><title>{html.escape(label)}</title><rect {box} fill="{colour}" opacity="0.32"/>'
    if segment.ambiguous:
        out += f'<rect {box} fill="url(#ambiguous)" opacity="0.75"/>'
    if width > 7.0:
        mark = "+" if segment.sign > 0 else "\N{MINUS SIGN}"
        mark += "?" if segment.ambiguous and width > 14.0 else ""
        out += (
            f'<text x="{x + width / 2:.1f}" y="{top + 12:.1f}" text-anchor="middle" '
            f'fill="{colour}" font-weight="600">{mark}</text>'
        )
    return out + "</g>"


def _curve(
    clock: Float[Array, " n"], magnitude: Float[Array, " n"], scale: float, top: float, peak: float
) -> str:
    step = max(1, len(clock) // _MAX_POINTS)
    x = _LEFT + clock[::step] * scale
    y = top + _HEIGHT * (1.0 - 0.82 * magnitude[::step] / peak)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{_CURVE}" stroke-width="1"/>'


def _legend() -> str:
    out, x = [], _WIDTH - 330.0
    for colour, text, is_hatched in (
        (_POSITIVE, "positive", False),
        (_NEGATIVE, "negative", False),
        (_CURVE, "hatched: not sure", True),
    ):
        box = f'x="{x:.0f}" y="9" width="14" height="14"'
        out.append(f'<rect {box} fill="{colour}" opacity="0.4"/>')
        if is_hatched:
            out.append(f'<rect {box} fill="url(#ambiguous)" opacity="0.75"/>')
        out.append(f'<text x="{x + 20:.0f}" y="20" fill="{_INK}">{text}</text>')
        x += 90.0
    return "".join(out)


def _axis(total: float, scale: float, y: float) -> str:
    step = 10.0 ** np.floor(np.log10(max(total, 1e-9) / 4.0))
    step *= next(k for k in (1.0, 2.0, 5.0, 10.0) if total / (step * k) <= 9.0)
    ticks = np.arange(0.0, total + 1e-9, step)
    return "".join(
        f'<text x="{_LEFT + t * scale:.1f}" y="{y:.1f}" text-anchor="middle" fill="{_INK}">'
        f"{t:g}{' s' if t == ticks[-1] else ''}</text>"
        for t in ticks
    )
