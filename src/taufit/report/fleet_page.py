"""A page about a fleet: who is unlike the others first, then all robots by friction, then days."""

from __future__ import annotations

import html

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.fleet.result import FleetResult, RobotResult
from taufit.report.charts import Series, chart
from taufit.report.page import Raw, Section, bullets, cards, page, paragraph, table, verdict

# Robots in tables and charts of single robots, worst first.
_LISTED, _DRAWN = 500, 12
# A cell has its full colour at this deviation.
_FULL = 1.0


def fleet_page(found: FleetResult) -> str:
    """One page."""
    odd = [one for one in found.robots if one.is_outlier]
    off = _deviations(found)
    sections = [
        Section("Verdict", _verdict(found, odd)),
        Section("Robots unlike the others", _odd(odd) + _reach(found)),
        Section("Map of friction", _map(found, off)),
        Section("Every robot", _table(found, off)),
        Section("Friction over days", _days(found)),
        Section("What robots of this type have in common", _typical(found)),
        Section("Files that were not used", _failed(found)),
    ]
    days = sorted({day.day for one in found.robots for day in one.days})
    when = "" if not any(days) else f", {days[0]}"
    when += f" to {days[-1]}" if len(days) > 1 else ""
    return page(
        f"Fleet of {found.type}",
        f"{len(found.robots)} robots, {found.rows:,} rows{when}",
        sections,
    )


def _verdict(found: FleetResult, odd: list[RobotResult]) -> str:
    kinds = {kind: 0 for kind in ("friction", "tool", "mounting", "trend")}
    for one in odd:
        for surprise in one.outliers:
            kinds[surprise.kind] += 1
    verb = "is" if len(odd) == 1 else "are"
    head = verdict(
        "warn" if odd or found.failed or found.incidents else "good",
        f"{len(odd)} of {len(found.robots)} robots {verb} unlike the others"
        if odd
        else f"All {len(found.robots)} robots are alike",
        f"Files not used: {len(found.failed)}. Workers lost: {len(found.incidents)}. Where robots "
        "differ by chance alone, one study in twenty names a robot.",
    )
    return head + cards(
        [
            ("robots", str(len(found.robots))),
            ("friction unlike the others'", str(kinds["friction"])),
            ("tool or payload", str(kinds["tool"])),
            ("mounting", str(kinds["mounting"])),
            ("friction that moves", str(kinds["trend"])),
            ("files not used", str(len(found.failed))),
        ]
    )


def _reach(found: FleetResult) -> str:
    """From which wear on a joint stands out among its siblings."""
    known = [
        f"joint {j + 1} {factor:.1f} times"
        for j, factor in enumerate(found.detectable_rise)
        if np.isfinite(factor)
    ]
    if not known:
        return ""
    return paragraph(
        "A worn joint is named on 19 of 20 robots once its friction is so many times what it was "
        f"when new: {', '.join(known)}. Less wear can hide among the robots' own differences."
    )


def _odd(odd: list[RobotResult]) -> str:
    if not odd:
        return paragraph("None.")
    rows = [
        (one.robot, surprise.kind, _wide(surprise.message), f"{surprise.size:.1f}")
        for one in odd[:_LISTED]
        for surprise in one.outliers
    ]
    return paragraph(
        "Gravest first; by how many standard deviations of its siblings' a robot is off."
    ) + table(("robot", "what", "in words", "off by"), rows, text=(0, 1, 2))


def _wide(text: str) -> Raw:
    """Words that keep a width one can read on a phone, where tables scroll sideways."""
    return Raw(f'<span style="display: block; min-width: 15em">{html.escape(text)}</span>')


def _deviations(found: FleetResult) -> Float[Array, "r j"]:
    """Friction by each robot's own data over the middle of all, minus one."""
    level = np.stack([one.own_friction.value for one in found.robots])
    return np.asarray(level / np.median(level, axis=0) - 1.0)


def _map(found: FleetResult, off: Float[Array, "r j"]) -> str:
    order = sorted(range(len(found.robots)), key=lambda k: found.robots[k].robot)
    x = np.arange(len(order), dtype=float)
    series = [
        Series(f"joint {j + 1}", 100.0 * off[order, j], points=True) for j in range(off.shape[1])
    ]
    return paragraph(
        "Friction at half the rated speed under the usual load, by each robot's own recordings, in "
        "percent off the middle of the fleet. Robots in order of their names."
    ) + chart(
        x,
        series,
        caption="Friction of every robot and joint",
        xlabel="robot",
        ylabel="off the middle of the fleet [%]",
        tall=True,
    )


def _table(found: FleetResult, off: Float[Array, "r j"]) -> str:
    joints = off.shape[1]
    rows = []
    for one, own in list(zip(found.robots, off, strict=True))[:_LISTED]:
        rows.append(
            (
                one.robot,
                "yes" if one.is_outlier else "",
                one.files,
                one.rows,
                f"{100.0 * float(np.mean(one.nrmse)):.1f} %",
                *(_cell(float(x)) for x in own),
            )
        )
    header = ("robot", "unlike", "files", "rows", "mean nrmse")
    named = [f"joint {j + 1}" for j in range(joints)]
    more = len(found.robots) - len(rows)
    tail = paragraph(f"{more} more in fleet.parquet.") if more > 0 else ""
    return (
        paragraph(
            "Worst first. Joints: friction in percent off the middle of the fleet; the stronger "
            "the colour, the further off."
        )
        + table((*header, *named), rows, text=(0, 1))
        + tail
    )


def _cell(off: float) -> Raw:
    """Percent on a ground whose strength says the same; both themes show through it."""
    strength = min(abs(np.log1p(max(off, -0.99))) / _FULL, 1.0) * 0.55
    ground = "214, 96, 40" if off > 0 else "40, 110, 200"
    style = f"background: rgba({ground}, {strength:.2f}); display: block; padding: 0 .35em"
    return Raw(f'<span style="{style}">{100 * off:+.0f} %</span>')


def _days(found: FleetResult) -> str:
    many = [one for one in found.robots if len(one.days) > 1]
    if not many:
        return paragraph("Recordings are of one day.")
    slopes = ", ".join(f"{100 * k:+.2f}" for k in found.temperature_slopes)
    warm = bool(np.any(found.temperature_slopes != 0.0))
    text = (
        f"Temperature is taken out with what all robots show together: {slopes} % per kelvin for "
        "the joints in order."
        if warm
        else "Temperatures were not recorded or hardly differ: a trend may be the weather's."
    )
    parts = [paragraph(f"The robots that are listed first. {text}")]
    for one in many[:_DRAWN]:
        level = np.stack([day.friction_at_reference for day in one.days])
        x = np.arange(len(one.days), dtype=float)
        parts.append(
            chart(
                x,
                [
                    Series(f"joint {j + 1}", 100.0 * (level[:, j] / level[0, j] - 1.0))
                    for j in range(level.shape[1])
                ],
                caption=f"{one.robot}: {one.days[0].day} to {one.days[-1].day}",
                xlabel="day of recording",
                ylabel="change since the first [%]",
            )
        )
    return "".join(parts)


def _typical(found: FleetResult) -> str:
    model = found.fleet_prior.model
    layout = model.layout
    std = np.sqrt(1.0 / np.diag(found.fleet_prior.precision))
    rows = [
        (layout.names[i], float(found.typical.values[i]), float(std[i]))
        for i in range(layout.after_links.start, layout.size)
    ]
    return paragraph(
        f"Learnt from {found.fleet_prior.robots} robots: what a new arm starts from, and by how "
        "much single robots differ from it."
    ) + table(("parameter", "typical", "spread between robots"), rows, text=(0,))


def _failed(found: FleetResult) -> str:
    lines = [*found.incidents, *(f"{one.file}: {one.reason}" for one in found.failed)]
    return bullets(lines[:_LISTED]) if lines else paragraph("All files were used.")
