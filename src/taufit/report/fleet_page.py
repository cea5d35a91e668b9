"""Page about a fleet: outliers first, then all robots by friction, then days."""

from __future__ import annotations

import html

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.number_text import MINUS, count_text, fixed, percent, whole
from taufit.fleet.result import FleetResult, RobotResult
from taufit.report.charts import Series, chart
from taufit.report.dot_strip import dot_strip
from taufit.report.page import (
    Markup,
    Number,
    Section,
    bullets,
    paragraph,
    render_page,
    statement,
    statements,
    table,
)
from taufit.report.palette import css

# Numbers of robots in tables and in charts, worst first.
_MAX_LISTED, _MAX_DRAWN = 500, 12
# Deviation (logarithm) at which a cell has its full colour.
_FULL_COLOUR = 1.0


def fleet_page(result: FleetResult) -> str:
    """Self-contained HTML page."""
    outliers = [robot for robot in result.robots if robot.is_outlier]
    deviations = _deviations(result)
    with_days = sum(len(robot.days) > 1 for robot in result.robots)
    sections = [
        Section("Verdict", _statements(result, outliers) + _strips(result, deviations)),
        Section("Every robot", _table(result, deviations)),
        Section("Outliers", _outlier_table(outliers), count_text(len(outliers), "robot")),
        Section(
            "Friction over days",
            _days(result),
            f"{count_text(with_days, 'robot')} with several days",
        ),
        Section(
            "Typical parameters of this type",
            _typical_parameters(result),
            f"from {result.fleet_prior.robots} robots",
        ),
        Section(
            "Files not used", _list_failed_files(result), count_text(len(result.failed), "file")
        ),
    ]
    days = sorted({day.day for robot in result.robots for day in robot.days})
    facts = [f"{whole(result.rows)} rows"]
    if any(days):
        facts.append(days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    return render_page(f"Fleet of {len(result.robots)} {result.type}", " · ".join(facts), sections)


def _statements(result: FleetResult, outliers: list[RobotResult]) -> str:
    lost = [f"Files not used: {len(result.failed)}."] if result.failed else []
    lost += [f"Workers lost: {len(result.incidents)}."] if result.incidents else []
    count = len(result.robots)
    if outliers:
        names = ", ".join(robot.robot for robot in outliers[:3])
        names += f" and {len(outliers) - 3} more" if len(outliers) > 3 else ""
        reasons = [_reason(robot) for robot in outliers[:3]]
        first = statement(
            "warn",
            "Robots that stand out",
            f"{len(outliers)} of {count}",
            f": {names}",
            detail=[*reasons, *lost],
        )
    else:
        first = statement(
            "warn" if lost else "good",
            "Robots that stand out",
            f"None of {count}",
            " robots",
            detail=[*lost, "If robots differ by chance only, one study in twenty names one."],
        )
    rise = result.detectable_rise[np.isfinite(result.detectable_rise)]
    if len(rise):
        low, high = fixed(float(rise.min()), 1), fixed(float(rise.max()), 1)
        factor = low if low == high else f"{low} to {high}"
        second = statement(
            "model",
            "What can be seen",
            f"Friction above {factor} ×",
            " the usual",
            detail=[_detection_limits(result)],
        )
    else:
        second = statement(
            "warn", "What can be seen", "Unknown", ": too few robots", detail=["Add robots."]
        )
    return statements(first, second)


def _reason(robot: RobotResult) -> str:
    """Message of the first outlier; friction is that of all speeds, not that of the dots."""
    outlier = robot.outliers[0]
    mean = ", mean over the speeds" if outlier.kind == "friction" else ""
    return f"{robot.robot}: {outlier.message}{mean}"


def _strips(result: FleetResult, deviations: Float[Array, "r j"]) -> str:
    """One strip per joint: each robot a dot, outliers with their names."""
    names = result.typical.robot.joint_names
    outliers = {
        (robot.robot, surprise.joint)
        for robot in result.robots
        for surprise in robot.outliers
        if surprise.kind in ("friction", "trend")
    }
    strips = []
    for joint in range(deviations.shape[1]):
        name = names[joint].replace("_", " ").removesuffix(" joint").removeprefix("joint ")
        is_odd = [
            (robot.robot, joint + 1) in outliers or (robot.robot, None) in outliers
            for robot in result.robots
        ]
        strips.append(
            dot_strip(
                f"{joint + 1} {name}",
                100.0 * deviations[:, joint],
                [robot.robot for robot in result.robots],
                is_odd,
                100.0 * (float(result.detectable_rise[joint]) - 1.0),
            )
        )
    key = (
        '<p class="key"><span><i class="dot"></i>one robot</span><span><i class="dot out"></i>'
        'stands out</span><span><i class="dot edge"></i>named from here on</span><span>Friction at '
        "half the rated speed, off the median of the fleet</span></p>"
    )
    return f'{key}<div class="strips">{"".join(strips)}</div>'


def _detection_limits(result: FleetResult) -> str:
    """Smallest detectable increase of friction of each joint."""
    joints_by_factor: dict[str, list[str]] = {}
    for j, factor in enumerate(result.detectable_rise):
        if np.isfinite(factor):
            joints_by_factor.setdefault(fixed(float(factor), 1), []).append(str(j + 1))
    if not joints_by_factor:
        return ""
    limits = [
        f"{factor} times on joint{'s' * (len(joints) > 1)} {', '.join(joints)}"
        for factor, joints in sorted(joints_by_factor.items())
    ]
    return (
        "Wear is detected on 19 of 20 robots from this friction on (dashed lines): "
        f"{'; '.join(limits)}. Less wear is within the differences between robots."
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


def _table(result: FleetResult, deviations: Float[Array, "r j"]) -> str:
    joints = deviations.shape[1]
    rows = []
    for robot, robot_deviations in list(zip(result.robots, deviations, strict=True))[:_MAX_LISTED]:
        chip = Markup('<span class="chip warn">stands out</span>')
        mark = chip if robot.is_outlier else "\N{EN DASH}"
        rows.append(
            (
                robot.robot,
                mark,
                robot.files,
                Number(robot.rows, whole(robot.rows)),
                Number(float(np.mean(robot.nrmse)), percent(float(np.mean(robot.nrmse)))),
                *(_deviation_cell(float(x)) for x in robot_deviations),
            )
        )
    header = ("robot", "verdict", "files", "rows", "unexplained")
    joint_header = [f"joint {j + 1}" for j in range(joints)]
    remaining = len(result.robots) - len(rows)
    tail = paragraph(f"{remaining} more in fleet.parquet.") if remaining > 0 else ""
    return (
        paragraph(
            "Worst first. Joints: deviation of friction from the median of the fleet [%]; the "
            "colour shows its size.",
        )
        + table((*header, *joint_header), rows, text=(0, 1), name="Robots")
        + tail
    )


def _deviation_cell(deviation: float) -> Markup:
    """Percentage on a background coloured by its size, for both themes."""
    strength = min(abs(np.log1p(max(deviation, -0.99))) / _FULL_COLOUR, 1.0) * 40.0
    colour = "residual" if deviation > 0 else "model"
    text = fixed(100.0 * deviation, 0)
    sign = "+" if not text.startswith(MINUS) and text != "0" else ""
    return Markup(
        f'<span class="heat" style="background:color-mix(in srgb, {css(colour)} {strength:.0f}%, '
        f'transparent)">{sign}{text} %</span>'
    )


def _days(result: FleetResult) -> str:
    robots_with_days = [robot for robot in result.robots if len(robot.days) > 1]
    if not robots_with_days:
        return paragraph("Recordings are of one day.")
    slopes = ", ".join(fixed(100.0 * k, 2) for k in result.temperature_slopes)
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
                xlabel="day of recording [number]",
                ylabel="change [%]",
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
