"""Page about friction tests: friction over speed by load, and comparison of models."""

from __future__ import annotations

import numpy as np

from taufit.calibration.friction_identification import FrictionIdentification, JointFriction
from taufit.core.arrays import Array, Bool
from taufit.report.charts import COLOURS, Series, chart
from taufit.report.page import Section, bullets, paragraph, render_page, table
from taufit.robot import Robot


def friction_page(robot: Robot, result: FrictionIdentification) -> str:
    """Self-contained HTML page."""
    sections = [
        Section(
            "Friction against speed and load",
            "".join(_curves(friction) for friction in result.joints),
        ),
        Section("Models compared", _model_table(result) + _error_charts(result)),
        Section("Coefficients", _coefficients(result)),
    ]
    if result.warnings:
        sections.append(Section("Warnings", bullets(list(result.warnings))))
    return render_page(f"Friction of {robot.name}", f"model: {result.name}", sections)


def _curves(friction: JointFriction) -> str:
    """Measured pairs and fitted curves, by thirds of the load."""
    pairs, fit = friction.pairs, friction.fit
    load = np.abs(pairs.load)
    groups = _load_groups(load)
    grid = np.linspace(0.0, 1.02 * fit.fastest, 300)[1:]
    series = []
    for k, rows in enumerate(groups):
        level = float(np.median(load[rows]))
        name = f"|load| {level:.3g} N m"
        curve = fit.torque(
            grid, np.full_like(grid, level), _median_temperature(friction, rows, len(grid))
        )
        series += [
            Series(
                f"{name}, measured",
                pairs.torque[rows],
                pairs.velocity[rows],
                colour=COLOURS[k],
                points=True,
            ),
            Series(f"{name}, fitted", curve, grid, colour=COLOURS[k]),
        ]
    return chart(
        grid,
        series,
        caption=f"Joint {friction.joint}: RMS residual {fit.rms:.3g} N m",
        xlabel="speed [rad/s]",
        ylabel="friction [N m]",
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
        [name, *(f"{rms:.3g}" for rms in result.rms_by_model[name]), f"{result.scores[name]:.0f}"]
        for name in sorted(result.scores, key=lambda name: result.scores[name])
    ]
    header = ["model", *(f"joint {joint}" for joint in joints), "BIC"]
    text = "RMS of the residuals [N m] per joint; the model with the smallest BIC was chosen."
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
                caption=f"Joint {friction.joint}: RMS residual of every model at the tested speeds",
                xlabel="speed [rad/s]",
                ylabel="RMS residual [N m]",
            )
        )
    return "".join(out)


def _coefficients(result: FrictionIdentification) -> str:
    rows = []
    for friction in result.joints:
        fit = friction.fit
        names = [term.name for term in fit.model.parameters] + [s.name for s in fit.model.shapes]
        values, deviations = (
            np.r_[fit.coefficients, fit.shape],
            np.r_[fit.coefficient_std, fit.shape_std],
        )
        for name, value, std in zip(names, values, deviations, strict=True):
            if name not in fit.dropped:
                rows.append([str(friction.joint), name, f"{value:.4g}", f"{std:.2g}"])
    return table(["joint", "term", "value", "standard deviation"], rows, text=(0, 1))
