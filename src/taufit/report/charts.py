"""Charts as data in the page, drawn by a script of the package. No library, no network."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.report.palette import COLOURS, DASHES


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One curve, band or set of points of a chart.

    Attributes:
        name: Name in the legend; empty for none.
        y: Values, or None for a band or a difference.
        x: Abscissa, or None for that of the chart.
        low, high: Edges of a band, or None.
        colour: CSS colour; by position if empty.
        points: Whether to draw dots instead of a line.
        dash: Line pattern [pixels].
        wide: Whether the line is a wide pale one, for a thin one on top of it.
        half: Half width of a band about the series at `about`, or about zero without it.
        half_x: Abscissa of `half`, in between which it is interpolated; None for that of the chart.
        about: Position of the band's middle among the series of all panels, or None for zero.
        difference: Positions of two series whose difference is drawn, or None.
        short: Name beside the cursor's value; `name` if empty.
        loose: Whether the series is left out of the range of the axis.
    """

    name: str
    y: Float[Array, " n"] | None = None
    x: Float[Array, " n"] | None = None
    low: Float[Array, " n"] | None = None
    high: Float[Array, " n"] | None = None
    colour: str = ""
    points: bool = False
    dash: tuple[int, ...] = ()
    wide: bool = False
    half: Float[Array, " m"] | None = None
    half_x: Float[Array, " m"] | None = None
    about: int | None = None
    difference: tuple[int, int] | None = None
    short: str = ""
    loose: bool = False

    @property
    def is_band(self) -> bool:
        """Whether it is a band."""
        return self.half is not None or (self.low is not None and self.y is None)


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One coordinate system of a chart.

    Attributes:
        series: Curves, bands and points.
        ylabel: Quantity with its unit.
        span: Fixed range of the ordinate; None for that of the data.
        log: Whether the ordinate is logarithmic.
        levels: Horizontal lines (value, colour).
    """

    series: Sequence[Series]
    ylabel: str
    span: tuple[float, float] | None = None
    log: bool = False
    levels: Sequence[tuple[float, str]] = ()


def chart(
    x: Float[Array, " n"] | None,
    series: Sequence[Series],
    *,
    caption: str,
    xlabel: str,
    ylabel: str,
    group: str = "",
    tall: bool = False,
    log: bool = False,
) -> str:
    """HTML of one chart with one panel. Charts with the same `group` zoom together."""
    panel = Panel(series, ylabel, log=log)
    return figure(x, [panel], caption=caption, xlabel=xlabel, group=group, tall=tall)


def figure(  # noqa: PLR0913
    x: Float[Array, " n"] | None,
    panels: Sequence[Panel],
    *,
    caption: str,
    xlabel: str,
    note: str = "",
    group: str = "",
    tall: bool = False,
    show_xlabel: bool = True,
    show_ticks: bool = True,
    marks: Sequence[tuple[float, float, str]] = (),
    view_range: tuple[float, float] | None = None,
) -> str:
    """HTML of a chart with one or more panels over one abscissa.

    Args:
        x: Abscissa; None for that of the first chart of the group.
        panels: Coordinate systems from top to bottom.
        caption: Name of the chart.
        xlabel: Quantity of the abscissa with its unit.
        note: Figure at the right of the caption; the cursor's values take its place.
        group: Name of charts with one view and one cursor.
        tall: Whether the panel is higher.
        show_xlabel: Whether `xlabel` is drawn; a picture of several charts needs it once.
        show_ticks: Whether the abscissa has numbers; strips over one axis need them once.
        marks: Shaded parts of the abscissa (from, to, name).
        view_range: Part of the abscissa that is shown first; None for all.
    """
    shading = [{"from": a, "to": b, "name": name} for a, b, name in marks]
    spec = {
        "x": None if x is None else _encode(x, np.float64),
        "group": group,
        "view": view_range,
        "panels": [
            {
                "ylabel": panel.ylabel,
                "xlabel": xlabel if show_xlabel and k == len(panels) - 1 else "",
                "xname": xlabel,
                "above": k < len(panels) - 1 or not show_ticks,
                "span": panel.span,
                "log": panel.log,
                "marks": shading,
                "levels": [{"y": y, "colour": colour} for y, colour in panel.levels],
                "series": [part for i, s in enumerate(panel.series) for part in _series_data(s, i)],
            }
            for k, panel in enumerate(panels)
        ],
    }
    text = json.dumps(spec).replace("<", "\\u003c")
    quantity = re.sub(r"\s*\[.*\]", "", xlabel)
    name = html.escape(caption, quote=True)
    heads = "".join(
        f'<canvas role="img" {"tabindex=0" if k == 0 else "class=strip"} '
        f'aria-label="{name}: {html.escape(panel.ylabel, quote=True)} over {quantity}. '
        f'{html.escape(note, quote=True)}"></canvas>'
        for k, panel in enumerate(panels)
    )
    return (
        f'<figure class="chart{" tall" if tall else ""}" data-at="{html.escape(quantity)}" '
        f'data-x="{html.escape(xlabel)}"><figcaption><b>{html.escape(caption)}</b>'
        f'<span class="note">{html.escape(note)}</span></figcaption>{heads}'
        f'<script type="application/json">{text}</script></figure>'
    )


def chart_group(charts: Sequence[str], name: str, layout: str = "") -> str:
    """Charts of one group with one legend and one toolbar.

    Args:
        charts: HTML of the charts.
        name: Name of the picture, also of its files.
        layout: CSS classes: "joints" for torque over residuals, "rows" for strips over one time
            axis, "pairs" for two columns.
    """
    columns = ""
    if layout == "joints" and len(charts) > 6:
        columns = " four" if len(charts) <= 12 else " five"
        columns += " dense" if len(charts) > 8 else ""
    return (
        f'<div class="charts {layout}{columns}" data-name="{html.escape(name, quote=True)}">'
        f"{''.join(charts)}</div>"
    )


def _series_data(series: Series, position: int) -> list[dict[str, Any]]:
    """Series for the script: a curve with a band counts as a band and a curve."""
    colour = series.colour or COLOURS[position % len(COLOURS)]
    dash = series.dash
    if not (series.colour or dash or series.points or series.is_band):
        dash = DASHES[(position // len(COLOURS)) % len(DASHES)]
    common: dict[str, Any] = {"name": series.name, "colour": colour, "dash": list(dash)}
    if series.short:
        common["short"] = series.short
    if series.loose:
        common["loose"] = True
    if series.x is not None:
        common["x"] = _encode(series.x, np.float64)
    if series.half is not None:
        band = {**common, "kind": "band", "half": _encode(series.half), "about": series.about}
        if series.half_x is not None:
            band["half_x"] = _encode(series.half_x, np.float64)
        return [band]
    out: list[dict[str, Any]] = []
    if series.low is not None and series.high is not None:
        name = series.name if series.y is None else ""
        edges = {"low": _encode(series.low), "high": _encode(series.high)}
        out.append({**common, "name": name, "kind": "band", **edges})
    kind = "points" if series.points else "wide" if series.wide else "line"
    if series.difference is not None:
        out.append({**common, "kind": kind, "minus": list(series.difference)})
    elif series.y is not None:
        out.append({**common, "kind": kind, "y": _encode(series.y)})
    return out


def reduce_samples(
    time: Float[Array, " n"], columns: list[Float[Array, " n"]], points: int = 2000
) -> tuple[Float[Array, " m"], list[Float[Array, " m"]]]:
    """Reduce the number of samples for the page: in every bin, the samples with the lowest and the
    highest value of the first column are kept."""
    if len(time) <= points:
        return time, columns
    index = extreme_samples(columns[0][:, None], points)
    return time[index], [column[index] for column in columns]


def extreme_samples(values: Float[Array, "n k"], points: int) -> Int[Array, " m"]:
    """Indices of at most about `points` samples: per bin, the lowest and the highest of each
    column. The columns share them, as a common cursor requires."""
    count, width = values.shape
    if count <= points:
        return np.arange(count)
    edges = np.linspace(0, count, max(1, points // (2 * width)) + 1).astype(int)
    keep: set[int] = set()
    for start, stop in pairwise(edges):
        part = values[start:stop]
        keep.update((start + part.argmin(axis=0)).tolist())
        keep.update((start + part.argmax(axis=0)).tolist())
    return np.array(sorted(keep))


def _encode(values: Float[Array, " n"], kind: type = np.float32) -> str:
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()
