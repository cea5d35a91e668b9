"""Page about friction tests: friction over speed by load, and comparison of models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.calibration.friction_identification import FrictionIdentification, JointFriction
from taufit.core.arrays import Array, Bool
from taufit.core.number_text import count_text, fixed, interval, percent, quantity, significant
from taufit.core.statistics import NORMAL_95
from taufit.report.charts import Panel, Series, chart, chart_group, figure
from taufit.report.page import (
    Number,
    Section,
    bullets,
    commands as command_list,
    numbers,
    paragraph,
    render_page,
    small_text,
    statement,
    statements,
    table,
    with_sidebar,
)
from taufit.report.palette import COLOURS, DASHES
from taufit.robot import Robot


def friction_page(
    robot: Robot, result: FrictionIdentification, *, commands: Sequence[tuple[str, str]] = ()
) -> str:
    """Self-contained HTML page.

    Args:
        robot: The robot.
        result: Friction of its joints.
        commands: Purposes and commands to run next.
    """
    charts = chart_group(
        [_curves(friction, robot) for friction in result.joints], "Friction over speed"
    ) + small_text(
        "Dots are pairs of strokes to and fro, lines the fitted curves, by thirds of load."
    )
    sidebar = _figures(result) + (command_list("What to do next", commands) if commands else "")
    count = sum(len(f.fit.coefficients) - len(f.fit.dropped) for f in result.joints)
    sections = [
        Section("Verdict", _statements(result) + with_sidebar(charts, sidebar)),
        Section(
            "Models compared",
            _model_table(result) + _error_charts(result),
            f"{min(result.scores, key=lambda name: result.scores[name])} has the smallest score",
        ),
        Section("Coefficients", _coefficients(result), f"{count} terms"),
    ]
    if result.warnings:
        title = f"Warnings ({len(result.warnings)})"
        sections.append(Section(title, bullets(list(result.warnings)), "to look at"))
    tested = count_text(len(result.joints), "joint")
    return render_page(f"Friction of {robot.name}", f"model {result.name} · {tested}", sections)


def _statements(result: FrictionIdentification) -> str:
    worst = max(result.joints, key=lambda f: f.fit.rms / max(float(np.std(f.pairs.torque)), 1e-12))
    share = worst.fit.rms / max(float(np.std(worst.pairs.torque)), 1e-12)
    limited = [f for f in result.joints if f.fit.valid_to < f.fit.fastest]
    fastest = max(f.fit.fastest for f in result.joints)
    speed_statement = (
        statement(
            "warn",
            "Speeds",
            f"{count_text(len(limited), 'joint')}",
            " with a curve that is not certain up to the fastest tested speed",
            detail=[
                f"Joint {f.joint}: certain within 15 % up to {quantity(f.fit.valid_to, 'rad/s')}."
                for f in limited[:3]
            ],
        )
        if limited
        else statement(
            "good",
            "Speeds",
            f"Up to {quantity(fastest, 'rad/s')}",
            " every curve is certain within 15 %",
            detail=["Above the tested speeds the curves are extrapolated."],
        )
    )
    return statements(
        statement(
            "good" if share < 0.1 else "warn",
            f"Friction model: {result.name}",
            percent(share),
            f" of the friction is left unexplained in the worst joint, {worst.joint}",
            detail=["Over pairs of strokes to and fro, whose half difference is friction."],
        ),
        speed_statement,
    )


def _figures(result: FrictionIdentification) -> str:
    rms = [f.fit.rms for f in result.joints]
    low, high = significant(min(rms), 2), significant(max(rms), 2)
    speeds = np.concatenate([f.fit.tested_speeds for f in result.joints])
    return numbers(
        [
            (
                low if low == high else f"{low} to {high}",
                "N m",
                "RMS residual" if low == high else "RMS residual, best to worst joint",
            ),
            (
                f"{significant(float(speeds.min()), 2)} to {significant(float(speeds.max()), 2)}",
                "rad/s",
                "tested speeds",
            ),
            (str(sum(len(f.pairs.torque) for f in result.joints)), "", "measured pairs"),
        ]
    )


def _curves(friction: JointFriction, robot: Robot) -> str:
    """Measured pairs and fitted curves, by thirds of the load."""
    pairs, fit = friction.pairs, friction.fit
    load = np.abs(pairs.load)
    groups = _load_groups(load)
    grid = np.linspace(0.0, 1.02 * fit.fastest, 300)[1:]
    names = ("low load", "middle load", "high load") if len(groups) == 3 else ("low load",)
    series = []
    for k, (name, rows) in enumerate(zip(names, groups, strict=False)):
        level = float(np.median(load[rows]))
        curve = fit.torque(
            grid, np.full_like(grid, level), _median_temperature(friction, rows, len(grid))
        )
        series += [
            Series("", pairs.torque[rows], pairs.velocity[rows], colour=COLOURS[k], points=True),
            Series(name, curve, grid, colour=COLOURS[k], dash=DASHES[0]),
        ]
    label = robot.joint_names[friction.joint - 1].replace("_", " ").removesuffix(" joint")
    return figure(
        grid,
        [Panel(series, "friction [N m]")],
        caption=f"{friction.joint} {label}",
        note=f"RMS {quantity(fit.rms, 'N m')}",
        xlabel="speed [rad/s]",
    )


def _median_temperature(
    friction: JointFriction, rows: Bool[Array, " n"], count: int
) -> Array | None:
    temperature = friction.pairs.temperature
    return None if temperature is None else np.full(count, float(np.median(temperature[rows])))


def _load_groups(load: Array) -> list[Bool[Array, " n"]]:
    """Rows of low, middle and high load; one group if the load hardly differs."""
    if np.ptp(load) < 0.1 * max(float(load.max()), 1e-9):
        return [np.ones(len(load), bool)]
    low, high = np.quantile(load, [1 / 3, 2 / 3])
    groups = [load <= low, (load > low) & (load <= high), load > high]
    return [rows for rows in groups if np.any(rows)]


def _model_table(result: FrictionIdentification) -> str:
    """RMS residual of every joint for every compared model."""
    joints = [friction.joint for friction in result.joints]
    rows = [
        [
            name,
            *(Number(rms, significant(rms)) for rms in result.rms_by_model[name]),
            Number(result.scores[name], fixed(result.scores[name], 0)),
        ]
        for name in sorted(result.scores, key=lambda name: result.scores[name])
    ]
    header = ["model", *(f"joint {joint}" for joint in joints), "score"]
    text = (
        "RMS of the residuals [N m] per joint, the model with the smallest score first: -2 ln of "
        "the evidence, with a penalty by the number of parameters."
    )
    return paragraph(text) + table(header, rows, text=(0,))


def _error_charts(result: FrictionIdentification) -> str:
    """RMS residual at every tested speed, one curve per model, for each joint."""
    out = []
    for k, friction in enumerate(result.joints):
        pairs = friction.pairs
        speeds = friction.fit.tested_speeds
        nearest = np.abs(np.log(pairs.velocity[:, None] / speeds)).argmin(axis=1)
        count = np.maximum(np.bincount(nearest, minlength=len(speeds)), 1)
        series = []
        for c, (name, fits) in enumerate(result.fits.items()):
            residual = pairs.torque - fits[k].torque(pairs.velocity, pairs.load, pairs.temperature)
            rms = np.sqrt(np.bincount(nearest, residual**2, minlength=len(speeds)) / count)
            series.append(Series(name, rms, speeds, colour=COLOURS[c % len(COLOURS)]))
        out.append(
            chart(
                speeds,
                series,
                caption=f"Joint {friction.joint}",
                xlabel="speed [rad/s]",
                ylabel="RMS residual [N m]",
            )
        )
    return chart_group(out, "Residual over speed") + small_text(
        "RMS residual of every model at the tested speeds."
    )


def _coefficients(result: FrictionIdentification) -> str:
    rows = []
    for friction in result.joints:
        fit = friction.fit
        units = {term.name: term.unit for term in fit.model.parameters}
        units |= {shape.name: shape.unit for shape in fit.model.shapes}
        values, deviations = (
            np.r_[fit.coefficients, fit.shape],
            np.r_[fit.coefficient_std, fit.shape_std],
        )
        for name, value, std in zip(units, values, deviations, strict=True):
            if name not in fit.dropped:
                half = NORMAL_95 * float(std)
                rows.append(
                    [
                        friction.joint,
                        name,
                        Number(float(value), interval(float(value), half)),
                        units[name],
                    ]
                )
    return table(["joint", "term", "value ± 95 %", "unit"], rows, text=(1, 3), name="Coefficients")
