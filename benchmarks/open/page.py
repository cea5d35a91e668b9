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
        Section("All cells", long_table(results)),
        *(
            Section(about["title"], arm_section(results, name), gist=gist(results, name))
            for name, about in sorted(results["arms"].items())
        ),
        Section("Rules", rules(results)),
        Section("Arms on which defaults of taufit were chosen", discipline(results)),
        Section("Tools and their settings", tools_table(results)),
    ]
    counts = (len(results["arms"]), len(results["tools"]), len(TASKS), len(results["cells"]))
    subtitle = "{} arms, {} tools, {} tasks, {} cells".format(*counts)
    return render_page("Open benchmark of torque models", subtitle, sections)


def overview(results: dict[str, Any]) -> str:
    """How often each tool is best, and the median of its scores."""
    from taufit.report.page import bullets

    lines = [
        "Every figure is an error: lower is better. nrmse is the RMS error of the predicted torque "
        "over the standard deviation of the measured one, mean over joints, on rows that the tool "
        "has not been given.",
        f"Best in unseen motion, per tool: {wins(results, 'unseen motion')}.",
        f"Cells: {count_kinds(results)}.",
        "Several defaults of taufit were chosen on arms of this table: see the section on that.",
    ]
    return bullets(lines)


def wins(results: dict[str, Any], task: str) -> str:
    """Number of arms on which each tool has the least error."""
    counts: dict[str, int] = {}
    for arm in results["arms"]:
        scored = [c for c in cells_of(results, arm=arm, task=task) if "value" in c]
        if scored:
            best = min(scored, key=lambda c: c["value"])["tool"]
            counts[best] = counts.get(best, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{results['tools'][tool]['title']} {n}" for tool, n in ranked)


def count_kinds(results: dict[str, Any]) -> str:
    """Figures, failures and cells that do not apply."""
    cells = results["cells"]
    values, failures = (sum(key in c for c in cells) for key in ("value", "failure"))
    return f"{values} figures, {failures} failures, {len(cells) - values - failures} not applicable"


def cells_of(results: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    """Cells with these properties."""
    return [c for c in results["cells"] if all(c[k] == v for k, v in wanted.items())]


def shown(cell: dict[str, Any] | None) -> Any:
    """Cell of a table."""
    from taufit.report.page import Number

    if cell is None:
        return Number(math.nan, "not run")
    if "value" in cell:
        value = cell["value"]
        return Number(value, f"{value:.3f}" if value < 1.0 else f"{value:.3g}")
    if "not_applicable" in cell:
        return Number(math.nan, "not applicable")
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
    values = [v for c in cells for v in c["joints"] if v]
    low = 10 ** math.floor(math.log10(min(values)))
    high = min(10 ** math.ceil(math.log10(max(values))), 1e4)
    joints = max(len(c["joints"]) for c in cells)
    width, row, left, top = 720, 26, 150, 24
    height = top + row * len(cells) + 30

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
    for k, cell in enumerate(sorted(cells, key=lambda c: c["value"])):
        y = top + row * k + row / 2
        color = "var(--model)" if cell["tool"] == "taufit" else "var(--residual)"
        title = html.escape(results["tools"][cell["tool"]]["title"])
        parts.append(f'<text x="{left - 10}" y="{y + 4:.0f}" text-anchor="end">{title}</text>')
        parts += [
            f'<circle cx="{x(v):.1f}" cy="{y:.1f}" r="7" fill="var(--paper)" stroke="{color}"/>'
            f'<text x="{x(v):.1f}" y="{y + 4:.1f}" text-anchor="middle" class="mark">{j + 1}</text>'
            for j, v in enumerate(cell["joints"])
            if v
        ]
    unit = cells[0]["unit"]
    label = f"{unit} of joints 1 to {joints} for each tool, {task}; values are in the table below"
    style = "svg.joints text{font-size:12px;fill:var(--ink)} svg.joints text.mark{font-size:10px}"
    return (
        f"<h3>{unit} of each joint, {task}</h3><style>{style}</style>"
        '<div class="scroll" tabindex="0"><svg class="joints" role="img" '
        f'aria-label="{label}" viewBox="0 0 {width} {height}" width="{width}">'
        f"{''.join(parts)}</svg></div>" + joint_table(results, cells, joints)
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
