"""Page about a planned motion: limits, expected accuracy, 3-D view."""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.number_text import fixed, percent, significant, whole
from taufit.dynamics import forward_kinematics, inverse_dynamics
from taufit.report.charts import Panel, Series, chart_group, figure
from taufit.report.page import (
    Section,
    numbers,
    paragraph,
    render_page,
    statement,
    statements,
    table,
)
from taufit.robot import JointLimits, Robot
from taufit.robot.mounting import rotation_rpy

if TYPE_CHECKING:
    from taufit.excitation import Design, Motion


def robot_animation(robot: Robot, motion: Motion, caption: str, frames: int = 240) -> str:
    """HTML of an animation: base, joints and tip in world axes, with the path of the tip."""
    robot.require_serial("the animation of a motion")
    time = np.linspace(0.0, motion.duration, frames)
    q, _, _ = motion.at(time)
    poses = forward_kinematics(robot, q)
    points = np.concatenate([np.zeros((frames, 1, 3)), poses[:, :, :3, 3]], 1)
    points = points @ rotation_rpy(*robot.mounting).T
    spec = {
        "points": base64.b64encode(points.astype(np.float32).tobytes()).decode(),
        "count": points.shape[1],
        "frames": frames,
        "seconds": motion.duration,
        "reach": float(max(np.linalg.norm(points, axis=-1).max(), 1e-3)),
    }
    return (
        f'<figure class="arm3d"><figcaption>{html.escape(caption)}</figcaption>'
        f'<canvas role="img" aria-label="{html.escape(caption, quote=True)}"></canvas>'
        f'<button type="button">Play</button>'
        f'<input type="range" min="0" max="{frames - 1}" value="0" aria-label="time">'
        f'<script type="application/json">{json.dumps(spec)}</script></figure>'
    )


def motion_page(
    robot: Robot, motion: Motion, limits: JointLimits, design: Design | None = None
) -> str:
    """Self-contained HTML page."""
    arm = robot_animation(robot, motion, "Path of the tip; drag to turn")
    head = (
        f'{_statements(motion, design)}<div class="beside wide"><div>'
        f"{_joints(robot, motion, limits)}</div><aside>{arm}{_numbers(design)}</aside></div>"
    )
    sections = [Section("Verdict", head)]
    if design is not None:
        checks = len(design.certificate.checks)
        sections.append(Section("Constraints", _constraints(design), f"{checks} checked"))
        count = f"{len(design.names)} base parameters"
        sections.append(Section("Expected accuracy", _deviations(design), count))
    return render_page(
        f"Motion of {robot.name}",
        f"{significant(motion.duration)} s · {motion.joints} joints",
        sections,
    )


def _statements(motion: Motion, design: Design | None) -> str:
    if design is None:
        length = f", {significant(motion.duration)} s"
        return statements(statement("good", "Motion", "Ready to play", length))
    tightest = design.worst
    margin = (
        f"{significant(1e3 * tightest.margin)} mm"
        if tightest.unit == "m"
        else f"{percent(tightest.margin)} of the limit"
    )
    points = whole(design.certificate.points)
    return statements(
        statement("good", "Motion", "Feasible", f" at {points} moments"),
        statement(
            "model", "Tightest constraint", margin, f" left: {tightest.name}",
            detail=[f"At {fixed(tightest.time, 2)} s."],
        ),
    )  # fmt: skip


def _numbers(design: Design | None) -> str:
    if design is None:
        return ""
    return numbers(
        [
            (significant(design.condition_number), "", "condition number"),
            (significant(design.condition_number_scaled), "", "condition number, unit columns"),
            (significant(design.log_det), "", "ln det W'W/N"),
            (fixed(design.cpu_seconds, 2), "s", "CPU time of the plan"),
        ]
    )


def _joints(robot: Robot, motion: Motion, limits: JointLimits) -> str:
    """Position, velocity, acceleration and torque, with the share of the limits used."""
    time = np.linspace(0.0, motion.duration, 600)
    q, v, a = motion.at(time)
    torque = inverse_dynamics(robot, q, v, a)
    bounds = (
        ("Position", "rad", q, limits.lower, limits.upper),
        ("Velocity", "rad/s", v, -limits.velocity, limits.velocity),
        ("Acceleration", "rad/s²", a, -limits.acceleration, limits.acceleration),
        ("Torque of the nominal links", "N m", torque, -limits.torque, limits.torque),
    )
    charts: list[str] = []
    for name, unit, values, low, high in bounds:
        shares = [
            100 * max(values[:, i].max() / high[i], values[:, i].min() / low[i])
            for i in range(motion.joints)
            if np.isfinite(high[i]) and low[i] < 0 < high[i]
        ]
        note = f"uses {min(shares):.0f} to {max(shares):.0f} % of its limits" if shares else ""
        series = [Series(f"joint {i + 1}", values[:, i]) for i in range(motion.joints)]
        word = {"Acceleration": "accel."}.get(name, name.split()[0].lower())
        panel = Panel(series, f"{word} [{unit}]")
        last = name == bounds[-1][0]
        charts.append(
            figure(
                time if not charts else None, [panel], caption=name, note=note,
                xlabel="time [s]", show_xlabel=last, show_ticks=last, group="motion",
            )
        )  # fmt: skip
    return chart_group(charts, f"Motion of {robot.name}", "rows tall")


def _constraints(design: Design) -> str:
    rows = sorted(design.certificate.checks, key=lambda check: check.margin)
    return table(
        ("constraint", "room left", "unit", "at [s]"),
        [(c.name, float(c.margin), "m" if c.unit == "m" else "of limit", c.time) for c in rows],
        text=(0, 2),
    )


def _deviations(design: Design) -> str:
    explanation = paragraph(
        "Standard deviation of each base parameter for noise of 1 N m on every joint and "
        f"{design.samples} samples. The condition number alone is not a measure of accuracy: it "
        f"can "
        "be lowered by exciting well determined parameters less."
    )
    rows = [
        (name, float(value))
        for name, value in zip(design.names, design.standard_deviation, strict=True)
    ]
    return explanation + table(("parameter", "standard deviation [SI]"), rows)
