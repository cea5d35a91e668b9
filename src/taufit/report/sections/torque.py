"""Torque of the run shown in full: measured, predicted, residuals, signs that were found."""

from __future__ import annotations

import numpy as np

from taufit.model.intervals import predict_interval
from taufit.report.charts import Series, chart, thin
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph
from taufit.report.palette import MEASURED, MODEL, RESIDUAL
from taufit.report.signs_picture import signs_picture
from taufit.validation import residual_spectrum

# More points than a screen has columns.
_POINTS = 1600
# Samples the interval is computed at; it is smooth in between.
_BAND = 500


def torque(view: ModelView) -> Section | None:
    """One chart per joint, zoomed together."""
    if not view.runs:
        return None
    shown, predicted = view.runs[0], view.predictions[0].total
    samples = shown.samples
    first = samples.run == samples.run[0]
    moving = np.flatnonzero(samples.in_motion & first)
    part = slice(moving[0], moving[-1] + 1) if len(moving) else slice(None)
    parts = [
        paragraph(
            f"Measured and predicted torque of {shown.name}, through the same low-pass, with the "
            "model's 95 % interval (parameters, residuals by friction state, friction from run to "
            "run). Drag over an interval to zoom all joints, double-click to go back."
        )
    ]
    rows = np.arange(len(samples.torque))[part]
    few = rows[:: max(1, -(-len(rows) // _BAND))]
    half_width = predict_interval(view.model, samples, few).half_width
    band = np.stack([np.interp(rows, few, own) for own in half_width.T], -1)
    for joint in range(view.joints):
        time, (measured, expected, half) = thin(
            samples.time[part],
            [samples.torque[part, joint], predicted[part, joint], band[:, joint]],
            _POINTS,
        )
        parts.append(
            chart(
                time,
                [
                    Series(
                        "95 % interval",
                        None,
                        low=expected - half,
                        high=expected + half,
                        colour=MODEL,
                    ),
                    Series("measured", measured, colour=MEASURED),
                    Series("predicted", expected, colour=MODEL),
                    Series("residual", measured - expected, colour=RESIDUAL),
                ],
                caption=f"{view.joint_label(joint)}: RMSE {shown.score.rmse[joint]:.3g} N m, "
                f"correlation {shown.score.correlation[joint]:.3f}",
                xlabel="s",
                ylabel="N m",
                group="torque",
            )
        )
    return Section("Torque", "".join(parts))


def torque_signs(view: ModelView) -> Section | None:
    """The segments and their signs."""
    return None if view.signs is None else Section("Torque signs", signs_picture(view.signs))


def residuals(view: ModelView) -> Section | None:
    """One chart per joint."""
    if not view.runs:
        return None
    run = view.runs[0]
    spectrum = residual_spectrum(view.model, run.samples, predicted=view.predictions[0].total)
    if spectrum is None:
        return Section("Residuals", paragraph("Too little motion for a spectrum."))
    words = paragraph(
        "Amplitude density of the torque and of the residuals. A hump where the robot moves slowly "
        "is friction, one above the motion's own frequencies vibration or noise."
    )
    charts = [
        chart(
            spectrum.frequency,
            [
                Series("measured", np.sqrt(spectrum.measured[:, joint]), colour=MEASURED),
                Series("residual", np.sqrt(spectrum.residual[:, joint]), colour=RESIDUAL),
            ],
            caption=f"Joint {joint + 1}",
            xlabel="Hz",
            ylabel="N m/√Hz",
            group="spectrum",
        )
        for joint in range(view.joints)
    ]
    return Section("Residuals", words + f'<div class="grid">{"".join(charts)}</div>')
