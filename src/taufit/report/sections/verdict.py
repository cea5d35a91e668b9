"""The verdict: how much torque is left unexplained, on what, and what to know about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taufit.report.model_view import ModelView, ReportRun
from taufit.report.page import Section, bullets, cards, table, verdict
from taufit.validation import verdict as judge
from taufit.validation.score_breakdown import stiction_lines


def verdict_section(view: ModelView) -> Section:
    """Head, figures, scores and warnings."""
    runs = view.runs
    tested = [run for run in runs if not run.training] or list(runs)
    base = view.model.training.base
    figures = [("base parameters", "–" if base is None else str(len(base.names)))]
    if tested:
        mean = float(np.mean([run.score.mean_nrmse for run in tested]))
        judged = judge([run.score for run in tested], grades=view.grades)
        word = judged.label if view.grades is None else f"{judged.label} ({view.grades.overall})"
        unseen = any(not run.training for run in runs)
        where = (
            f"{len(tested)} recording(s) it has not seen" if unseen else "its training data only"
        )
        fine = unseen and (view.grades is None or view.grades.overall == "good")
        kind = "bad" if not judged.passed else "good" if fine else "warn"
        head = verdict(
            kind,
            f"{word}: {100 * mean:.1f} % of the torque is left unexplained",
            f"Mean over joints, on {where}. {_sentence(judged.reasons)}",
        )
        worst = float(min(np.min(run.score.correlation) for run in tested))
        figures = [("mean nrmse", f"{mean:.3f}"), *figures]
        figures.append(("correlation, worst joint", f"{worst:.3f}"))
        held = [run.score.mean_inside for run in tested if run.score.mean_inside is not None]
        if held:
            figures.append(("inside the 95 % interval", f"{100 * float(np.mean(held)):.0f} %"))
        figures.append(("seconds of motion", f"{sum(r.score.seconds for r in runs):.0f}"))
    else:
        head = verdict("warn", "Not tested here", "Give recordings to see how well it predicts.")
    warnings = f"<h3>Warnings</h3>{bullets(view.warnings)}" if view.warnings else ""
    scores = _score_table(runs) if runs else ""
    still = [
        f"{run.name}: {line}" for run in runs for line in stiction_lines(view.model, run.score)
    ]
    stiction = f"<h3>Standing joints</h3>{bullets(still)}" if still else ""
    return Section("Verdict", head + cards(figures) + scores + stiction + warnings)


def _sentence(reasons: Sequence[str]) -> str:
    text = "; ".join(reasons)
    return f"{text[:1].upper()}{text[1:]}."


def _score_table(runs: Sequence[ReportRun]) -> str:
    joints = len(runs[0].score.rmse)
    header = ["recording", *(f"J{i + 1}" for i in range(joints)), "mean"]
    rows: list[list[Any]] = []
    for run in runs:
        rows.append([run.name, *(float(x) for x in run.score.nrmse), run.score.mean_nrmse])
        if run.score.moving_nrmse is not None:
            own = run.score.moving_nrmse
            rows.append(
                ["  while the joint moves", *(float(x) for x in own), float(np.nanmean(own))]
            )
        rows.append(["  RMSE [N m]", *(float(x) for x in run.score.rmse), None])
        if run.score.inside is not None:
            held = [100.0 * float(x) for x in run.score.inside]
            rows.append(["  % inside the 95 % interval", *held, float(np.mean(held))])
    return f"<h3>nrmse per joint</h3>{table(header, rows)}"
