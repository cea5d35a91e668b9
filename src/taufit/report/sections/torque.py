"""Torque charts: measured and predicted torque, residual spectra, recovered signs."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.number_text import percent, quantity, significant
from taufit.model.intervals import predict_interval
from taufit.report.charts import Panel, Series, chart_group, extreme_samples, figure
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph, small_text
from taufit.report.palette import MEASURED, MODEL, RESIDUAL
from taufit.report.signs_chart import signs_chart
from taufit.validation import residual_spectrum

# Samples of all curves together, and of one: a page stays below 1 MB with 14 joints.
_ALL_POINTS, _POINTS = 30_000, 5_000
# Number of samples at which the interval is computed; it is smooth in between.
_INTERVAL_SAMPLES = 500
# Half range of the residual strips in RMSE; larger residuals get a mark at the edge.
_STRIP_RMSE = 5.0
# Longer recordings open at their worst minute [s]: the whole would be a block of ink.
_LONG, _WINDOW = 300.0, 60.0


def torque_charts(view: ModelView) -> str:
    """Measured and predicted torque over residuals, one chart per joint with one time axis."""
    run, predicted = view.runs[0], view.predictions[0].total
    samples = run.samples
    first_run = samples.run == samples.run[0]
    motion_rows = np.flatnonzero(samples.in_motion & first_run)
    rows = (
        np.arange(motion_rows[0], motion_rows[-1] + 1)
        if len(motion_rows)
        else np.flatnonzero(first_run)
    )
    points = min(_POINTS, _ALL_POINTS // view.joints)
    torques = np.concatenate([samples.torque[rows], predicted[rows]], axis=1)
    window = _worst_window(samples.time[rows], samples.torque[rows] - predicted[rows])
    if window is None:
        interval_rows, curve_rows = (
            _thin(rows, _INTERVAL_SAMPLES),
            rows[extreme_samples(torques, points)],
        )
    else:
        window_rows = rows[(samples.time[rows] >= window[0]) & (samples.time[rows] <= window[1])]
        count = _INTERVAL_SAMPLES // 2
        interval_rows = np.union1d(_thin(rows, count), _thin(window_rows, count))
        curve_rows = np.union1d(
            rows[extreme_samples(torques, points // 2)], _thin(window_rows, points // 2)
        )
    half_width = predict_interval(view.model, samples, interval_rows).half_width
    time = samples.time[curve_rows]
    charts = []
    for joint in range(view.joints):
        unit, rmse = view.torque_unit(joint), float(run.score.rmse[joint])
        measured, model = samples.torque[curve_rows, joint], predicted[curve_rows, joint]
        half, half_time = half_width[:, joint], samples.time[interval_rows]
        name = "95 % interval"
        main = [
            Series(name, half=half, half_x=half_time, about=2, colour=MODEL, loose=True),
            Series("measured", measured, colour=MEASURED, wide=True, short="meas"),
            Series("predicted", model, colour=MODEL, short="pred"),
        ]
        strip = [
            Series("", half=half, half_x=half_time, colour=MODEL),
            Series("residual, own scale", difference=(1, 2), colour=RESIDUAL, short="res"),
        ]
        span = _STRIP_RMSE * rmse if rmse > 0.0 else 1.0
        share = float(run.score.measured_nrmse[joint])
        # Narrow columns have room for one figure.
        text = f"RMSE {quantity(rmse, unit)}" if view.joints <= 6 else ""
        figures = [percent(share), text] if np.isfinite(share) else [text]
        charts.append(
            figure(
                time if joint == 0 else None,
                [
                    Panel(main, f"{'force' if unit == 'N' else 'torque'} [{unit}]"),
                    Panel(strip, f"res. [{unit}]", (-span, span)),
                ],
                caption=view.short_label(joint),
                note=" · ".join(filter(None, figures)),
                xlabel="time [s]",
                show_xlabel=False,
                group="torque",
                view_range=window,
            )
        )
    part = "" if window is None else "the minute with the largest residuals (Reset shows all), "
    return chart_group(charts, f"Torque of {view.model.robot.name}", "joints") + small_text(
        f"Torque over time [s] in {run.name}, {part}one zoom and cursor for all joints; residuals "
        "in the strips, triangles where they leave it."
    )


def _thin(rows: Int[Array, " n"], count: int) -> Int[Array, " m"]:
    """At most `count` of the rows, evenly spaced."""
    return rows[:: max(1, -(-len(rows) // count))]


def _worst_window(
    time: Float[Array, " n"], residual: Float[Array, "n j"]
) -> tuple[float, float] | None:
    """Minute with the largest residuals, each joint by its RMS; None if the recording is short."""
    if time[-1] - time[0] < _LONG:
        return None
    scale = np.maximum(np.sqrt(np.mean(residual**2, axis=0)), 1e-12)
    size = np.mean((residual / scale) ** 2, axis=1)
    part = np.floor((time - time[0]) / _WINDOW).astype(int)
    count = np.maximum(np.bincount(part), 1)
    # The last part is shorter than a minute.
    worst = int(np.argmax((np.bincount(part, size) / count)[:-1]))
    start = float(time[0]) + worst * _WINDOW
    return start, start + _WINDOW


def torque_signs(view: ModelView) -> Section | None:
    """Segments with their recovered signs."""
    if view.signs is None:
        return None
    count = len(view.signs.segments)
    ambiguous = int(view.signs.ambiguous.sum())
    gist = f"{count} segments, {ambiguous} ambiguous"
    return Section("Torque signs", signs_chart(view.signs), gist)


def residuals(view: ModelView) -> Section | None:
    """Spectra of torque and residuals, one chart per joint."""
    if not view.runs:
        return None
    run = view.runs[0]
    spectrum = residual_spectrum(view.model, run.samples, predicted=view.predictions[0].total)
    if spectrum is None:
        return Section("Spectra", paragraph("Too little motion for a spectrum."), "none")
    explanation = paragraph(
        "Amplitude density of the torque and of the residuals. A hump where the robot moves slowly "
        "is friction, one above the motion's own frequencies vibration or noise."
    )
    measured, residual = np.sqrt(spectrum.measured), np.sqrt(spectrum.residual)
    charts = [
        figure(
            spectrum.frequency if joint == 0 else None,
            [
                Panel(
                    [
                        Series("measured", measured[:, joint], colour=MEASURED, wide=True),
                        Series("residual", residual[:, joint], colour=RESIDUAL),
                    ],
                    f"density [{view.torque_unit(joint)}/√Hz]",
                    log=True,
                )
            ],
            caption=view.short_label(joint),
            xlabel="frequency [Hz]",
            group="spectrum",
        )
        for joint in range(view.joints)
    ]
    peak = spectrum.frequency[int(np.argmax(spectrum.residual.sum(axis=1)))]
    gist = f"largest residual at {significant(float(peak), 2)} Hz"
    return Section("Spectra", explanation + chart_group(charts, "Spectra"), gist)
