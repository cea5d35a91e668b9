"""Page about a servo model: verdict, all joints in replay, parameters, scores of the runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.number_text import count_text, fixed, significant
from taufit.report.charts import Panel, Series, chart_group, extreme_samples, figure
from taufit.report.page import (
    Number,
    Section,
    bullets,
    commands as command_list,
    numbers,
    paragraph,
    render_page,
    ruler,
    small_text,
    statement,
    statements,
    table,
    with_sidebar,
)
from taufit.report.palette import INK, LIMIT, MEASURED, MODEL, RESIDUAL
from taufit.servo.identify import PASS_RATIO, RunComparison, ServoIdentification
from taufit.servo.score import contact_rows

# Samples of all curves of a run together.
_ALL_POINTS = 12_000
_KINDS = {"PASS": "good", "FAIL": "bad", "NOT TESTED": "warn"}


def servo_page(result: ServoIdentification, *, commands: Sequence[tuple[str, str]] = ()) -> str:
    """Page with verdict, replays of the median, best and worst run, parameters with intervals.

    Args:
        result: Identified servos.
        commands: Purposes and commands to run next.
    """
    runs = sorted(result.holdout or result.training, key=lambda run: run.model.mean_rms)
    median = runs[len(runs) // 2]
    charts = _replay(result, median, "Replay")
    sidebar = _figures(result) + (command_list("What to do next", commands) if commands else "")
    sections = [
        Section(
            "Verdict",
            _statements(result) + with_sidebar(charts, sidebar),
        ),
        Section(
            f"Warnings ({len(result.warnings)})",
            bullets(result.warnings),
            "what the data leave open",
        ),
        Section("Servo parameters", _parameters(result), f"{len(result.model.values)} values"),
        Section(
            "Every run",
            _scores(result),
            f"{_mrad(runs[0].model.mean_rms)} to {_mrad(runs[-1].model.mean_rms)} mrad",
        ),
    ]
    extremes = {"Best": runs[0], "Worst": runs[-1]}
    sections += [
        Section(f"{label} run", _replay(result, run, label), f"{_mrad(run.model.mean_rms)} mrad")
        for label, run in extremes.items()
        if run is not median
    ]
    subtitle = f"stage {result.model.record['stage']} · {count_text(len(runs), 'run')} shown"
    return render_page(f"Servos of {result.model.robot.name}", subtitle, sections)


def _mrad(angle: float) -> str:
    return fixed(1e3 * angle, 1)


def _statements(result: ServoIdentification) -> str:
    data_kind = "hold-out" if result.holdout else "training"
    model, command, nominal = (
        result.summary(name).mean for name in ("model", "command", "nominal")
    )
    ratio = model / max(min(command, nominal), 1e-12)
    return statements(
        statement(
            _KINDS[result.verdict],
            f"Replay: {result.verdict}",
            f"{_mrad(model)} mrad",
            f" replay error on {data_kind} runs",
            detail=["Root mean square of replayed less measured position, mean over the joints."],
        ),
        statement(
            "good" if ratio < PASS_RATIO else "bad",
            "Beside no servo model",
            f"{significant(ratio, 2)} ×",
            " the error of the better of command and nominal actuator",
            ruler=ruler(ratio, (0.0, PASS_RATIO, 1.5), ("0 ×", f"{PASS_RATIO:g} ×")),
            detail=[
                f"The command itself is {_mrad(command)} mrad away from the measured position, the "
                f"nominal actuator {_mrad(nominal)} mrad."
            ],
        ),
    )


def _figures(result: ServoIdentification) -> str:
    summary = result.summary()
    jump = float(result.model.command_jump.max())
    return numbers(
        [
            (_mrad(summary.median), "mrad", "median run"),
            (_mrad(summary.free_mean), "mrad", "away from contact"),
            (_mrad(jump), "mrad", "largest command jump of the training runs"),
        ]
    )


def _parameters(result: ServoIdentification) -> str:
    rows = [
        (v.name, *(Number(x, significant(x)) for x in (v.value, v.low, v.high)), v.unit, v.note)
        for v in result.model.values
    ]
    text = (
        "95 % intervals with runs as independent units. Ratios, delay and limit do not "
        "depend on the masses; kp does."
    )
    header = ("parameter", "value", "low", "high", "unit", "remark")
    return paragraph(text) + table(header, rows, text=(0, 4, 5), name="Servo parameters")


def _scores(result: ServoIdentification) -> str:
    rows = [
        (
            run.name,
            *(
                Number(1e3 * x, fixed(1e3 * x, 1))
                for x in (
                    run.model.mean_rms,
                    float(run.model.free_rms.mean()),
                    run.command.mean_rms,
                    run.nominal.mean_rms,
                )
            ),
            f"{fixed(100 * run.model.contact_fraction, 0)} %",
            "yes" if run.is_extrapolated else "no",
        )
        for run in result.holdout or result.training
    ]
    header = ("run", "model", "away from contact", "command", "nominal", "contact", "beyond range")
    return paragraph("Root mean square error, mean over the joints [mrad].") + table(
        header, rows, text=(0, 6), name="Every run"
    )


def _replay(result: ServoIdentification, run: RunComparison, name: str) -> str:
    """All joints of a run: measured, commanded and replayed position over the error."""
    motion, model = run.motion, result.model
    position = model.replay(motion)
    joints = position.shape[1]
    positions = np.concatenate([motion.position, position], axis=1)
    keep = extreme_samples(positions, _ALL_POINTS // joints)
    time = np.arange(len(position))[keep] * motion.step
    contact = contact_rows(model.axes, motion, model.floor)[keep]
    charts = []
    for joint, label in enumerate(model.robot.joint_names):
        error = 1e3 * (position - motion.position)[keep, joint]
        # A band over the whole strip where the arm touches the floor.
        edge = np.where(contact, float(np.abs(error).max()), 0.0)
        strip = [Series("replay error, own scale", error, colour=RESIDUAL, short="error")]
        if contact.any():
            strip.insert(0, Series("in contact", None, low=-edge, high=edge, colour=LIMIT))
        main = [
            Series("measured", motion.position[keep, joint], colour=MEASURED, wide=True),
            Series("command", motion.command[keep, joint], colour=INK, dash=(4, 3)),
            Series("replay", position[keep, joint], colour=MODEL),
        ]
        charts.append(
            figure(
                time if joint == 0 else None,
                [Panel(main, "position [rad]"), Panel(strip, "err. [mrad]")],
                caption=f"{joint + 1} {label.replace('_', ' ').removesuffix(' joint')}",
                note=f"{_mrad(float(run.model.rms[joint]))} mrad",
                xlabel="time [s]",
                show_xlabel=False,
                group=name,
            )
        )
    return chart_group(charts, f"{name} of {run.name}", "joints") + small_text(
        f"Position over time [s] in {run.name}, one zoom and cursor for all joints."
    )
