"""Page of the benchmark: one HTML file from results.json, sortable tables and a plot per arm.

No recorded data are on it: plots show the scores of joints.
"""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import Any

from benchmarks.open.arm import TASKS
from benchmarks.open.tool import CPU_LIMIT_S

# Arms that were looked at while a default of taufit was chosen; see the comments at the constants.
CHOSEN_ON = {
    "ur10e": "friction terms, delay, contact thresholds",
    "panda": "ripple orders, order of tilt and ripple",
    "lwr4": "ripple prior and orders, limits of the torque unit",
    "med7": "ripple orders",
    "xmate7p": "order of tilt and ripple, joints that turn one way",
    "kr300": "limit of the guard against too rich friction",
    "so101": "servo settings, on its seven training runs",
}
LOOKED_AT = "seen in development (splits of its own), no constant chosen on it alone"
SCALE = (0.02, 2.0)
TASK_WORDS = {
    "unseen motion": "other motion of the same day or log",
    "short data": "as unseen motion, trained on a fraction of the rows",
    "poor excitation": "trained on single joints in turn, or on joints that move by one signal",
    "other day": "trained as unseen motion, runs of other days or warmer",
    "payload": "error of the mass of known payloads",
    "contact": "contact force that the residual of contact-free motion pretends, 95 % quantile",
    "export": "exported MJCF, evaluated by MuJoCo on the unseen motion",
    "servo replay": "positions from commands alone, after the first pose",
}


def write(results: dict[str, Any], path: Path) -> None:
    """Write the page."""
    path.write_text(render(results), "utf-8")


def render(results: dict[str, Any]) -> str:
    """HTML of the whole page."""
    from taufit.report.page import Section, render_page

    sections = [
        Section("", overview(results)),
        Section("Unseen motion: arms and tools", matrix(results, "unseen motion")),
        Section("All cells", long_table(results), gist=count_kinds(results)),
        *(
            Section(about["title"], arm_section(results, name), gist=gist(results, name))
            for name, about in sorted(results["arms"].items())
        ),
        Section("Rules", rules(results), gist=f"{len(TASK_WORDS)} tasks"),
        Section(
            "Arms on which defaults of taufit were chosen",
            discipline(results),
            gist=f"{sum(name in CHOSEN_ON for name in results['arms'])} arms",
        ),
        Section(
            "Tools and their settings", tools_table(results), gist=f"{len(results['tools'])} tools"
        ),
    ]
    counts = (len(results["arms"]), len(results["tools"]), len(TASKS), len(results["cells"]))
    subtitle = "{} arms, {} tools, {} tasks, {} cells".format(*counts)
    return render_page("Open benchmark of torque models", subtitle, sections)


def overview(results: dict[str, Any]) -> str:
    """Statements on the best tools and on the cells, and all arms and tools as dots."""
    from taufit.report.page import statement, statements

    task = "unseen motion"
    counts = wins(results, task)
    title, best = counts[0]
    others = ", ".join(f"{name} on {n}" for name, n in counts[1:])
    return statements(
        statement(
            "model",
            "Torque on motion that the tool has not seen",
            f"{title} has the smallest error on {best} of {sum(n for _, n in counts)} arms",
            f"; {others}" if others else "",
            detail=[
                "nrmse: RMS error of the predicted torque over the standard deviation of the "
                "measured one, mean over joints. Lower is better."
            ],
        ),
        statement(
            "warn",
            "Reservation",
            "No row is a blind test",
            ": all arms were known while taufit was developed",
            detail=[f"Cells: {count_kinds(results)}. Defaults chosen on arms are named below."],
        ),
    ) + arm_plot(results, task)


def wins(results: dict[str, Any], task: str) -> list[tuple[str, int]]:
    """Number of arms on which each tool has the least error, most first."""
    counts: dict[str, int] = {}
    for arm in results["arms"]:
        scored = [c for c in cells_of(results, arm=arm, task=task) if "value" in c]
        if scored:
            best = min(scored, key=lambda c: c["value"])["tool"]
            counts[best] = counts.get(best, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [(results["tools"][tool]["title"], n) for tool, n in ranked]


def arm_plot(results: dict[str, Any], task: str) -> str:
    """Error of every arm and tool on a logarithmic scale; numbers are those of the tools."""
    tools = list(results["tools"])
    rows = {
        about["title"]: [c for c in cells_of(results, arm=name, task=task) if "value" in c]
        for name, about in results["arms"].items()
    }
    rows = {title: cells for title, cells in rows.items() if cells}
    values = [c["value"] for cells in rows.values() for c in cells]
    lines = [
        (title, [(tools.index(c["tool"]) + 1, c["value"], c["tool"] == "taufit") for c in cells])
        for title, cells in sorted(rows.items(), key=lambda row: min(c["value"] for c in row[1]))
    ]
    key = " · ".join(f"{k} {results['tools'][t]['title']}" for k, t in enumerate(tools, 1))
    label = f"nrmse of every arm and tool, {task}; values are in the table below"
    return dot_plot(lines, decades(values), label, f"nrmse, logarithmic. {key}")


def count_kinds(results: dict[str, Any]) -> str:
    """Figures, failures and cells that do not apply."""
    cells = results["cells"]
    values, failures = (sum(key in c for c in cells) for key in ("value", "failure"))
    failed = f"{failures} failure" + ("" if failures == 1 else "s")
    return f"{values} figures, {failed}, {len(cells) - values - failures} not applicable"


def cells_of(results: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    """Cells with these properties."""
    return [c for c in results["cells"] if all(c[k] == v for k, v in wanted.items())]


def shown(cell: dict[str, Any] | None) -> Any:
    """Cell of a table."""
    from taufit.core.number_text import significant
    from taufit.report.page import Number

    if cell is None:
        return Number(math.nan, "not run")
    if "value" in cell:
        value = cell["value"]
        return Number(value, f"{value:.3f}" if cell["unit"] == "nrmse" else significant(value))
    if "not_applicable" in cell:
        return Number(math.nan, "–")
    short = cell["failure"] if len(cell["failure"]) < 30 else cell["failure"][:27] + "..."
    return Number(math.nan, f"failed: {short}")


def matrix(results: dict[str, Any], task: str) -> str:
    """Arms in rows, tools in columns."""
    from taufit.report.page import table

    tools = list(results["tools"])
    rows = []
    for name, about in sorted(results["arms"].items()):
        by_tool = {c["tool"]: c for c in cells_of(results, arm=name, task=task)}
        if any("value" in c for c in by_tool.values()):
            rows.append([about["title"], *(shown(by_tool.get(tool)) for tool in tools)])
    titles = [results["tools"][tool]["title"] for tool in tools]
    return table(["arm", *titles], rows, text=(0,), name=task)


def long_table(results: dict[str, Any]) -> str:
    """One row per arm and tool, one column per task."""
    from taufit.report.page import Number, table

    rows = []
    for arm, about in sorted(results["arms"].items()):
        for tool, used in results["tools"].items():
            cells = {c["task"]: c for c in cells_of(results, arm=arm, tool=tool)}
            if not cells:
                continue
            cpu = max((c.get("cpu_s", 0.0) for c in cells.values()), default=0.0)
            values = [shown(cells.get(task)) for task in TASKS]
            rows.append([about["title"], used["title"], *values, Number(cpu, f"{cpu:.1f}")])
    units = {c["task"]: c["unit"] for c in results["cells"] if "unit" in c}
    heads = [f"{task} [{units.get(task, '-')}]" for task in TASKS]
    return table(["arm", "tool", *heads, "longest fit [CPU s]"], rows, text=(0, 1), name="cells")


def gist(results: dict[str, Any], arm: str) -> str:
    """Best tool of an arm."""
    task = "unseen motion" if arm != "so101" else "servo replay"
    scored = [c for c in cells_of(results, arm=arm, task=task) if "value" in c]
    if not scored:
        return "no figure"
    best = min(scored, key=lambda c: c["value"])
    return f"{task}: {results['tools'][best['tool']]['title']} {best['value']:.3g} {best['unit']}"


def arm_section(results: dict[str, Any], arm: str) -> str:
    """Plot of the joints, all cells with their messages, source."""
    from taufit.report.page import paragraph, table

    about = results["arms"][arm]
    rows = []
    for cell in cells_of(results, arm=arm):
        if "not_applicable" in cell:
            result, words = "not applicable", cell["not_applicable"]
        elif "failure" in cell:
            result, words = "failed", cell["failure"]
        else:
            result, words = shown(cell), cell.get("note", "")
        title = results["tools"][cell["tool"]]["title"]
        rows.append([cell["task"], title, result, cell.get("unit", ""), words])
    source = (
        f"Torque: {about['torque']}. Low-pass {about['cutoff_hz']:g} Hz. "
        f"Source: {about['source']}; licence: {about['licence']}."
    )
    body = joint_plot(results, arm) + paragraph(source)
    return body + table(
        ["task", "tool", "result", "unit", "remark"], rows, text=(0, 1, 4), name=arm
    )


def joint_plot(results: dict[str, Any], arm: str) -> str:
    """nrmse of every joint and tool on a logarithmic scale, or mrad of a servo arm."""
    cells = [c for c in results["cells"] if c["arm"] == arm and "joints" in c]
    task = "unseen motion" if any(c["task"] == "unseen motion" for c in cells) else "servo replay"
    cells = [c for c in cells if c["task"] == task]
    if not cells:
        return ""
    joints = max(len(c["joints"]) for c in cells)
    lines = [
        (
            results["tools"][cell["tool"]]["title"],
            [(j + 1, v, cell["tool"] == "taufit") for j, v in enumerate(cell["joints"]) if v],
        )
        for cell in sorted(cells, key=lambda c: c["value"])
    ]
    unit = cells[0]["unit"]
    label = f"{unit} of joints 1 to {joints} for each tool, {task}; values are in the table below"
    limits = decades([v for _, dots in lines for _, v, _ in dots])
    return (
        f"<h3>{unit} of each joint, {task}</h3>"
        + dot_plot(lines, limits, label)
        + joint_table(results, cells, joints)
    )


def decades(values: list[float]) -> tuple[float, float]:
    """Powers of ten around the values, at most 10,000."""
    low = 10 ** math.floor(math.log10(min(values)))
    return low, min(10 ** math.ceil(math.log10(max(values))), 1e4)


def dot_plot(
    lines: list[tuple[str, list[tuple[int, float, bool]]]],
    limits: tuple[float, float],
    label: str,
    caption: str = "",
) -> str:
    """Lines of numbered dots on a logarithmic scale.

    Args:
        lines: Title and dots of each line: number, value, and whether it is taufit's.
        limits: Ends of the scale.
        label: Description for those who do not see it.
        caption: Text below.
    """
    low, high = limits
    width, row, left, top = 900, 26, 170, 12
    height = top + row * len(lines) + 30

    def x(value: float) -> float:
        share = (math.log10(min(max(value, low), high)) - math.log10(low)) / math.log10(high / low)
        return left + share * (width - left - 20)

    parts = []
    decade = low
    while decade <= high * 1.001:
        parts.append(
            f'<path d="M{x(decade):.0f} {top - 6}V{height - 26}" stroke="var(--line)"/>'
            f'<text x="{x(decade):.0f}" y="{height - 10}" text-anchor="middle">{decade:g}</text>'
        )
        decade *= 10
    for k, (title, dots) in enumerate(lines):
        y = top + row * k + row / 2
        text = html.escape(title)
        parts.append(f'<text x="{left - 10}" y="{y + 4:.0f}" text-anchor="end">{text}</text>')
        # taufit's dots last, so that they are on top.
        for number, value, is_taufit in sorted(dots, key=lambda dot: dot[2]):
            color = "var(--model)" if is_taufit else "var(--residual)"
            parts.append(
                f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="8" fill="var(--paper)" '
                f'stroke="{color}" stroke-width="{2 if is_taufit else 1}"/><text '
                f'x="{x(value):.1f}" y="{y + 4:.1f}" text-anchor="middle" class="mark">{number}'
                "</text>"
            )
    style = "svg.joints text{font-size:12px;fill:var(--ink)} svg.joints text.mark{font-size:10px}"
    below = f'<p class="sub">{html.escape(caption)}</p>' if caption else ""
    return (
        f'<style>{style}</style><div class="scroll" tabindex="0"><svg class="joints" role="img" '
        f'aria-label="{html.escape(label)}" viewBox="0 0 {width} {height}" width="{width}">'
        f"{''.join(parts)}</svg></div>{below}"
    )


def joint_table(results: dict[str, Any], cells: list[dict[str, Any]], joints: int) -> str:
    """Figures of the plot."""
    from taufit.report.page import Number, table

    rows = [
        [
            results["tools"][c["tool"]]["title"],
            *(None if v is None else Number(v, f"{v:.3g}") for v in c["joints"]),
        ]
        for c in cells
    ]
    return table(
        ["tool", *(f"joint {j + 1}" for j in range(joints))], rows, text=(0,), name="joints"
    )


def rules(results: dict[str, Any]) -> str:
    """Tasks, limits and how to check the figures."""
    from taufit.report.page import bullets, code_block

    tasks = [f"{task}: {words}." for task, words in TASK_WORDS.items()]
    return bullets(
        [
            *tasks,
            "Rows and SHA-256 of all files are in benchmarks/open/splits.json; a run with other "
            "files is refused.",
            "A tool gets motion and torque of the training rows, and motion alone of the test "
            "rows, as recorded and on one grid of 100 Hz (Butterworth of fourth order, forwards "
            "and backwards, with the arm's cut-off).",
            "Samples in motion are scored (some joint faster than 0.01 rad/s), without the outer "
            "0.25 s of a section.",
            f"A fit and its predictions may take {CPU_LIMIT_S} s of CPU time and 6 GB; beyond, the "
            "cell has failed. All cells take about a quarter of an hour of one idle core. Search "
            "of MuJoCo sysid is cut after a number of steps: see the settings.",
            "Every tool gets the coupling matrix of the TX40's wrist and the description of the "
            "KR300, which has a gravity compensator; taufit alone has terms for them.",
            "FloBaRoID is left out: the package index does not have it.",
        ]
    ) + code_block("python -m benchmarks.open install && python -m benchmarks.open --data FOLDER")


def discipline(results: dict[str, Any]) -> str:
    """Statement about arms and defaults."""
    from taufit.report.page import paragraph, table

    rows = [
        [about["title"], CHOSEN_ON.get(name, LOOKED_AT)]
        for name, about in sorted(results["arms"].items())
    ]
    words = (
        "All arms of this table were known while taufit was developed, so none of its rows is a "
        "blind test. Defaults that were chosen with an arm in view are named here. The other tools "
        "have settings of their documentation; none was chosen on these arms."
    )
    return paragraph(words) + table(["arm", "defaults chosen with it in view"], rows, text=(0, 1))


def tools_table(results: dict[str, Any]) -> str:
    """Packages and settings."""
    from taufit.report.page import table

    rows = [
        [about["title"], " ".join(about["packages"]), about["settings"]]
        for about in results["tools"].values()
    ]
    return table(["tool", "packages", "settings"], rows, text=(0, 1, 2))
