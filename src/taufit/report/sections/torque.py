"""Torque sections: measured and predicted torque, residual spectra, recovered signs."""

from __future__ import annotations

import numpy as np

from taufit.model.intervals import predict_interval
from taufit.report.charts import Series, chart, reduce_samples
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph
from taufit.report.palette import MEASURED, MODEL, RESIDUAL
from taufit.report.signs_chart import signs_chart
from taufit.validation import residual_spectrum

# Points per curve; more than the columns of a screen.
_POINTS = 1600
# Number of samples at which the interval is computed; it is smooth in between.
_INTERVAL_SAMPLES = 500


def torque(view: ModelView) -> Section | None:
    """Measured and predicted torque, one chart per joint, zoomed together."""
    if not view.runs:
        return None
    run, predicted = view.runs[0], view.predictions[0].total
    samples = run.samples
    first = samples.run == samples.run[0]
    moving = np.flatnonzero(samples.in_motion & first)
    moving_rows = slice(moving[0], moving[-1] + 1) if len(moving) else slice(None)
    parts = [
        paragraph(
            f"Measured and predicted torque of {run.name}, through the same low-pass, with the "
            "model's 95 % interval (parameters, residuals by friction regime, run-to-run "
            "variability "
            "of friction). Drag over an interval to zoom all joints, double-click to go back."
        )
    ]
    rows = np.arange(len(samples.torque))[moving_rows]
    interval_rows = rows[:: max(1, -(-len(rows) // _INTERVAL_SAMPLES))]
    half_width = predict_interval(view.model, samples, interval_rows).half_width
    band = np.stack(
        [np.interp(rows, interval_rows, joint_half_width) for joint_half_width in half_width.T], -1
    )
    for joint in range(view.joints):
        time, (measured, expected, half) = reduce_samples(
            samples.time[moving_rows],
            [samples.torque[moving_rows, joint], predicted[moving_rows, joint], band[:, joint]],
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
                caption=f"{view.joint_label(joint)}: RMSE {run.score.rmse[joint]:.3g} N m, "
                f"correlation {run.score.correlation[joint]:.3f}",
                xlabel="s",
                ylabel="N m",
                group="torque",
            )
        )
    return Section("Torque", "".join(parts))


def torque_signs(view: ModelView) -> Section | None:
    """Segments with their recovered signs."""
    return None if view.signs is None else Section("Torque signs", signs_chart(view.signs))


def residuals(view: ModelView) -> Section | None:
    """Spectra of torque and residuals, one chart per joint."""
    if not view.runs:
        return None
    run = view.runs[0]
    spectrum = residual_spectrum(view.model, run.samples, predicted=view.predictions[0].total)
    if spectrum is None:
        return Section("Residuals", paragraph("Too little motion for a spectrum."))
    explanation = paragraph(
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
    return Section("Residuals", explanation + f'<div class="grid">{"".join(charts)}</div>')
