"""Spectrum of the residuals of the run shown in full."""

from __future__ import annotations

import numpy as np

from taufit.report.charts import Series, chart
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph
from taufit.report.palette import MEASURED, RESIDUAL
from taufit.validation import residual_spectrum

# Fewer samples than one window of Welch's method make no spectrum.
_LEAST_SAMPLES = 64


def residuals(view: ModelView) -> Section | None:
    """One chart per joint."""
    if not view.runs:
        return None
    run = view.runs[0]
    if run.score.samples < _LEAST_SAMPLES:
        return Section("Residuals", paragraph("Too little motion for a spectrum."))
    spectrum = residual_spectrum(view.model, run.samples, predicted=view.predictions[0].total)
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
