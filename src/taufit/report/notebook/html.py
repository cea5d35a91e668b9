"""A noun as HTML: the report's own page, in a frame that cannot touch the notebook around it."""

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
from taufit.report.page import Section, bullets, page, table
from taufit.robot import Robot
from taufit.signals import Samples
from taufit.workflow import IdentificationResult

_POINTS = 2000


def html(noun: object) -> str:
    """The page of a noun, framed."""
    for kind, write in PAGES.items():
        if isinstance(noun, kind):
            return framed(write(noun), _HEIGHTS.get(kind, 620), kind.__name__)
    raise TypeError(f"{type(noun).__name__} has no page.")


def framed(text: str, height: int, title: str) -> str:
    """A page within a page: its scripts run, but see and change nothing outside."""
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
        for j, link in enumerate(robot.links)
    ]
    joints = Section("Joints", table(header, rows, (0, 1, 2)))
    return page(robot.name, f"{robot.joints} joints", [joints])


def _recording(recording: Recording) -> str:
    unit = recording.signal_unit or "raw"
    channels = [("Position", recording.position, "rad")]
    if recording.velocity is not None:
        channels.append(("Velocity", recording.velocity, "rad/s"))
    channels.append(("Torque channel", recording.signal, unit))
    sections = _over_time(recording.time, channels)
    found = [str(finding) for finding in recording.findings]
    if found:
        sections.insert(0, Section("Findings", bullets(found)))
    length = recording.time[-1] - recording.time[0] if len(recording) else 0.0
    words = f"{len(recording)} rows, {length:.1f} s, {recording.joints} joints"
    return page(recording.name, words, sections)


def _samples(samples: Samples) -> str:
    channels = [
        ("Position", samples.position, "rad"),
        ("Velocity", samples.velocity, "rad/s"),
        ("Acceleration", samples.acceleration, "rad/s2"),
        ("Torque", samples.torque, "N m"),
    ]
    # Runs stand one after the other; each has a time of its own.
    time = np.arange(len(samples)) / samples.rate_hz
    words = f"{len(samples)} samples, low-pass {samples.cutoff_hz:g} Hz"
    return page("Conditioned samples", words, _over_time(time, channels))


def _over_time(
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
                xlabel="s",
                ylabel=unit,
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
