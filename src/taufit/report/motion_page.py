"""A page about a planned motion: is it allowed, what is it worth, what does it look like."""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING

import numpy as np

from taufit.dynamics import forward_kinematics, inverse_dynamics
from taufit.report.charts import Series, chart
from taufit.report.page import Section, cards, page, paragraph, table, verdict
from taufit.robot import JointLimits, Robot
from taufit.robot.mounting import rotation_rpy

if TYPE_CHECKING:
    from taufit.excitation import Design, Motion


def arm3d(robot: Robot, motion: Motion, caption: str, frames: int = 240) -> str:
    """The HTML of one figure: base, joints and tip in world axes, the tip's path behind them."""
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
    """One self-contained HTML page."""
    sections = [Section("Verdict", _verdict(motion, design))]
    sections.append(
        Section("In space", arm3d(robot, motion, "Drag to turn; the line is the tip's."))
    )
    sections.append(Section("Joints", _joints(robot, motion, limits)))
    if design is not None:
        sections.append(Section("Constraints", _constraints(design)))
        sections.append(Section("What it will show", _deviations(design)))
    return page(
        f"A motion for {robot.name}", f"{motion.duration:.4g} s, {motion.joints} joints", sections
    )


def _verdict(motion: Motion, design: Design | None) -> str:
    if design is None:
        return verdict("good", "Ready to play", f"{motion.duration:.4g} s.")
    tight = design.worst
    unit = " m" if tight.unit == "m" else " of its limit"
    text = f"Tightest: {tight.name}, {tight.margin:.3g}{unit} left at {tight.time:.2f} s."
    figures = cards(
        [
            ("base parameters", str(len(design.names))),
            ("condition number", f"{design.condition_number:.4g}"),
            ("with unit columns", f"{design.condition_number_scaled:.4g}"),
            ("ln det W'W/N", f"{design.log_det:.4g}"),
            ("CPU time", f"{design.cpu_seconds:.2f} s"),
        ]
    )
    return verdict("good", f"Feasible at {design.certificate.points} moments", text) + figures


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
        used = ", ".join(
            f"{100 * max(values[:, i].max() / high[i], values[:, i].min() / low[i]):.0f} %"
            if np.isfinite(high[i]) and low[i] < 0 < high[i]
            else "–"
            for i in range(motion.joints)
        )
        parts.append(
            chart(
                time,
                series,
                caption=f"{name.capitalize()}; share of the limits used, joint by joint: {used}",
                xlabel="s",
                ylabel=unit,
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
    words = paragraph(
        "Standard deviation of each base parameter for noise of 1 N m on every joint and "
        f"{design.samples} samples. A motion cannot be judged by its condition number alone: that "
        "can be lowered by showing less of what is easy to see."
    )
    rows = [
        (name, float(value))
        for name, value in zip(design.names, design.standard_deviation, strict=True)
    ]
    return words + table(("parameter", "standard deviation [SI]"), rows)
