"""Page about a planned motion: limits, expected accuracy, 3-D view."""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING

import numpy as np

from taufit.dynamics import forward_kinematics, inverse_dynamics
from taufit.report.charts import Series, chart
from taufit.report.page import Section, cards, paragraph, render_page, table, verdict_box
from taufit.robot import JointLimits, Robot
from taufit.robot.mounting import rotation_rpy

if TYPE_CHECKING:
    from taufit.excitation import Design, Motion


def robot_animation(robot: Robot, motion: Motion, caption: str, frames: int = 240) -> str:
    """HTML of an animation: base, joints and tip in world axes, with the path of the tip."""
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
    sections = [Section("Verdict", _verdict(motion, design))]
    sections.append(
        Section(
            "3-D view",
            robot_animation(robot, motion, "Drag to turn; the line is the path of the tip."),
        )
    )
    sections.append(Section("Joints", _joints(robot, motion, limits)))
    if design is not None:
        sections.append(Section("Constraints", _constraints(design)))
        sections.append(Section("Expected accuracy", _deviations(design)))
    return render_page(
        f"Motion of {robot.name}", f"{motion.duration:.4g} s, {motion.joints} joints", sections
    )


def _verdict(motion: Motion, design: Design | None) -> str:
    if design is None:
        return verdict_box("good", "Ready to play", f"{motion.duration:.4g} s.")
    tightest = design.worst
    unit = " m" if tightest.unit == "m" else " of its limit"
    text = f"Tightest: {tightest.name}, {tightest.margin:.3g}{unit} left at {tightest.time:.2f} s."
    figures = cards(
        [
            ("base parameters", str(len(design.names))),
            ("condition number", f"{design.condition_number:.4g}"),
            ("with unit columns", f"{design.condition_number_scaled:.4g}"),
            ("ln det W'W/N", f"{design.log_det:.4g}"),
            ("CPU time", f"{design.cpu_seconds:.2f} s"),
        ]
    )
    return verdict_box("good", f"Feasible at {design.certificate.points} moments", text) + figures


def _joints(robot: Robot, motion: Motion, limits: JointLimits) -> str:
    time = np.linspace(0.0, motion.duration, 600)
    q, v, a = motion.at(time)
    torque = inverse_dynamics(robot, q, v, a)
    parts = []
    bounds = (
        ("position", "rad", q, limits.lower, limits.upper),
        ("velocity", "rad/s", v, -limits.velocity, limits.velocity),
        ("acceleration", "rad/s²", a, -limits.acceleration, limits.acceleration),
        ("torque of the nominal links", "N m", torque, -limits.torque, limits.torque),
    )
    for name, unit, values, low, high in bounds:
        series = [Series(f"joint {i + 1}", values[:, i]) for i in range(motion.joints)]
        shares = ", ".join(
            f"{100 * max(values[:, i].max() / high[i], values[:, i].min() / low[i]):.0f} %"
            if np.isfinite(high[i]) and low[i] < 0 < high[i]
            else "–"
            for i in range(motion.joints)
        )
        parts.append(
            chart(
                time,
                series,
                caption=f"{name.capitalize()}; share of the limits used, joint by joint: {shares}",
                xlabel="time [s]",
                ylabel=f"{name.split()[0]} [{unit}]",
                group="motion",
            )
        )
    return "".join(parts)


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
