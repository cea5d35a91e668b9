"""Page about friction tracked over recordings, per joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.health.tracker import FrictionTrack, TrackingScore
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level
from taufit.report.charts import Series, chart, reduce_samples
from taufit.report.page import Section, paragraph, render_page, table
from taufit.report.palette import INK, MODEL, RESIDUAL
from taufit.signals.samples import Samples

_POINTS = 1200


@dataclass(frozen=True, slots=True, eq=False)
class TrackedRun:
    """One recording with tracked friction.

    Attributes:
        name: Name of the recording.
        samples: Conditioned samples.
        course: Tracked friction.
        score: Score with tracked friction.
    """

    name: str
    samples: Samples
    course: FrictionTrack
    score: TrackingScore


def tracking_page(model: FittedModel, runs: Sequence[TrackedRun]) -> str:
    """Self-contained HTML page."""
    sections = [Section("Improvement by friction tracking", _table(runs))]
    sections += [Section(run.name, _charts(model, run)) for run in runs]
    return render_page(
        f"Tracked friction of {model.robot.name}", "beside the fitted model", sections
    )


def _table(runs: Sequence[TrackedRun]) -> str:
    explanation = paragraph(
        "Mean nrmse over the second half of the motion: as fitted, and with Coulomb friction, "
        "viscous friction and offset tracked from measurements half a second before."
    )
    rows = [
        [
            run.name,
            f"{run.score.second_half_before:.4f}",
            f"{run.score.second_half:.4f}",
            f"{100 * (run.score.second_half / run.score.second_half_before - 1):+.0f} %",
        ]
        for run in runs
    ]
    return explanation + table(["recording", "as fitted", "tracked", "change"], rows, text=(0,))


def _charts(model: FittedModel, run: TrackedRun) -> str:
    level = np.maximum(coulomb_level(model), 1e-9)
    speed = np.abs(run.samples.velocity[run.samples.in_motion]).max(axis=0)
    charts = []
    for j in range(model.robot.joints):
        tracked = run.course.parts[:, j]
        columns = [tracked[:, 0], tracked[:, 1] * speed[j], tracked[:, 2]]
        time, parts = reduce_samples(
            run.samples.time, [100.0 * x / level[j] for x in columns], _POINTS
        )
        names = ("total friction", "additional viscous friction at the largest speed", "offset")
        charts.append(
            chart(
                time,
                [
                    Series(name, values, colour=colour)
                    for name, values, colour in zip(
                        names, parts, (MODEL, RESIDUAL, INK), strict=True
                    )
                ],
                caption=f"Joint {j + 1}: change against the model, in percent of its Coulomb "
                f"friction of {level[j]:.3g} N m",
                xlabel="time [s]",
                ylabel="change [%]",
                group=run.name,
            )
        )
    return f'<div class="grid">{"".join(charts)}</div>'
