"""Page about a payload: estimate over time, uncertainty and error budget."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.number_text import (
    count_text,
    decimals_for,
    fixed,
    interval,
    percent,
    quantity,
    significant,
)
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.payload import PayloadRun
from taufit.payload.controller_commands import manufacturer
from taufit.report.charts import Panel, Series, figure
from taufit.report.page import (
    Number,
    Section,
    bullets,
    code_block,
    numbers,
    paragraph,
    render_page,
    statement,
    statements,
    table,
)
from taufit.report.palette import CAPTION, GRID, INK, MODEL

_MAKERS = {"ur": "Universal Robots", "franka": "Franka", "kuka": "KUKA", "abb": "ABB"}
_SIZE, _HALF = 220.0, 110.0


def centre_sketch(centre: Float[Array, " 3"]) -> str:
    """Sketch of the centre of mass in the x-z and y-z planes of the flange, to one scale."""
    reach = max(float(np.max(np.abs(centre))), 0.03) * 1.25
    views = "".join(
        _plane_view(k * (_SIZE + 20.0), name, float(centre[k]), float(centre[2]), reach)
        for k, name in enumerate("xy")
    )
    return (
        f'<svg viewBox="0 0 {2 * _SIZE + 20:g} {_SIZE:g}" width="{2 * _SIZE + 20:g}" role="img" '
        f'aria-label="centre of mass seen from the flange">{views}</svg>'
    )


def _plane_view(left: float, name: str, across: float, out: float, reach: float) -> str:
    scale = 0.9 * _HALF / reach
    middle, base = left + _HALF, _HALF
    x, y = middle + scale * across, base - scale * out
    half = 0.03 * scale
    return (
        f'<line x1="{left:g}" y1="{base:g}" x2="{left + _SIZE:g}" y2="{base:g}" stroke="{GRID}"/>'
        f'<line x1="{middle:g}" y1="0" x2="{middle:g}" y2="{_SIZE - 24:g}" stroke="{GRID}"/>'
        f'<rect x="{middle - half:.1f}" y="{base:g}" width="{2 * half:.1f}" height="6" '
        f'fill="{INK}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{MODEL}"/>'
        f'<text x="{left + _SIZE - 12:g}" y="{base - 4:g}" fill="{CAPTION}" '
        f'font-size="12">{name}</text>'
        f'<text x="{middle + 4:g}" y="12" fill="{CAPTION}" font-size="12">z</text>'
        f'<text x="{left + 4:g}" y="{_SIZE - 6:g}" fill="{CAPTION}" font-size="12">'
        f"{name} {fixed(1e3 * across, 1)} mm, z {fixed(1e3 * out, 1)} mm</text>"
    )


def payload_page(result: PayloadRun, model: FittedModel, source: str = "") -> str:
    """Self-contained HTML page."""
    commands = result.set_payload()
    chart_part = _history(result) if result.history else ""
    controller_part = "" if commands is None else _controller(commands, model.robot.name)
    budget = _budget(result) if result.budget else ""
    sketch = "" if commands is None else _sketch(commands)
    head = (
        f'{_statements(result)}<div class="beside wide"><div>{chart_part}<div class="pair">'
        f"{sketch}<div>{budget}</div></div></div><aside>{_numbers(result)}{controller_part}</aside></div>"
    )
    sections = [Section("Verdict", head), Section("Payload parameters", _parameter_table(result))]
    if result.events or result.warnings:
        lines = [f"{fixed(event.time, 2)} s: {event.text}" for event in result.events]
        notes = list(dict.fromkeys([*lines, *result.warnings]))
        sections.append(Section("Notes", bullets(notes), count_text(len(notes), "remark")))
    subtitle = " · ".join(x for x in (source, f"method {result.method}") if x)
    return render_page(f"Payload of {model.robot.name}", subtitle, sections)


def _statements(result: PayloadRun) -> str:
    estimate = result.estimate
    low, high = estimate.mass_interval
    if result.refusal:
        word = "Not ready" if estimate.has_intervals and not estimate.ready else "No result"
        mass = statement("bad", "Mass", word, "", detail=[result.refusal])
    elif estimate.empty:
        mass = statement("good", "Mass", "Nothing", " that shows is carried")
    elif estimate.has_intervals:
        half = 0.5 * (high - low)
        decimals = decimals_for(half, 2)
        mass = statement(
            "good",
            "Mass",
            interval(estimate.mass, half, "kg"),
            " (95 %)",
            detail=[f"Between {fixed(low, decimals)} and {fixed(high, decimals)} kg."],
        )
    else:
        mass = statement(
            "warn",
            "Mass",
            quantity(estimate.mass, "kg"),
            ", without interval",
            detail=["This method has no valid interval: compare it with the method filter."],
        )
    largest = max(result.budget.items(), key=lambda item: item[1]) if result.budget else None
    limit = (
        statement("model", "What limits it", "Unknown", " for this method")
        if largest is None
        else statement(
            "model",
            "What limits it",
            largest[0][:1].upper() + largest[0][1:],
            f": {percent(largest[1], 0)} of the variance",
            detail=[result.advice] if result.advice else [],
        )
    )
    return statements(mass, limit)


def _numbers(result: PayloadRun) -> str:
    estimate = result.estimate
    out = [] if result.ready_at is None else [(fixed(result.ready_at, 1), "s", "until ready")]
    if result.stopped_at is not None:
        out.append((fixed(result.stopped_at, 1), "s", "until accurate enough"))
    if not estimate.empty and not result.refusal:
        out += [
            (
                interval(1e3 * x, 1e3 * NORMAL_95 * s if estimate.has_intervals else 0.0),
                "mm",
                f"centre of mass, {axis} of the last link",
            )
            for axis, x, s in zip(
                "xyz", estimate.centre.tolist(), estimate.centre_std.tolist(), strict=True
            )
        ]
    return numbers(out)


def _controller(commands: dict[str, Any], robot: str) -> str:
    """Lines for the controller, those of the robot's own make first."""
    robot_maker = manufacturer(robot) or ""
    lines = commands["lines"]
    open_lines = {robot_maker: lines[robot_maker]} if robot_maker in lines else lines
    folded_lines = {maker: line for maker, line in lines.items() if maker not in open_lines}
    body = "".join(
        f"<p>{_MAKERS.get(m, m)}</p>{code_block(line)}" for m, line in open_lines.items()
    )
    if folded_lines:
        folded_blocks = "".join(
            f"<p>{_MAKERS.get(m, m)}</p>{code_block(line)}" for m, line in folded_lines.items()
        )
        body += f"<details><summary>Other makes</summary>{folded_blocks}</details>"
    return (
        f'<div class="next"><h2>For the controller</h2><p class="soft">In the frame '
        f"{html.escape(commands['frame'])}</p>{body}</div>"
    )


def _sketch(commands: dict[str, Any]) -> str:
    return (
        f"<figure><figcaption><b>Centre of mass at the flange</b></figcaption>"
        f"{centre_sketch(np.array(commands['cog']))}</figure>"
    )


def _ready_history(result: PayloadRun) -> list:
    ready_masses = [m for m in result.history if m.ready]
    return ready_masses or list(result.history)


def _history(result: PayloadRun) -> str:
    readings = _ready_history(result)
    time = np.array([m.t for m in readings])
    mass = np.array([m.mass for m in readings])
    series = [Series("mass", mass, colour=MODEL)]
    span = None
    if result.estimate.has_intervals:
        low, high = np.array([m.low for m in readings]), np.array([m.high for m in readings])
        series = [Series("95 % interval", None, low=low, high=high, colour=MODEL), *series]
        # The first intervals may be wide: the range is that of most of the run.
        bottom, top = float(np.percentile(low, 25)), float(np.percentile(high, 75))
        room = 0.25 * max(top - bottom, 1e-3)
        span = (min(bottom, float(mass.min())) - room, max(top, float(mass.max())) + room)
    return figure(
        time, [Panel(series, "mass [kg]", span)], caption="Mass while the arm moves",
        xlabel="time [s]",
    )  # fmt: skip


def _parameter_table(result: PayloadRun) -> str:
    data = result.estimate.to_dict()
    rows = [("mass [kg]", data["mass"]["value"], data["mass"]["low"], data["mass"]["high"])]
    com, inertia = data["com"], data["inertia"]
    rows += [
        (f"centre {axis} [mm]", *map(_millimetres, values))
        for axis, *values in zip("xyz", com["value"], com["low"], com["high"], strict=True)
    ]
    rows += [
        (f"{name} [kg m²]", *values)
        for name, *values in zip(
            inertia["entries"], inertia["value"], inertia["low"], inertia["high"], strict=True
        )
    ]
    note = "Frame of the last link; inertia about the centre of mass. "
    if result.estimate.from_prior:
        note += "The inertia is mostly the prior shape: it is hardly identifiable from this motion."
    if result.refusal:
        return paragraph(f"The result must not be used: {result.refusal}")
    shown_rows = [
        (name, *(Number(x, text) for x, text in zip(values, _row_texts(values), strict=True)))
        for name, *values in rows
    ]
    header = ("quantity", "value", "low", "high")
    return table(header, shown_rows, text=(0,), name="Payload parameters") + paragraph(note)


def _millimetres(length: float | None) -> Any:
    return None if length is None else 1e3 * length


def _row_texts(values: list[float | None]) -> list[str]:
    """Value and interval with the decimals of the interval's half width."""
    value, low, high = values
    if low is None or high is None or not high > low:
        return [significant(x, 4) for x in (value, low, high)]
    decimals = decimals_for(0.5 * (high - low), 2)
    return [fixed(x, decimals) for x in (value, low, high)]


def _budget(result: PayloadRun) -> str:
    """Share of each source in the variance of the mass, as bars."""
    bars = "".join(
        f"<span>{html.escape(name)}</span><i style='width:{100 * share:.1f}%'></i>"
        f"<b>{percent(share, 0) if share >= 0.005 else '< 1 %'}</b>"
        for name, share in sorted(result.budget.items(), key=lambda item: -item[1])
    )
    return f'<h3>Error budget of the mass</h3><div class="bars">{bars}</div>'
