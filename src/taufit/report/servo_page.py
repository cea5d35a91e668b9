"""Page about a servo model: verdict, parameters, replays of the best, median and worst run."""

from __future__ import annotations

import numpy as np

from taufit.report.charts import Series, chart
from taufit.report.page import Section, bullets, cards, paragraph, render_page, table, verdict_box
from taufit.report.palette import LIMIT, MEASURED, MODEL
from taufit.servo.identify import RunComparison, ServoIdentification
from taufit.servo.score import contact_rows

_POINTS = 1500
_KINDS = {"PASS": "good", "FAIL": "bad", "NOT TESTED": "warn"}


def servo_page(result: ServoIdentification) -> str:
    """Page with verdict, scores, parameters with intervals, replays and warnings."""
    which = "hold-out" if result.holdout else "training"
    summary = result.summary()
    head = verdict_box(
        _KINDS[result.verdict],
        f"{result.verdict}: {1e3 * summary.mean:.1f} mrad replay error on {which} runs",
        f"The command itself is {1e3 * result.summary('command').mean:.1f} mrad away from the "
        f"measured position, the nominal actuator {1e3 * result.summary('nominal').mean:.1f} mrad.",
    )
    figures = cards(
        [
            ("median run", f"{1e3 * summary.median:.1f} mrad"),
            ("away from contact", f"{1e3 * summary.free_mean:.1f} mrad"),
            ("largest command jump seen", f"{1e3 * result.model.command_jump.max():.0f} mrad"),
        ]
    )
    sections = [
        Section("Verdict", head + figures + bullets(result.warnings)),
        Section("Servo parameters", _parameters(result)),
        Section(f"Replay of {which} runs", _scores(result) + _replays(result)),
    ]
    name = result.model.robot.name
    return render_page(f"Servos of {name}", f"Stage: {result.model.record['stage']}", sections)


def _parameters(result: ServoIdentification) -> str:
    rows = [(v.name, v.value, v.low, v.high, v.unit, v.note) for v in result.model.values]
    text = (
        "95 % intervals with runs as independent units. Ratios, delay and limit do not "
        "depend on the masses; kp does."
    )
    header = ("parameter", "value", "low", "high", "unit", "remark")
    return paragraph(text) + table(header, rows, text=(0, 4, 5))


def _scores(result: ServoIdentification) -> str:
    rows = [
        (
            run.name,
            1e3 * run.model.mean_rms,
            1e3 * float(run.model.free_rms.mean()),
            1e3 * run.command.mean_rms,
            1e3 * run.nominal.mean_rms,
            100 * run.model.contact_fraction,
            "yes" if run.is_extrapolated else "",
        )
        for run in result.holdout or result.training
    ]
    header = (
        "run",
        "model",
        "away from contact",
        "command",
        "nominal",
        "contact %",
        "beyond range",
    )
    return paragraph("Root mean square error, mean over the joints [mrad].") + table(
        header, rows, text=(0, 6)
    )


def _replays(result: ServoIdentification) -> str:
    runs = sorted(result.holdout or result.training, key=lambda run: run.model.mean_rms)
    chosen = {"Best": runs[0], "Median": runs[len(runs) // 2], "Worst": runs[-1]}
    return "".join(_replay(result, label, run) for label, run in chosen.items())


def _replay(result: ServoIdentification, label: str, run: RunComparison) -> str:
    motion, model = run.motion, result.model
    every = max(1, len(motion.position) // _POINTS)
    rows = slice(None, None, every)
    time = np.arange(len(motion.position))[rows] * motion.step
    position = model.replay(motion)
    contact = contact_rows(model.axes, motion, model.floor)[rows]
    joint = int(np.argmax(run.model.rms))
    error = 1e3 * (position - motion.position)[rows, joint]
    edge = np.where(contact, float(np.abs(error).max()), 0.0)
    return chart(
        time,
        [
            Series("rows in contact", None, low=-edge, high=edge, colour=LIMIT),
            Series(
                "command - measured",
                1e3 * (motion.command - motion.position)[rows, joint],
                colour=MEASURED,
            ),
            Series("replay - measured", error, colour=MODEL),
        ],
        caption=f"{label} run, {run.name}, joint {joint + 1}",
        xlabel="time [s]",
        ylabel="error [mrad]",
    )
