"""Charts as data in the page, drawn by a script of the package. No library, no network."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.report.palette import COLOURS


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One curve, band or set of points of a chart.

    Attributes:
        name: Name in the legend; empty for none.
        y: Values, or None for a band only.
        x: Abscissa, or None for that of the chart.
        low, high: Edges of a band, or None.
        colour: CSS colour; by position if empty.
        points: Whether to draw dots instead of a line.
        dash: Line pattern [pixels].
    """

    name: str
    y: Float[Array, " n"] | None
    x: Float[Array, " n"] | None = None
    low: Float[Array, " n"] | None = None
    high: Float[Array, " n"] | None = None
    colour: str = ""
    points: bool = False
    dash: tuple[int, ...] = ()


def chart(
    x: Float[Array, " n"],
    series: list[Series],
    *,
    caption: str,
    xlabel: str,
    ylabel: str,
    group: str = "",
    tall: bool = False,
) -> str:
    """HTML of one chart. Charts with the same `group` zoom together."""
    spec = {
        "x": _encode_floats(x),
        "xlabel": xlabel,
        "ylabel": ylabel,
        "group": group,
        "series": [
            {
                "name": s.name,
                "color": s.colour or COLOURS[i % len(COLOURS)],
                "points": s.points,
                "dash": list(s.dash),
                **{
                    key: _encode_floats(value)
                    for key, value in (("y", s.y), ("x", s.x), ("low", s.low), ("high", s.high))
                    if value is not None
                },
            }
            for i, s in enumerate(series)
        ],
    }
    text = json.dumps(spec).replace("<", "\\u003c")
    return (
        f'<figure class="chart{" tall" if tall else ""}"><figcaption>{html.escape(caption)}'
        f'</figcaption><div class="legend"></div><canvas role="img" '
        f'aria-label="{html.escape(caption, quote=True)}"></canvas><div class="readout"></div>'
        f'<script type="application/json">{text}</script></figure>'
    )


def reduce_samples(
    time: Float[Array, " n"], columns: list[Float[Array, " n"]], points: int = 2000
) -> tuple[Float[Array, " m"], list[Float[Array, " m"]]]:
    """Reduce the number of samples for the page: in every bin, the samples with the lowest and the
    highest value of the first column are kept."""
    n = len(time)
    if n <= points:
        return time, columns
    edges = np.linspace(0, n, points // 2 + 1).astype(int)
    keep = []
    for start, stop in pairwise(edges):
        part = columns[0][start:stop]
        keep += sorted({start + int(np.argmin(part)), start + int(np.argmax(part))})
    index = np.array(keep)
    return time[index], [column[index] for column in columns]


def _encode_floats(values: Float[Array, " n"]) -> str:
    return base64.b64encode(np.ascontiguousarray(values, np.float32).tobytes()).decode()
