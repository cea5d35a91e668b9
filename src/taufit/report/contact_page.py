"""Page about contacts: numbered contacts over external torque, and the arm with the push."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np

from taufit.contact import Contact, ContactRun
from taufit.contact.settings import alarm_rate_text
from taufit.core.number_text import count_text, fixed, quantity, significant
from taufit.core.statistics import NORMAL_95
from taufit.model.accuracy_statement import accuracy_statement
from taufit.model.fitted_model import FittedModel
from taufit.report.arm_sketch import arm_sketch
from taufit.report.charts import (
    Panel,
    Series,
    chart,
    chart_group,
    extreme_samples,
    figure,
    reduce_samples,
)
from taufit.report.page import (
    Number,
    Section,
    bullets,
    paragraph,
    render_page,
    statement,
    statements,
    table,
)
from taufit.report.palette import INK, LIMIT, MODEL, RESIDUAL
from taufit.terms.friction.states import STATES

# Samples of all curves together; contacts that are drawn on the arm.
_ALL_POINTS, _MAX_ARMS = 24_000, 12
_SAFETY_NOTE = (
    "This is not a safety function: it is not rated, takes tens of milliseconds, and nothing here "
    "is a statement about ISO/TS 15066. Forces through the joint axes and within the stiction band "
    "at standstill are unobservable. Sensitivity is low for 0.3 s after start-up."
)


def contact_page(result: ContactRun, model: FittedModel, source: str = "") -> str:
    """Self-contained HTML page, without contacts if they must not be used."""
    result = replace(result, contacts=()) if result.refusal else result
    charts = chart_group(
        [_evidence_chart(result), *_torque_charts(result, model)], "Contacts", "rows"
    )
    arms = _arms(result.contacts, model) if result.contacts else ""
    head = _statements(result, model) + (
        f'<div class="beside wide"><div>{charts}</div><aside>{arms}</aside></div>'
        if arms
        else charts
    )
    sections = [Section("Verdict", head)]
    if result.contacts:
        sections.append(Section("Every contact", _contact_table(result.contacts)))
    standing = 100 * float(np.mean(result.state == STATES.index("standing")))
    sections += [
        Section("Friction regimes", _states(result), f"joints stand {standing:.0f} % of the time"),
        Section(
            "Tail of the evidence",
            _tail(result),
            f"alarm above {significant(result.threshold)}",
        ),
    ]
    notes = [f"{fixed(e.time, 2)} s: {e.kind}: {e.text}" for e in result.events if not e.contact]
    notes += _start_notes(result)
    sections.append(Section("Notes", bullets([*notes, *result.warnings, _SAFETY_NOTE])))
    subtitle = " · ".join(x for x in (source, f"{fixed(result.seconds, 1)} s") if x)
    return render_page(f"Contacts of {model.robot.name}", subtitle, sections)


def _statements(result: ContactRun, model: FittedModel) -> str:
    accuracy = accuracy_statement(model)
    if result.refusal:
        refused = statement("bad", "Contacts", "No result", "", detail=[result.refusal])
        return statements(refused, statement("model", "Model", "", accuracy))
    count, seconds = len(result.contacts), fixed(result.seconds, 0)
    if count:
        strongest = max(result.contacts, key=lambda contact: contact.peak)
        number = 1 + result.contacts.index(strongest)
        contacts = statement(
            "bad",
            "Contacts",
            f"{count} contact{'' if count == 1 else 's'}",
            f" in {seconds} s, the strongest {fixed(strongest.peak, 0)} N",
            detail=[f"No. {number}, on {strongest.link}, {_times(strongest)}."],
        )
    else:
        contacts = statement("good", "Contacts", "No contact", f" in {seconds} s")
    rate, tail = result.alarms_per_hour, result.noise.tail
    if rate is None:
        text = "No rate of false alarms is known for this model."
        return statements(
            contacts, statement("warn", "False alarms", "Unknown", "", detail=[text, accuracy])
        )
    data = (
        "It rests on the default threshold; contact-free recordings make it firm."
        if tail is None
        else f"It rests on {fixed(tail.minutes, 1)} contact-free minutes of "
        f"{count_text(result.noise.runs, 'recording')}."
    )
    alarms = statement(
        "model" if tail is not None and tail.minutes >= 10.0 else "warn",
        "False alarms",
        alarm_rate_text(rate),
        ", extrapolated",
        detail=[data, accuracy],
    )
    return statements(contacts, alarms)


def _times(contact: Contact) -> str:
    if contact.end_time is None:
        return f"from {fixed(contact.start_time, 2)} s to the end"
    return f"from {fixed(contact.start_time, 2)} to {fixed(contact.end_time, 2)} s"


def _marks(result: ContactRun) -> list[tuple[float, float, str]]:
    end = float(result.time[-1]) if len(result.time) else 0.0
    return [
        (c.start_time, end if c.end_time is None else c.end_time, str(k))
        for k, c in enumerate(result.contacts, 1)
    ]


def _contact_table(contacts: tuple[Contact, ...]) -> str:
    rows = []
    for number, contact in enumerate(contacts, 1):
        low, high = contact.force.size_interval
        size = contact.force.size
        delay = 1e3 * (contact.detection_time - contact.start_time)
        rows.append(
            (
                number,
                contact.kind,
                Number(contact.start_time, fixed(contact.start_time, 2)),
                "lasting" if contact.end_time is None else fixed(contact.end_time, 2),
                Number(delay, fixed(delay, 0)),
                contact.link,
                Number(contact.peak, fixed(contact.peak, 0)),
                Number(size, f"{fixed(size, 0)} ({fixed(low, 0)} to {fixed(high, 0)})"),
                ", ".join(contact.unobservable_directions) or "–",
            )
        )
    header = (
        "no.",
        "kind",
        "start [s]",
        "end [s]",
        "noticed after [ms]",
        "on",
        "peak [N]",
        "force at its end (95 %) [N]",
        "unobservable",
    )
    return table(header, rows, text=(1, 5, 8), name="Contacts") + paragraph(
        "Forces hold under the assumption named for each contact in the JSON: a pure force at the "
        "tool, or at the far end of a link."
    )


def _arms(contacts: tuple[Contact, ...], model: FittedModel) -> str:
    """Arm at each contact; the number of a contact shows it."""
    drawn_contacts = contacts[:_MAX_ARMS]
    strongest = max(range(len(drawn_contacts)), key=lambda k: drawn_contacts[k].peak)
    buttons, figures, rules = [], [], []
    for k, contact in enumerate(drawn_contacts):
        low, high = contact.force.size_interval
        size = fixed(contact.force.size, 0)
        checked = " checked" if k == strongest else ""
        buttons.append(
            f'<input type="radio" name="contact" id="contact-{k + 1}"{checked}>'
            f'<label for="contact-{k + 1}">{k + 1}</label>'
        )
        text = (
            f"No. {k + 1} on {contact.link}: {size} N (95 % {fixed(low, 0)} to {fixed(high, 0)}) "
            f"at its end, {fixed(contact.peak, 0)} N at its peak. Arrow: direction of the push."
        )
        drawing = arm_sketch(
            model.robot,
            contact.position,
            label=text,
            force=contact.force.value,
            point=contact.force.point,
        )
        figures.append(f"<figure>{drawing}<p class='sub'>{html.escape(text)}</p></figure>")
        rules.append(
            f".pick input:nth-of-type({k + 1}):checked ~ figure:nth-of-type({k + 1})"
            "{display:block}"
        )
    return (
        f"<style>{''.join(rules)}</style>"
        '<fieldset class="pick"><legend>Contact no.</legend>'
        f"{''.join(buttons)}{''.join(figures)}</fieldset>"
    )


def _torque_charts(result: ContactRun, model: FittedModel) -> list[str]:
    """External torque of each joint with the range of contact-free motion."""
    joints = result.torque.shape[1]
    index = extreme_samples(result.torque, _ALL_POINTS // max(joints, 1))
    marks = _marks(result)
    charts = []
    for j in range(joints):
        unit = "N" if model.robot.is_prismatic[j] else "N m"
        largest = float(np.abs(result.torque[:, j]).max()) if len(result.torque) else 0.0
        series = [
            Series(
                "contact-free, 95 %", half=NORMAL_95 * result.torque_std[index, j], colour=MODEL
            ),
            Series("external torque", result.torque[index, j], colour=RESIDUAL, short="external"),
        ]
        name = model.robot.joint_names[j].replace("_", " ").removesuffix(" joint")
        charts.append(
            figure(
                result.time[index],
                [Panel(series, f"[{unit}]")],
                caption=f"{j + 1} {name}",
                note=f"largest {quantity(largest, unit)}",
                xlabel="time [s]",
                show_xlabel=j == joints - 1,
                show_ticks=j == joints - 1,
                group="contact",
                marks=[(a, b, "") for a, b, _ in marks],
            )
        )
    return charts


def _start_notes(result: ContactRun) -> list[str]:
    """Reason of evidence above the threshold without a contact: torque before a start from rest."""
    standing = (result.state >= STATES.index("standing")).all(1)
    for start, end, _ in _marks(result):
        standing &= (result.time < start) | (result.time > end)
    is_above = bool(np.any(result.evidence[standing] > result.threshold))
    text = "Evidence above the line while all joints stand is the torque of a start: no contact."
    return [text] if is_above else []


def _evidence_chart(result: ContactRun) -> str:
    finite = np.maximum(result.evidence, -20.0)
    time, (evidence,) = reduce_samples(result.time, [finite])
    panel = Panel(
        [Series("evidence", evidence, colour=INK)],
        "[2 ln B]",
        levels=[(float(result.threshold), LIMIT)],
    )
    return figure(
        time,
        [panel],
        caption="Evidence for a contact",
        note=f"alarm above {significant(result.threshold)}, dashed",
        xlabel="time [s]",
        show_xlabel=False,
        show_ticks=False,
        group="contact",
        marks=_marks(result),
    )


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
        time, series, caption=names, xlabel="time [s]", ylabel="regime [number]", group="contact"
    )


def _tail(result: ContactRun) -> str:
    """Share of two-second blocks above an evidence."""
    finite = np.maximum(result.evidence, -20.0)
    step = max(float(np.median(np.diff(result.time))), 1e-3) if len(result.time) > 1 else 1.0
    size = max(round(2.0 / step), 1)
    blocks = np.sort([finite[k : k + size].max() for k in range(0, len(finite), size)])
    share = (len(blocks) - np.arange(len(blocks)) - 0.5) / max(len(blocks), 1)
    edge = np.array([result.threshold, result.threshold])
    return chart(
        blocks,
        [
            Series("two-second blocks", share, points=True, colour=MODEL),
            Series("alarm", np.array([share.min(), 1.0]), x=edge, colour=LIMIT, dash=(6, 4)),
        ],
        caption="Share of blocks above an evidence",
        xlabel="evidence [2 ln B]",
        ylabel="share [1]",
        log=True,
    )
