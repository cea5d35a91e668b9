# ruff: noqa: E501
"""CPU of moving charts in a browser without a GPU, all of its processes counted.

Six charts of 5,000 points with two curves and a band, 25 frames per second asked for: what the
live page draws, and what uPlot 1.6.16 drew for 18 to 20 ms.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row

CHARTS, POINTS, SECONDS = 6, 5_000, 6.0
PAGE = """<!doctype html><meta charset=utf-8><style>{style}
main {{ display: grid; grid-template-columns: repeat(3, 400px); }} figure canvas {{ height: 180px }}
</style><main>{figures}</main><script>{script}</script><script>
const wave = (k, t) => 50 * Math.sin(t * (0.3 + 0.1 * k)) + 8 * Math.sin(t * 3.1 + k) + Math.sin(t * 37);
const N = {points}, frames = [];
for (let f = 0; f < 25; f++) {{
  const x = Float64Array.from({{ length: N }}, (_, i) => f * 0.04 + i * 0.004);
  frames.push({{ x, curves: Array.from({{ length: {charts} }}, (_, k) => {{
    const y = Float32Array.from(x, (t) => wave(k, t));
    return [y.map((v) => v - 3), y.map((v) => v + 3), y.map((v, i) => v + Math.sin(x[i] * 91)), y];
  }}) }});
}}
const group = new taufitCharts.Group();
const figures = [...document.querySelectorAll("figure")].map((element) => new taufitCharts.Figure(element, group,
  [new taufitCharts.Panel(element.querySelector("canvas"), {{ ylabel: "torque [N m]", xlabel: "time [s]", x: [], series: [
    {{ name: "band", colour: "var(--model)", kind: "band", low: [], high: [] }},
    {{ name: "measured", colour: "var(--measured)", kind: "wide", y: [] }},
    {{ name: "predicted", colour: "var(--model)", kind: "line", y: [] }}] }})]));
taufitCharts.readTheme();
window.count = 0;
window.go = () => setInterval(() => requestAnimationFrame(() => {{
  const frame = frames[window.count++ % 25];
  group.full = [frame.x[0], frame.x[N - 1]];
  figures.forEach((figure, k) => {{
    const panel = figure.panels[0], [low, high, measured, predicted] = frame.curves[k];
    panel.x = frame.x; Object.assign(panel.series[0], {{ low, high }});
    panel.series[1].y = measured; panel.series[2].y = predicted;
    figure.stale = true; figure.draw();
  }});
}}), 40);
</script>"""


def _processor_seconds() -> float:
    """User and system time of the browser's processes, which are all our children's children."""
    ticks = 0
    parents: dict[int, int] = {}
    times: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = int(fields[11]) + int(fields[12])
    for process in times:
        ancestor = process
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if ancestor == os.getpid() and process != os.getpid():
            ticks += times[process]
    return ticks / os.sysconf("SC_CLK_TCK")


def rows() -> Iterator[Row]:
    """CPU per frame and frames per second."""
    from tests.browser import launched

    from taufit.report.page import page_style, static_text

    figures = "<figure><canvas></canvas></figure>" * CHARTS
    text = PAGE.format(
        style=page_style(), script=static_text("charts.js"), figures=figures,
        points=POINTS, charts=CHARTS,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        file = Path(folder) / "page.html"
        file.write_text(text, encoding="utf-8")
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_timeout(300)
        page.evaluate("go()")
        page.wait_for_timeout(1000)
        begin, frames, started = _processor_seconds(), page.evaluate("count"), time.monotonic()
        page.wait_for_timeout(int(1000 * SECONDS))
        used = _processor_seconds() - begin
        drawn, elapsed = page.evaluate("count") - frames, time.monotonic() - started
    note = f"{CHARTS} charts x {POINTS} points, two curves and a band, no GPU, all processes"
    yield Row("charts: CPU per frame", 1000.0 * used / drawn, "ms", "<= 25", note)
    yield Row("charts: frames per second of 25", drawn / elapsed, "1/s", ">= 15", note)
