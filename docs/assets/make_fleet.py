"""fleet_scale.svg: processor time of `taufit fleet` over rows, from benchmarks/results.json.

Run from the repository: python docs/assets/make_fleet.py
"""

from __future__ import annotations

import json
import math
from pathlib import Path

HERE = Path(__file__).parent
WIDE, HIGH, LEFT, BELOW, ABOVE, RIGHT = 640, 300, 76, 52, 22, 26

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #333 }
.grid { stroke: #ccc; stroke-width: 1 }
.line { stroke: #2563b0; stroke-width: 2; stroke-dasharray: 5 4 }
.dot { fill: #2563b0 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd }
  .grid { stroke: #555 }
  .line { stroke: #7fb2f0 }
  .dot { fill: #7fb2f0 }
}
"""


def points() -> list[tuple[float, float, float]]:
    """Rows, processor time [s] and memory [MB] of every size that was measured."""
    page = json.loads((HERE.parents[1] / "benchmarks" / "results.json").read_text("utf-8"))
    own = {row["name"]: row for row in page["rows"] if row["benchmark"] == "speed/fleet_scale"}
    out = []
    for name, row in own.items():
        memory = own.get(f"{name}, memory")
        if memory is not None:
            rows = float(row["note"].split(" rows")[0].replace(",", ""))
            out.append((rows, 1e-6 * row["value"] * rows, memory["value"]))
    return sorted(out)


def drawn(found: list[tuple[float, float, float]]) -> str:
    low_x, high_x = 4.6, 8.4
    low_y, high_y = -1.0, 3.4

    def x(rows: float) -> float:
        return LEFT + (math.log10(rows) - low_x) / (high_x - low_x) * (WIDE - LEFT - RIGHT)

    def y(seconds: float) -> float:
        share = (math.log10(seconds) - low_y) / (high_y - low_y)
        return HIGH - BELOW - share * (HIGH - BELOW - ABOVE)

    parts = [f"<style>{STYLE}</style>"]
    for power in range(5, 9):
        at = x(10.0**power)
        parts.append(f'<path class="grid" d="M{at:.1f} {ABOVE}V{HIGH - BELOW}"/>')
        label = f'10<tspan dy="-5" font-size="10">{power}</tspan>'
        parts.append(f'<text x="{at:.1f}" y="{HIGH - 30}" text-anchor="middle">{label}</text>')
    for power in range(-1, 4):
        at = y(10.0**power)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDE - RIGHT}"/>')
        label = f"{10.0**power:g} s"
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    rows, seconds, _ = found[-1]
    first, last = 10**4.7, 10**8.3
    ends = (x(first), y(seconds * first / rows), x(last), y(seconds * last / rows))
    parts.append('<path class="line" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>'.format(*ends))
    for rows, seconds, memory in found:
        parts.append(f'<circle class="dot" cx="{x(rows):.1f}" cy="{y(seconds):.1f}" r="5"/>')
        own = f"{1e6 * seconds / rows:.1f} us per row, {memory:.0f} MB"
        end = rows > 1e7
        side, anchor = (-10, "end") if end else (10, "start")
        up = -6 if end else 16
        parts.append(
            f'<text x="{x(rows) + side:.1f}" y="{y(seconds) + up:.1f}" '
            f'text-anchor="{anchor}">{own}</text>'
        )
    middle = (LEFT + WIDE - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HIGH - 8}" text-anchor="middle">rows</text>')
    parts.append(
        f'<text transform="translate(16 {(ABOVE + HIGH - BELOW) / 2:.0f}) rotate(-90)" '
        'text-anchor="middle">processor time</text>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img">'
    return "\n".join([head, *parts, "</svg>", ""])


if __name__ == "__main__":
    (HERE / "fleet_scale.svg").write_text(drawn(points()), "utf-8")
