"""The verdict: how much torque is left unexplained, on what, and what to know about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taufit.report.model_view import ModelView, Run
from taufit.report.page import Section, bullets, cards, table, verdict
from taufit.validation import verdict as judge


def verdict_section(view: ModelView) -> Section:
    """Head, figures, scores and warnings."""
    runs = view.runs
    tested = [run for run in runs if not run.training] or list(runs)
    base = view.model.training.base
    figures = [("base parameters", "–" if base is None else str(len(base.names)))]
    if tested:
        mean = float(np.mean([run.score.mean_nrmse for run in tested]))
        judged = judge([run.score for run in tested])
        unseen = any(not run.training for run in runs)
        where = (
            f"{len(tested)} recording(s) it has not seen" if unseen else "its training data only"
        )
        kind = "bad" if not judged.passed else "good" if unseen else "warn"
        head = verdict(
            kind,
            f"{judged.word}: {100 * mean:.1f} % of the torque is left unexplained",
            f"Mean over joints, on {where}. Judged by: {'; '.join(judged.reasons)}.",
        )
        worst = float(min(np.min(run.score.correlation) for run in tested))
        figures = [("mean nrmse", f"{mean:.3f}"), *figures]
        figures.append(("correlation, worst joint", f"{worst:.3f}"))
        figures.append(("seconds of motion", f"{sum(r.score.seconds for r in runs):.0f}"))
    else:
        head = verdict("warn", "Not tested here", "Give recordings to see how well it predicts.")
    warnings = f"<h3>Warnings</h3>{bullets(view.warnings)}" if view.warnings else ""
    scores = _score_table(runs) if runs else ""
    return Section("Verdict", head + cards(figures) + scores + warnings)


def _score_table(runs: Sequence[Run]) -> str:
    joints = len(runs[0].score.rmse)
    header = ["recording", *(f"J{i + 1}" for i in range(joints)), "mean"]
    rows: list[list[Any]] = []
    for run in runs:
        rows.append([run.name, *(float(x) for x in run.score.nrmse), run.score.mean_nrmse])
        rows.append(["  RMSE [N m]", *(float(x) for x in run.score.rmse), None])
    return f"<h3>nrmse per joint</h3>{table(header, rows)}"
