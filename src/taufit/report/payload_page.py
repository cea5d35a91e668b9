"""Page about a payload: estimate over time, uncertainty and error budget."""

from __future__ import annotations

import html
import json

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.payload import PayloadRun
from taufit.report.charts import Series, chart
from taufit.report.page import Section, bullets, cards, paragraph, render_page, table, verdict_box
from taufit.report.palette import CAPTION, GRID, INK, MODEL, PLOT

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


def payload_page(result: PayloadRun, model: FittedModel, source: str = "") -> str:
    """Self-contained HTML page."""
    sections = [Section("Verdict", _verdict(result))]
    if result.history:
        sections.append(Section("Estimate over time", _animation(result) + _history(result)))
    sections.append(Section("Payload parameters", _parameter_table(result)))
    if result.budget:
        sections.append(Section("Error budget of the mass", _budget(result)))
    if result.events or result.warnings:
        lines = [f"{event.time:.2f} s: {event.text}" for event in result.events]
        sections.append(Section("Notes", bullets(list(dict.fromkeys([*lines, *result.warnings])))))
    title = f"Payload of {model.robot.name}"
    return render_page(title, f"{source}, method {result.method}", sections)


def _verdict(result: PayloadRun) -> str:
    estimate = result.estimate
    low, high = estimate.mass_interval
    interval_text = f"95 % interval {low:.3f} to {high:.3f} kg."
    if not estimate.has_intervals:
        interval_text = "This method has no valid interval: compare it with the method filter."
    if result.refusal:
        word = "Not ready" if estimate.has_intervals and not estimate.ready else "No result"
        return verdict_box("bad", word, result.refusal)
    head = "Nothing that shows" if estimate.empty else f"{estimate.mass:.3f} kg"
    figures = [
        ("ready after", "–" if result.ready_at is None else f"{result.ready_at:.1f} s"),
        (
            "accurate enough after",
            "–" if result.stopped_at is None else f"{result.stopped_at:.1f} s",
        ),
    ]
    if not estimate.empty:
        figures += [
            (
                f"centre {axis} [mm]",
                f"{1e3 * x:.1f} ± {1e3 * NORMAL_95 * s:.1f}"
                if estimate.has_intervals
                else f"{1e3 * x:.1f}",
            )
            for axis, x, s in zip("xyz", estimate.centre, estimate.centre_std, strict=True)
        ]
    return verdict_box("good", head, interval_text) + cards(figures)


def _ready_history(result: PayloadRun) -> list:
    ready = [m for m in result.history if m.ready]
    return ready or list(result.history)


def _history(result: PayloadRun) -> str:
    readings = _ready_history(result)
    time = np.array([m.t for m in readings])
    mass = np.array([m.mass for m in readings])
    series = [Series("mass", mass)]
    if result.estimate.has_intervals:
        low, high = np.array([m.low for m in readings]), np.array([m.high for m in readings])
        series = [Series("mass with 95 % interval", mass, low=low, high=high)]
    return chart(
        time,
        series,
        caption="Mass from readiness on; the band is the 95 % interval",
        xlabel="s",
        ylabel="kg",
        tall=True,
    )


def _animation(result: PayloadRun) -> str:
    """Animation of the estimate, played in the time of the motion."""
    readings = _ready_history(result)
    has_intervals = result.estimate.has_intervals
    lows = np.array([max(m.low if has_intervals else m.mass, 0.0) for m in readings])
    highs = np.array([m.high if has_intervals else m.mass for m in readings])
    # The first estimates may be far off: scale by most of the run.
    top = max(1.1 * float(np.percentile(highs, 90)), 0.1)
    bottom = min(0.95 * float(np.percentile(lows, 10)), 0.9 * top)
    data = [
        [round(m.t, 3), m.mass, low, min(high, 2.0 * top)]
        for m, low, high in zip(readings, lows, highs, strict=True)
    ]
    text = json.dumps({"top": top, "bottom": bottom, "data": data}).replace("<", "\\u003c")
    label = html.escape("Mass and interval while the arm moves", quote=True)
    digits = 2 if top - bottom > 0.4 else 3
    ticks = [(215.0 - 42.5 * k, bottom + (top - bottom) * k / 4.0) for k in range(5)]
    grid = "".join(
        f'<path d="M60 {y:g}H780" stroke="{GRID}"/><text x="52" y="{y + 4:g}" font-size="11" '
        f'fill="{CAPTION}" text-anchor="end">{value:.{digits}f}</text>'
        for y, value in ticks
    )
    return (
        f'<figure><figcaption>{label}</figcaption><svg id="payload-replay" viewBox="0 0 800 230" '
        f'role="img" aria-label="{label}" style="width:100%;background:{PLOT}">{grid}'
        f'<path id="pr-band" fill="{MODEL}33"/><path id="pr-line" fill="none" stroke="{MODEL}" '
        f'stroke-width="2"/><text id="pr-text" x="60" y="24" font-size="13" fill="{INK}"></text>'
        f'<text x="52" y="24" font-size="11" fill="{CAPTION}" text-anchor="end">kg</text></svg>'
        '<button type="button" id="pr-play">Play again</button>'
        f'<script type="application/json" id="pr-data">{text}</script>'
        "<script>(()=>{const d=JSON.parse(document.getElementById('pr-data').textContent),a=d.data,"
        "t0=a[0][0],t1=a[a.length-1][0]||1,X=t=>60+720*(t-t0)/Math.max(t1-t0,1e-9),"
        "Y=m=>215-170*(Math.min(Math.max(m,d.bottom),d.top)-d.bottom)/(d.top-d.bottom),"
        "g=i=>document.getElementById(i);let s;"
        "const draw=n=>{s=s??n;const t=t0+(n-s)/1000*Math.max(1,(t1-t0)/15),"
        "p=a.filter(r=>r[0]<=t);if(p.length){const L=p.map(r=>X(r[0])+' '+Y(r[1])),"
        "u=p.map(r=>X(r[0])+' '+Y(r[3])),l=p.map(r=>X(r[0])+' '+Y(r[2])).reverse(),"
        "e=p[p.length-1];g('pr-line').setAttribute('d','M'+L.join('L'));"
        "g('pr-band').setAttribute('d','M'+u.concat(l).join('L')+'Z');"
        "g('pr-text').textContent=e[0].toFixed(1)+' s   '+e[1].toFixed(3)+' kg   ['+"
        "e[2].toFixed(3)+', '+e[3].toFixed(3)+']';}if(t<t1+0.2)requestAnimationFrame(draw);};"
        "const play=()=>{s=undefined;requestAnimationFrame(draw);};g('pr-play').onclick=play;"
        "play();})();</script></figure>"
    )


def _parameter_table(result: PayloadRun) -> str:
    data = result.estimate.to_dict()
    rows = [("mass [kg]", data["mass"]["value"], data["mass"]["low"], data["mass"]["high"])]
    com, inertia = data["com"], data["inertia"]
    rows += [
        (f"centre {axis} [m]", *values)
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
    commands = result.set_payload()
    if commands is None:
        return paragraph(f"The result must not be used: {result.refusal}")
    lines = "\n".join(f"{maker:<7}{line}" for maker, line in commands["lines"].items())
    return (
        table(("quantity", "value", "low", "high"), rows, text=(0,))
        + paragraph(note)
        + paragraph(f"For the controller, in the frame {commands['frame']}:")
        + f"<pre tabindex='0'>{html.escape(lines)}</pre>"
        + centre_sketch(np.array(commands["cog"]))
    )


def _budget(result: PayloadRun) -> str:
    rows = [(name, f"{100 * share:.0f} %") for name, share in result.budget.items()]
    return table(("source", "share of the variance"), rows, text=(0,)) + paragraph(result.advice)
