"""Friction over speed, temperature and load: one coloured map per joint and load."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.report.charts import Series, chart
from taufit.report.page import paragraph
from taufit.report.palette import COLOURS, LIGHT
from taufit.terms import TermInput, needs, steady_friction_model, typical_channels

_COLUMNS, _ROWS = 24, 14
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 320, 190, 44, 34


def friction_map(model: FittedModel, *, loads: Any = None) -> str:
    """Maps of friction torque over speed and temperature, and curves at three temperatures.

    Within the training range. Load-dependent friction has one map without load and one at a high
    load; joints without load term have one.

    Args:
        model: Fitted model with temperature-dependent friction; others give an empty text.
        loads: Load torque of the second map, per joint [N m]; default three quarters of the largest
            torque of the training data.
    """
    friction: Any = model.friction_model
    ranges = model.training.ranges
    if friction is None or not friction.law or ranges.temperature is None:
        return ""
    if ranges.velocity is None or ranges.torque is None:
        return ""
    joints = model.robot.joints
    max_speed = ranges.velocity.largest
    low, high = ranges.temperature.low, ranges.temperature.high
    if loads is None:
        loads = 0.75 * ranges.torque.largest
    parts = [
        paragraph(
            "Steady-state friction over speed and joint temperature, within the training range. "
            "Numbers "
            "in the corners are N m; the curves below are sections at the lowest, middle and "
            "highest "
            "temperature."
        )
    ]
    for j in range(joints):
        has_load = needs(friction, "load") and _depends_on_load(
            model, j, max_speed[j], low[j], float(loads[j])
        )
        levels = [0.0] + ([float(loads[j])] if has_load else [])
        figures = []
        for load in levels:
            speeds = np.linspace(0.0, max_speed[j], _COLUMNS + 1)[1:]
            temperatures = np.linspace(low[j], max(high[j], low[j] + 1e-6), _ROWS)
            grid = np.stack([steady_friction(model, j, speeds, t, load) for t in temperatures])
            name = f"Joint {j + 1}" + (f", load {load:.3g} N m" if has_load else "")
            figures.append(heat_map(speeds, temperatures, grid, name))
        curves = [
            Series(
                f"{t:.0f} degC",
                steady_friction(
                    model, j, np.linspace(0.01 * max_speed[j], max_speed[j], 120), t, 0.0
                ),
                colour=colour,
            )
            for t, colour in zip((low[j], 0.5 * (low[j] + high[j]), high[j]), COLOURS, strict=False)
        ]
        figures.append(
            chart(
                np.linspace(0.01 * max_speed[j], max_speed[j], 120),
                curves,
                caption=f"Joint {j + 1}, {model.robot.joint_names[j]}",
                xlabel="speed [rad/s]",
                ylabel="friction [N m]",
            )
        )
        parts.append(f'<div class="grid">{"".join(figures)}</div>')
    return "".join(parts)


def steady_friction(
    model: FittedModel, joint: int, speed: Float[Array, " n"], temperature: float, load: float
) -> Float[Array, " n"]:
    """Steady-state friction of one joint at positive speeds [N m]."""
    velocity, n = np.asarray(speed, float), len(speed)
    channels = {
        **typical_channels(model.term_sum, velocity),
        "temperature": np.full(n, temperature),
    }
    inputs = TermInput(velocity, load=np.full(n, load), channels=channels)
    columns = steady_friction_model(model.term_sum.of_joint(joint)).columns(
        inputs, model.joint_shape[joint]
    )
    return columns @ model.values[model.layout.drive_of(joint)]


def _depends_on_load(
    model: FittedModel, joint: int, speed: float, temperature: float, load: float
) -> bool:
    speeds = np.array([speed])
    loaded, unloaded = (
        steady_friction(model, joint, speeds, temperature, x)[0] for x in (load, 0.0)
    )
    return bool(abs(loaded - unloaded) > 1e-6 * abs(unloaded))


def heat_map(
    x: Float[Array, " n"], y: Float[Array, " m"], values: Float[Array, "m n"], caption: str
) -> str:
    """SVG map of coloured cells: x to the right [rad/s], y upwards [degC]."""
    low, high = float(values.min()), float(values.max())
    width = (_WIDTH - _LEFT - 4) / len(x)
    height = (_HEIGHT - _BOTTOM - 4) / len(y)
    cells = []
    for i, row in enumerate(values):
        top = 4 + (len(y) - 1 - i) * height
        for k, value in enumerate(row):
            share = (value - low) / (high - low) if high > low else 0.5
            cells.append(
                f'<rect x="{_LEFT + k * width:.1f}" y="{top:.1f}" width="{width + 0.5:.1f}" '
                f'height="{height + 0.5:.1f}" fill="{_map_colour(share)}"><title>{x[k]:.2f} rad/s, '
                f"{y[i]:.1f} degC: {value:.3g} N m</title></rect>"
            )

    def label_text(px: float, py: float, words: str, anchor: str = "middle", fill: str = "") -> str:
        ink = f' fill="{fill}"' if fill else ' fill="currentColor"'
        return (
            f'<text x="{px:.0f}" y="{py:.0f}" text-anchor="{anchor}" font-size="11"{ink}>'
            f"{html.escape(words)}</text>"
        )

    right, bottom = _WIDTH - 8, _HEIGHT - _BOTTOM
    labels = [
        label_text(_LEFT, bottom + 14, f"{x[0]:.2g}", "start"),
        label_text(right, bottom + 14, f"{x[-1]:.2g} rad/s", "end"),
        label_text(_LEFT - 4, bottom, f"{y[0]:.0f}", "end"),
        label_text(_LEFT - 4, 14, f"{y[-1]:.0f}", "end"),
        label_text(_LEFT - 4, 0.5 * bottom, "degC", "end"),
        label_text(_LEFT + 6, bottom - 6, f"{values[0, 0]:.3g}", "start", LIGHT["paper"]),
        label_text(right - 2, bottom - 6, f"{values[0, -1]:.3g}", "end", LIGHT["paper"]),
        label_text(_LEFT + 6, 16, f"{values[-1, 0]:.3g}", "start", LIGHT["paper"]),
        label_text(right - 2, 16, f"{values[-1, -1]:.3g}", "end", LIGHT["paper"]),
    ]
    return (
        f'<figure class="map"><figcaption>{html.escape(caption)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="'
        f'{html.escape(caption, quote=True)}" style="width:100%;height:auto">'
        f"{''.join(cells)}{''.join(labels)}</svg></figure>"
    )


def _map_colour(share: float) -> str:
    """Colour from deep blue (low friction) over purple to orange (high)."""
    stops = np.array([[20, 60, 110], [110, 60, 130], [190, 70, 60], [215, 120, 20]], float)
    position = float(np.clip(share, 0.0, 1.0)) * (len(stops) - 1)
    k = min(int(position), len(stops) - 2)
    mixed = stops[k] + (position - k) * (stops[k + 1] - stops[k])
    return "#" + "".join(f"{round(c):02x}" for c in mixed)
