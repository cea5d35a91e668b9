"""A page about contact: external torque with its band, what touched the arm, and how sure."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np

from taufit.contact import Contact, ContactRun
from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import forward_kinematics
from taufit.model.fitted_model import FittedModel
from taufit.report.charts import Series, chart, thin
from taufit.report.page import Section, bullets, cards, page, paragraph, table, verdict
from taufit.report.palette import INK, LIMIT, MODEL, OTHER, OUTLINE, PLOT, RESIDUAL
from taufit.terms.friction.states import STATES

_NO_SAFETY = (
    "This is not a safety function: it is not rated, takes tens of milliseconds, and nothing here "
    "is a statement about ISO/TS 15066. It is blind to forces through the joints' axes and to "
    "what friction holds at standstill. For 0.3 s after a start it hardly feels anything."
)


def contact_page(done: ContactRun, model: FittedModel, source: str = "") -> str:
    """One self-contained HTML page; contacts that must not be used are not on it."""
    done = replace(done, contacts=()) if done.refusal else done
    sections = [Section("Verdict", _verdict(done))]
    if done.contacts:
        sections.append(Section("Contacts", _contacts(done.contacts)))
        strongest = max(done.contacts, key=lambda one: one.evidence)
        sections.append(Section("The strongest one", _arm(model, strongest)))
    sections += [
        Section("External joint torque", _torque(done)),
        Section("Friction states", _states(done)),
        Section("Evidence and the alarm line", _evidence(done)),
    ]
    notes = [f"{e.time:.2f} s: {e.kind}: {e.text}" for e in done.events if e.contact is None]
    sections.append(Section("Notes", bullets([*notes, *done.warnings, _NO_SAFETY])))
    return page(f"What {model.robot.name} feels", source, sections)


def _verdict(done: ContactRun) -> str:
    if done.refusal:
        return verdict("bad", "No result", done.refusal)
    count = len(done.contacts)
    head = "No contact" if count == 0 else f"{count} contact{'' if count == 1 else 's'}"
    tail = done.noise.tail
    rests = (
        "a threshold of arms in general"
        if tail is None
        else f"{tail.minutes:.1f} contact-free minutes of {done.noise.runs} recordings"
    )
    text = f"{done.settings.alarms_per_hour:g} false alarms per hour, extrapolated from {rests}."
    figures = [
        ("seconds", f"{done.seconds:.1f}"),
        ("largest evidence", f"{float(done.evidence.max()):.0f}"),
        ("alarm line", f"{done.threshold:.0f}"),
    ]
    return verdict("good" if count == 0 else "bad", head, text) + cards(figures)


def _contacts(contacts: tuple[Contact, ...]) -> str:
    rows = []
    for one in contacts:
        low, high = one.force.size_interval
        until = "lasting" if one.end_time is None else f"{one.end_time:.2f}"
        blind = ", ".join(one.unobservable_directions) or "–"
        force = f"{one.force.size:.0f} ({low:.0f} to {high:.0f})"
        late = f"{1e3 * (one.detection_time - one.start_time):.0f}"
        rows.append(
            (
                one.kind,
                f"{one.start_time:.2f}",
                until,
                late,
                one.link,
                force,
                f"{one.peak:.0f}",
                blind,
            )
        )
    heads = ("kind", "since [s]", "until [s]", "told after [ms]", "on", "force [N]", "peak [N]")
    return table((*heads, "blind along"), rows, text=(0, 4, 7)) + paragraph(
        "Forces hold under the assumption named for each contact in the JSON: a pure force at the "
        "tool, or at the far end of a link."
    )


def _arm(model: FittedModel, contact: Contact) -> str:
    """The arm from two sides, with the force as an arrow."""
    poses = forward_kinematics(model.robot, contact.position[None])[0]
    joints = np.concatenate([np.zeros((1, 3)), poses[:, :3, 3]])
    reach = max(float(np.abs(joints).max()), 0.1)
    length = 0.45 * reach / max(contact.force.size, 1e-9)
    end = contact.force.point + length * contact.force.value
    views = [
        _view(joints[:, [a, 2]], contact.force.point[[a, 2]], end[[a, 2]], 1.3 * reach, 200.0 + x)
        for a, x in ((0, 0.0), (1, 400.0))
    ]
    label = html.escape(str(contact), quote=True)
    return (
        f"<figure><figcaption>{label}. Left: x and z of the base, right: y and z.</figcaption>"
        f'<svg viewBox="0 0 800 400" role="img" aria-label="{label}" '
        f'style="width:100%;background:{PLOT}">{"".join(views)}</svg></figure>'
    )


def _view(
    joints: Float[Array, "k 2"],
    point: Float[Array, " 2"],
    end: Float[Array, " 2"],
    reach: float,
    centre: float,
) -> str:
    def place(at: Array) -> tuple[float, float]:
        return centre + 180.0 * at[0] / reach, 210.0 - 180.0 * at[1] / reach

    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(place, joints))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>' for x, y in map(place, joints)
    )
    (x0, y0), (x1, y1) = place(point), place(end)
    way = np.array([x1 - x0, y1 - y0])
    along = way / max(float(np.linalg.norm(way)), 1e-9) * 9.0
    left = (x1 - along[0] + 0.5 * along[1], y1 - along[1] - 0.5 * along[0])
    right = (x1 - along[0] - 0.5 * along[1], y1 - along[1] + 0.5 * along[0])
    head = f"M{x1:.1f} {y1:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}Z"
    return (
        f'<path d="M{path}" fill="none" stroke="{OUTLINE}" stroke-width="6" '
        f'stroke-linejoin="round"/>{dots}<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" '
        f'stroke="{LIMIT}" stroke-width="3"/><path d="{head}" fill="{LIMIT}"/>'
    )


def _torque(done: ContactRun) -> str:
    out = [
        paragraph(
            "What the outside does to each joint. The band is where 95 % of contact-free motion "
            "lies in the joint's friction state; contacts are shaded."
        )
    ]
    touched = np.zeros(len(done.time), bool)
    for one in done.contacts:
        until = done.time[-1] if one.end_time is None else one.end_time
        touched |= (done.time >= one.start_time) & (done.time <= until)
    for j in range(done.torque.shape[1]):
        half = NORMAL_95 * done.torque_std[:, j]
        time, (torque, band, mark) = thin(
            done.time, [done.torque[:, j], half, touched.astype(float)]
        )
        top = 1.05 * max(float(np.abs(torque).max()), float(band.max()))
        series = [
            Series("contact-free band", None, low=-band, high=band, colour=MODEL),
            Series("contact", None, low=-top * mark, high=top * mark, colour=OTHER),
            Series("external torque", torque, colour=RESIDUAL),
        ]
        caption = f"Joint {j + 1}"
        out.append(chart(time, series, caption=caption, xlabel="s", ylabel="N m", group="contact"))
    return "".join(out)


def _states(done: ContactRun) -> str:
    time, columns = thin(done.time, [done.state[:, j] * 1.0 for j in range(done.state.shape[1])])
    series = [Series(f"joint {j + 1}", column) for j, column in enumerate(columns)]
    names = ", ".join(f"{k} {name}" for k, name in enumerate(STATES))
    shares = [
        (name, *(f"{100 * np.mean(done.state[:, j] == k):.0f} %" for j in range(len(columns))))
        for k, name in enumerate(STATES)
    ]
    heads = ("state", *(f"joint {j + 1}" for j in range(len(columns))))
    return table(heads, shares, text=(0,)) + chart(
        time, series, caption=names, xlabel="s", ylabel="state", group="contact"
    )


def _evidence(done: ContactRun) -> str:
    finite = np.maximum(done.evidence, -20.0)
    time, (evidence,) = thin(done.time, [finite])
    line = np.full_like(time, done.threshold)
    over = chart(
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
    step = max(float(np.median(np.diff(done.time))), 1e-3) if len(done.time) > 1 else 1.0
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
                x=np.array([done.threshold, done.threshold]),
                colour=LIMIT,
                dash=(6, 4),
            ),
        ],
        caption="Tail of the evidence: share of blocks above it, as a power of ten",
        xlabel="2 ln B",
        ylabel="log10 of the share",
    )
    return over + tail
