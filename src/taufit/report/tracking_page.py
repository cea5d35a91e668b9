"""Page about friction tracked over recordings, per joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.number_text import count_text, percent, quantity
from taufit.health.tracker import FrictionTrack, TrackingScore
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level
from taufit.report.charts import Series, chart, chart_group, reduce_samples
from taufit.report.page import (
    Number,
    Section,
    paragraph,
    render_page,
    small_text,
    statement,
    statements,
    table,
)
from taufit.report.palette import INK, MODEL, RESIDUAL
from taufit.signals.samples import Samples

_POINTS = 1200
_EXPLANATION = (
    "Change against the model in percent of its Coulomb friction, which stands beside each joint."
)


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

    @property
    def gist(self) -> str:
        """Unexplained torque before and after."""
        before, after = self.score.second_half_before, self.score.second_half
        return f"{percent(before)} as fitted, {percent(after)} tracked"


def tracking_page(model: FittedModel, runs: Sequence[TrackedRun]) -> str:
    """Self-contained HTML page: improvement and largest change, the first recording, the others."""
    sections = [
        Section("Verdict", _statements(model, runs) + _charts(model, runs[0])),
        Section("Every recording", _table(runs)),
    ]
    sections += [Section(run.name, _charts(model, run), run.gist) for run in runs[1:]]
    subtitle = f"beside the fitted model · {count_text(len(runs), 'recording')}"
    return render_page(f"Tracked friction of {model.robot.name}", subtitle, sections)


def _statements(model: FittedModel, runs: Sequence[TrackedRun]) -> str:
    before, after = (
        float(np.mean([getattr(run.score, name) for run in runs]))
        for name in ("second_half_before", "second_half")
    )
    level = np.maximum(coulomb_level(model), 1e-9)
    change = np.stack([run.score.parts[:, 0] / level for run in runs])
    row, joint = divmod(int(np.argmax(np.abs(change))), change.shape[1])
    sign = "+" if change[row, joint] > 0.0 else ""
    return statements(
        statement(
            "good" if after < before else "warn",
            "Unexplained torque, second half of the motion",
            percent(after),
            f" with tracked friction, {percent(before)} as fitted",
            detail=[
                "Coulomb friction, viscous friction and offset are tracked from measurements at "
                "least half a second old."
            ],
        ),
        statement(
            "model",
            "Largest change of friction",
            f"{sign}{percent(float(change[row, joint]))}",
            f" in joint {joint + 1}, at the end of {runs[row].name}",
            detail=[f"Of its Coulomb friction of {quantity(float(level[joint]), 'N m')}."],
        ),
    )


def _table(runs: Sequence[TrackedRun]) -> str:
    rows = []
    for run in runs:
        before, after = run.score.second_half_before, run.score.second_half
        values = (before, after, after / before - 1.0)
        rows.append([run.name, *(Number(100 * x, percent(x)) for x in values)])
    header = ["recording", "as fitted", "tracked", "change"]
    return paragraph("Unexplained torque over the second half of the motion.") + table(
        header, rows, text=(0,), name="Every recording"
    )


def _charts(model: FittedModel, run: TrackedRun) -> str:
    level = np.maximum(coulomb_level(model), 1e-9)
    speed = np.abs(run.samples.velocity[run.samples.in_motion]).max(axis=0)
    names = ("Coulomb friction", "viscous friction at the largest speed", "offset")
    charts = []
    for j in range(model.robot.joints):
        tracked = run.course.parts[:, j]
        columns = [tracked[:, 0], tracked[:, 1] * speed[j], tracked[:, 2]]
        time, parts = reduce_samples(
            run.samples.time, [100.0 * x / level[j] for x in columns], _POINTS
        )
        charts.append(
            chart(
                time,
                [
                    Series(name, values, colour=colour)
                    for name, values, colour in zip(
                        names, parts, (MODEL, RESIDUAL, INK), strict=True
                    )
                ],
                caption=f"Joint {j + 1}: {quantity(float(level[j]), 'N m')}",
                xlabel="time [s]",
                ylabel="change [%]",
                group=run.name,
            )
        )
    return chart_group(charts, f"Tracked friction of {run.name}") + small_text(_EXPLANATION)
