"""Page about contacts: external torque with its interval, contacts and evidence."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np

from taufit.contact import Contact, ContactRun
from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import forward_kinematics
from taufit.model.accuracy_statement import accuracy_statement
from taufit.model.fitted_model import FittedModel
from taufit.report.charts import Series, chart, reduce_samples
from taufit.report.page import Section, bullets, cards, paragraph, render_page, table, verdict_box
from taufit.report.palette import INK, LIMIT, MODEL, OTHER, OUTLINE, PLOT, RESIDUAL
from taufit.terms.friction.states import STATES

_SAFETY_NOTE = (
    "This is not a safety function: it is not rated, takes tens of milliseconds, and nothing here "
    "is a statement about ISO/TS 15066. Forces through the joint axes and within the stiction band "
    "at standstill are unobservable. Sensitivity is low for 0.3 s after start-up."
)


def contact_page(result: ContactRun, model: FittedModel, source: str = "") -> str:
    """Self-contained HTML page, without contacts if they must not be used."""
    result = replace(result, contacts=()) if result.refusal else result
    sections = [Section("Verdict", _verdict(result, model))]
    if result.contacts:
        sections.append(Section("Contacts", _contacts(result.contacts)))
        strongest = max(result.contacts, key=lambda contact: contact.evidence)
        sections.append(Section("Strongest contact", _robot_sketch(model, strongest)))
    sections += [
        Section("External joint torque", _torque(result)),
        Section("Friction regimes", _states(result)),
        Section("Evidence and threshold", _evidence(result)),
    ]
    notes = [f"{e.time:.2f} s: {e.kind}: {e.text}" for e in result.events if e.contact is None]
    sections.append(Section("Notes", bullets([*notes, *result.warnings, _SAFETY_NOTE])))
    return render_page(f"Contacts of {model.robot.name}", source, sections)


def _verdict(result: ContactRun, model: FittedModel) -> str:
    if result.refusal:
        return verdict_box("bad", "No result", result.refusal)
    count = len(result.contacts)
    head = "No contact" if count == 0 else f"{count} contact{'' if count == 1 else 's'}"
    tail = result.noise.tail
    data_text = (
        "the default threshold"
        if tail is None
        else f"{tail.minutes:.1f} contact-free minutes of {result.noise.runs} recordings"
    )
    rate = result.alarms_per_hour
    text = (
        "No rate of false alarms is known for this model."
        if rate is None
        else f"{rate:g} false alarms per hour, extrapolated from {data_text}."
    )
    figures = [
        ("seconds", f"{result.seconds:.1f}"),
        ("largest evidence", f"{float(result.evidence.max()):.0f}"),
        ("threshold", f"{result.threshold:.0f}"),
    ]
    text = f"{accuracy_statement(model)} {text}"
    return verdict_box("good" if count == 0 else "bad", head, text) + cards(figures)


def _contacts(contacts: tuple[Contact, ...]) -> str:
    rows = []
    for contact in contacts:
        low, high = contact.force.size_interval
        end_text = "lasting" if contact.end_time is None else f"{contact.end_time:.2f}"
        directions = ", ".join(contact.unobservable_directions) or "–"
        force = f"{contact.force.size:.0f} ({low:.0f} to {high:.0f})"
        delay = f"{1e3 * (contact.detection_time - contact.start_time):.0f}"
        rows.append(
            (
                contact.kind,
                f"{contact.start_time:.2f}",
                end_text,
                delay,
                contact.link,
                force,
                f"{contact.peak:.0f}",
                directions,
            )
        )
    header = ("kind", "start [s]", "end [s]", "delay [ms]", "on", "force [N]", "peak [N]")
    return table((*header, "unobservable"), rows, text=(0, 4, 7)) + paragraph(
        "Forces hold under the assumption named for each contact in the JSON: a pure force at the "
        "tool, or at the far end of a link."
    )


def _robot_sketch(model: FittedModel, contact: Contact) -> str:
    """Robot from two sides, with the force as an arrow."""
    poses = forward_kinematics(model.robot, contact.position[None])[0]
    joints = np.concatenate([np.zeros((1, 3)), poses[:, :3, 3]])
    reach = max(float(np.abs(joints).max()), 0.1)
    length = 0.45 * reach / max(contact.force.size, 1e-9)
    end = contact.force.point + length * contact.force.value
    views = [
        _plane_view(
            joints[:, [a, 2]], contact.force.point[[a, 2]], end[[a, 2]], 1.3 * reach, 200.0 + x
        )
        for a, x in ((0, 0.0), (1, 400.0))
    ]
    label = html.escape(str(contact), quote=True)
    return (
        f"<figure><figcaption>{label}. Left: x and z of the base, right: y and z.</figcaption>"
        f'<svg viewBox="0 0 800 400" role="img" aria-label="{label}" '
        f'style="width:100%;background:{PLOT}">{"".join(views)}</svg></figure>'
    )


def _plane_view(
    joints: Float[Array, "k 2"],
    point: Float[Array, " 2"],
    end: Float[Array, " 2"],
    reach: float,
    centre: float,
) -> str:
    def to_pixels(position: Array) -> tuple[float, float]:
        return centre + 180.0 * position[0] / reach, 210.0 - 180.0 * position[1] / reach

    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(to_pixels, joints))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>' for x, y in map(to_pixels, joints)
    )
    (x0, y0), (x1, y1) = to_pixels(point), to_pixels(end)
    arrow = np.array([x1 - x0, y1 - y0])
    arrow_head = arrow / max(float(np.linalg.norm(arrow)), 1e-9) * 9.0
    left_corner = (
        x1 - arrow_head[0] + 0.5 * arrow_head[1],
        y1 - arrow_head[1] - 0.5 * arrow_head[0],
    )
    right_corner = (
        x1 - arrow_head[0] - 0.5 * arrow_head[1],
        y1 - arrow_head[1] + 0.5 * arrow_head[0],
    )
    head = (
        f"M{x1:.1f} {y1:.1f}L{left_corner[0]:.1f} {left_corner[1]:.1f}L{right_corner[0]:.1f} "
        f"{right_corner[1]:.1f}Z"
    )
    return (
        f'<path d="M{path}" fill="none" stroke="{OUTLINE}" stroke-width="6" '
        f'stroke-linejoin="round"/>{dots}<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" '
        f'stroke="{LIMIT}" stroke-width="3"/><path d="{head}" fill="{LIMIT}"/>'
    )


def _torque(result: ContactRun) -> str:
    parts = [
        paragraph(
            "External torque of each joint. The band contains 95 % of contact-free motion in the "
            "joint's friction regime; contacts are shaded."
        )
    ]
    in_contact = np.zeros(len(result.time), bool)
    for contact in result.contacts:
        end_time = result.time[-1] if contact.end_time is None else contact.end_time
        in_contact |= (result.time >= contact.start_time) & (result.time <= end_time)
    for j in range(result.torque.shape[1]):
        half = NORMAL_95 * result.torque_std[:, j]
        time, (torque, band, mark) = reduce_samples(
            result.time, [result.torque[:, j], half, in_contact.astype(float)]
        )
        top = 1.05 * max(float(np.abs(torque).max()), float(band.max()))
        series = [
            Series("contact-free band", None, low=-band, high=band, colour=MODEL),
            Series("contact", None, low=-top * mark, high=top * mark, colour=OTHER),
            Series("external torque", torque, colour=RESIDUAL),
        ]
        caption = f"Joint {j + 1}"
        parts.append(
            chart(time, series, caption=caption, xlabel="s", ylabel="N m", group="contact")
        )
    return "".join(parts)


def _states(result: ContactRun) -> str:
    time, columns = reduce_samples(
        result.time, [result.state[:, j] * 1.0 for j in range(result.state.shape[1])]
    )
    series = [Series(f"joint {j + 1}", column) for j, column in enumerate(columns)]
    names = ", ".join(f"{k} {name}" for k, name in enumerate(STATES))
    shares = [
        (name, *(f"{100 * np.mean(result.state[:, j] == k):.0f} %" for j in range(len(columns))))
        for k, name in enumerate(STATES)
    ]
    header = ("state", *(f"joint {j + 1}" for j in range(len(columns))))
    return table(header, shares, text=(0,)) + chart(
        time, series, caption=names, xlabel="s", ylabel="state", group="contact"
    )


def _evidence(result: ContactRun) -> str:
    finite = np.maximum(result.evidence, -20.0)
    time, (evidence,) = reduce_samples(result.time, [finite])
    line = np.full_like(time, result.threshold)
    evidence_chart = chart(
        time,
        [
            Series("evidence 2 ln B", evidence),
            Series("alarm line", line, colour=LIMIT, dash=(6, 4)),
        ],
        caption="Evidence for a contact over time",
        xlabel="s",
        ylabel="2 ln B",
        group="contact",
    )
    step = max(float(np.median(np.diff(result.time))), 1e-3) if len(result.time) > 1 else 1.0
    size = max(round(2.0 / step), 1)
    blocks = np.sort([finite[k : k + size].max() for k in range(0, len(finite), size)])[::-1]
    share = (np.arange(len(blocks)) + 0.5) / len(blocks)
    tail = chart(
        blocks,
        [
            Series("two-second blocks", np.log10(share), points=True),
            Series(
                "alarm line",
                np.array([float(np.log10(share[0])), 0.0]),
                x=np.array([result.threshold, result.threshold]),
                colour=LIMIT,
                dash=(6, 4),
            ),
        ],
        caption="Tail of the evidence: share of blocks above it, as a power of ten",
        xlabel="2 ln B",
        ylabel="log10 of the share",
    )
    return evidence_chart + tail
