"""HTML of objects: the page of the report, in a frame isolated from the notebook."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.recording import Recording
from taufit.report.charts import Series, chart
from taufit.report.fit_page import fit_page, model_page
from taufit.report.page import Section, bullets, render_page, table
from taufit.robot import Robot
from taufit.signals import Samples
from taufit.workflow import IdentificationResult

_POINTS = 2000


def html(value: object) -> str:
    """Page of an object in a frame; raises TypeError if it has none."""
    for kind, render in PAGES.items():
        if isinstance(value, kind):
            return frame_page(render(value), _HEIGHTS.get(kind, 620), kind.__name__)
    raise TypeError(f"{type(value).__name__} has no page.")


def frame_page(text: str, height: int, title: str) -> str:
    """Page in a sandboxed frame: its scripts run, but cannot access the notebook."""
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" srcdoc="{escape(text)}" '
        f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:6px"></iframe>'
    )


def _robot(robot: Robot) -> str:
    limits = robot.limits
    header = ["joint", "link", "kind", "from", "to", "speed", "torque", "mass [kg]"]
    rows = [
        [
            robot.joint_names[j],
            link.name,
            "prismatic" if link.is_prismatic else "revolute",
            limits.lower[j],
            limits.upper[j],
            limits.velocity[j],
            limits.torque[j],
            float(link.parameters[0]),
        ]
        for j, link in enumerate(robot.links[b] for b in robot.carriers)
    ]
    joints = Section("Joints", table(header, rows, (0, 1, 2)))
    return render_page(robot.name, f"{robot.joints} joints", [joints])


def _recording(recording: Recording) -> str:
    unit = recording.signal_unit or "raw"
    channels = [("Position", recording.position, "rad")]
    if recording.velocity is not None:
        channels.append(("Velocity", recording.velocity, "rad/s"))
    channels.append(("Torque channel", recording.signal, unit))
    sections = _channel_sections(recording.time, channels)
    findings = [str(finding) for finding in recording.findings]
    if findings:
        sections.insert(0, Section("Findings", bullets(findings)))
    length = recording.time[-1] - recording.time[0] if len(recording) else 0.0
    subtitle = f"{len(recording)} rows, {length:.1f} s, {recording.joints} joints"
    return render_page(recording.name, subtitle, sections)


def _samples(samples: Samples) -> str:
    channels = [
        ("Position", samples.position, "rad"),
        ("Velocity", samples.velocity, "rad/s"),
        ("Acceleration", samples.acceleration, "rad/s2"),
        ("Torque", samples.torque, "N m"),
    ]
    # Runs follow one another; each has its own time.
    time = np.arange(len(samples)) / samples.rate_hz
    subtitle = f"{len(samples)} samples, low-pass {samples.cutoff_hz:g} Hz"
    return render_page("Conditioned samples", subtitle, _channel_sections(time, channels))


def _channel_sections(
    time: Float[Array, " n"], channels: list[tuple[str, Float[Array, "n j"], str]]
) -> list[Section]:
    rows = slice(None, None, max(1, len(time) // _POINTS))
    t = np.asarray(time[rows] - time[0])
    return [
        Section(
            title,
            chart(
                t,
                [Series(f"joint {j + 1}", values[rows, j]) for j in range(values.shape[1])],
                caption=title,
                xlabel="time [s]",
                ylabel=f"{title.lower()} [{unit}]",
            ),
        )
        for title, values, unit in channels
    ]


PAGES: dict[type, Callable[[Any], str]] = {
    Robot: _robot,
    Recording: _recording,
    Samples: _samples,
    FittedModel: lambda model: model_page(model, ()),
    IdentificationResult: fit_page,
}
_HEIGHTS = {Robot: 420, IdentificationResult: 760}
