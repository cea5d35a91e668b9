"""Page about a fleet: outliers first, then all robots by friction, then days."""

from __future__ import annotations

import html

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.fleet.result import FleetResult, RobotResult
from taufit.report.charts import Series, chart
from taufit.report.page import (
    Markup,
    Section,
    bullets,
    cards,
    paragraph,
    render_page,
    table,
    verdict_box,
)

# Numbers of robots in tables and in charts, worst first.
_MAX_LISTED, _MAX_DRAWN = 500, 12
# Deviation (logarithm) at which a cell has its full colour.
_FULL_COLOUR = 1.0


def fleet_page(result: FleetResult) -> str:
    """Self-contained HTML page."""
    outliers = [robot for robot in result.robots if robot.is_outlier]
    deviations = _deviations(result)
    sections = [
        Section("Verdict", _verdict(result, outliers)),
        Section("Outliers", _outlier_table(outliers) + _detection_limits(result)),
        Section("Map of friction", _friction_chart(result, deviations)),
        Section("Every robot", _table(result, deviations)),
        Section("Friction over days", _days(result)),
        Section("Typical parameters of this type", _typical_parameters(result)),
        Section("Files not used", _list_failed_files(result)),
    ]
    days = sorted({day.day for robot in result.robots for day in robot.days})
    date_text = "" if not any(days) else f", {days[0]}"
    date_text += f" to {days[-1]}" if len(days) > 1 else ""
    return render_page(
        f"Fleet of {result.type}",
        f"{len(result.robots)} robots, {result.rows:,} rows{date_text}",
        sections,
    )


def _verdict(result: FleetResult, outliers: list[RobotResult]) -> str:
    kinds = {kind: 0 for kind in ("friction", "tool", "mounting", "trend")}
    for robot in outliers:
        for surprise in robot.outliers:
            kinds[surprise.kind] += 1
    verb = "is" if len(outliers) == 1 else "are"
    head = verdict_box(
        "warn" if outliers or result.failed or result.incidents else "good",
        f"{len(outliers)} of {len(result.robots)} robots {verb} outliers"
        if outliers
        else f"None of {len(result.robots)} robots is an outlier",
        f"Files not used: {len(result.failed)}. Workers lost: {len(result.incidents)}. If robots "
        "differ by chance only, one study in twenty reports an outlier.",
    )
    return head + cards(
        [
            ("robots", str(len(result.robots))),
            ("friction outliers", str(kinds["friction"])),
            ("tool or payload", str(kinds["tool"])),
            ("mounting", str(kinds["mounting"])),
            ("friction trends", str(kinds["trend"])),
            ("files not used", str(len(result.failed))),
        ]
    )


def _detection_limits(result: FleetResult) -> str:
    """Smallest detectable increase of friction of each joint."""
    limits = [
        f"joint {j + 1} {factor:.1f} times"
        for j, factor in enumerate(result.detectable_rise)
        if np.isfinite(factor)
    ]
    if not limits:
        return ""
    return paragraph(
        "Wear is detected on 19 of 20 robots from this increase of friction: "
        f"{', '.join(limits)}. Less wear is within the differences between robots."
    )


def _outlier_table(outliers: list[RobotResult]) -> str:
    if not outliers:
        return paragraph("None.")
    rows = [
        (robot.robot, surprise.kind, _wide_text(surprise.message), f"{surprise.size:.1f}")
        for robot in outliers[:_MAX_LISTED]
        for surprise in robot.outliers
    ]
    return paragraph("Largest deviation first, in standard deviations of the fleet.") + table(
        ("robot", "kind", "description", "deviation"), rows, text=(0, 1, 2)
    )


def _wide_text(text: str) -> Markup:
    """Text with a minimum width for phones, where tables scroll sideways."""
    return Markup(f'<span style="display: block; min-width: 15em">{html.escape(text)}</span>')


def _deviations(result: FleetResult) -> Float[Array, "r j"]:
    """Friction of each robot relative to the median of the fleet, minus one."""
    level = np.stack([robot.own_friction.value for robot in result.robots])
    return np.asarray(level / np.median(level, axis=0) - 1.0)


def _friction_chart(result: FleetResult, deviations: Float[Array, "r j"]) -> str:
    order = sorted(range(len(result.robots)), key=lambda k: result.robots[k].robot)
    x = np.arange(len(order), dtype=float)
    series = [
        Series(f"joint {j + 1}", 100.0 * deviations[order, j], points=True)
        for j in range(deviations.shape[1])
    ]
    return paragraph(
        "Friction at half the rated speed under typical load, from each robot's recordings, in "
        "percent from the median of the fleet. Robots in order of their names."
    ) + chart(
        x,
        series,
        caption="Friction of every robot and joint",
        xlabel="robot",
        ylabel="deviation from the median [%]",
        tall=True,
    )


def _table(result: FleetResult, deviations: Float[Array, "r j"]) -> str:
    joints = deviations.shape[1]
    rows = []
    for robot, robot_deviations in list(zip(result.robots, deviations, strict=True))[:_MAX_LISTED]:
        rows.append(
            (
                robot.robot,
                "yes" if robot.is_outlier else "",
                robot.files,
                robot.rows,
                f"{100.0 * float(np.mean(robot.nrmse)):.1f} %",
                *(_deviation_cell(float(x)) for x in robot_deviations),
            )
        )
    header = ("robot", "unlike", "files", "rows", "mean nrmse")
    joint_header = [f"joint {j + 1}" for j in range(joints)]
    remaining = len(result.robots) - len(rows)
    tail = paragraph(f"{remaining} more in fleet.parquet.") if remaining > 0 else ""
    return (
        paragraph(
            "Worst first. Joints: deviation of friction from the median of the fleet [%]; the "
            "colour shows its size.",
        )
        + table((*header, *joint_header), rows, text=(0, 1))
        + tail
    )


def _deviation_cell(deviation: float) -> Markup:
    """Percentage on a background coloured by its size, for both themes."""
    strength = min(abs(np.log1p(max(deviation, -0.99))) / _FULL_COLOUR, 1.0) * 0.55
    ground = "214, 96, 40" if deviation > 0 else "40, 110, 200"
    style = f"background: rgba({ground}, {strength:.2f}); display: block; padding: 0 .35em"
    return Markup(f'<span style="{style}">{100 * deviation:+.0f} %</span>')


def _days(result: FleetResult) -> str:
    robots_with_days = [robot for robot in result.robots if len(robot.days) > 1]
    if not robots_with_days:
        return paragraph("Recordings are of one day.")
    slopes = ", ".join(f"{100 * k:+.2f}" for k in result.temperature_slopes)
    is_compensated = bool(np.any(result.temperature_slopes != 0.0))
    text = (
        f"Friction is compensated for temperature with the slopes of the fleet: {slopes} % per "
        "kelvin for the joints in order."
        if is_compensated
        else "Temperatures were not recorded or hardly differ: trends may be due to temperature."
    )
    parts = [paragraph(f"Robots listed first. {text}")]
    for robot in robots_with_days[:_MAX_DRAWN]:
        level = np.stack([day.friction_at_reference for day in robot.days])
        x = np.arange(len(robot.days), dtype=float)
        parts.append(
            chart(
                x,
                [
                    Series(f"joint {j + 1}", 100.0 * (level[:, j] / level[0, j] - 1.0))
                    for j in range(level.shape[1])
                ],
                caption=f"{robot.robot}: {robot.days[0].day} to {robot.days[-1].day}",
                xlabel="day of recording",
                ylabel="change since the first [%]",
            )
        )
    return "".join(parts)


def _typical_parameters(result: FleetResult) -> str:
    model = result.fleet_prior.model
    layout = model.layout
    std = np.sqrt(1.0 / np.diag(result.fleet_prior.precision))
    rows = [
        (layout.names[i], float(result.typical.values[i]), float(std[i]))
        for i in range(layout.after_links.start, layout.size)
    ]
    return paragraph(
        f"Estimated from {result.fleet_prior.robots} robots: prior of a new robot, and differences "
        "between robots."
    ) + table(("parameter", "typical", "standard deviation between robots"), rows, text=(0,))


def _list_failed_files(result: FleetResult) -> str:
    lines = [
        *result.incidents,
        *(f"{file_failure.file}: {file_failure.reason}" for file_failure in result.failed),
    ]
    return bullets(lines[:_MAX_LISTED]) if lines else paragraph("All files were used.")
