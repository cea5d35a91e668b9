"""Verdict section: nrmse, grade, scores and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taufit.report.model_view import ModelView, ReportRun
from taufit.report.page import Section, bullets, cards, table, verdict_box
from taufit.validation import verdict as judge
from taufit.validation.score_breakdown import stiction_lines


def verdict_section(view: ModelView) -> Section:
    """Verdict box, figures, scores and warnings."""
    runs = view.runs
    scored_runs = [run for run in runs if not run.training] or list(runs)
    base = view.model.training.base
    figures = [("base parameters", "–" if base is None else str(len(base.names)))]
    if scored_runs:
        assert view.grades is not None
        decision = judge([run.score for run in scored_runs], grades=view.grades)
        unexplained = view.grades.unexplained
        has_holdout = any(not run.training for run in runs)
        data_label = (
            f"{len(scored_runs)} hold-out recording(s)" if has_holdout else "its training data only"
        )
        is_good = has_holdout and view.grades.overall in ("excellent", "good")
        kind = "bad" if not decision.passed else "good" if is_good else "warn"
        sentences = [f"Mean over the measured joints, on {data_label}"]
        sentences += [*view.grades.reasons, view.grades.headroom_text]
        head = verdict_box(
            kind,
            f"{decision.label} ({view.grades.overall}): {100 * unexplained:.1f} % of the torque is "
            "left unexplained",
            " ".join(_as_sentence(text) for text in sentences if text),
        )
        worst = float(min(np.min(run.score.correlation) for run in scored_runs))
        figures = [("mean nrmse", f"{unexplained:.3f}"), *figures]
        figures.append(("correlation, worst joint", f"{worst:.3f}"))
        coverages = [
            run.score.mean_inside for run in scored_runs if run.score.mean_inside is not None
        ]
        if coverages:
            figures.append(("inside the 95 % interval", f"{100 * float(np.mean(coverages)):.0f} %"))
        figures.append(("seconds of motion", f"{sum(r.score.seconds for r in runs):.0f}"))
    else:
        head = verdict_box(
            "warn", "Not tested here", "Give recordings to see how well it predicts."
        )
    warnings = f"<h3>Warnings</h3>{bullets(view.warnings)}" if view.warnings else ""
    scores = _score_table(runs) if runs else ""
    stiction_texts = [
        f"{run.name}: {line}" for run in runs for line in stiction_lines(view.model, run.score)
    ]
    stiction = f"<h3>Standing joints</h3>{bullets(stiction_texts)}" if stiction_texts else ""
    return Section("Verdict", head + cards(figures) + scores + stiction + warnings)


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _score_table(runs: Sequence[ReportRun]) -> str:
    joints = len(runs[0].score.rmse)
    header = ["recording", *(f"J{i + 1}" for i in range(joints)), "mean"]
    rows: list[list[Any]] = []
    for run in runs:
        rows.append([run.name, *(float(x) for x in run.score.measured_nrmse), run.score.mean_nrmse])
        if run.score.moving_nrmse is not None:
            moving_nrmse = run.score.moving_nrmse
            rows.append(
                [
                    "  while the joint moves",
                    *(float(x) for x in moving_nrmse),
                    float(np.nanmean(moving_nrmse)),
                ]
            )
        rows.append(["  RMSE [N m]", *(float(x) for x in run.score.rmse), None])
        if run.score.inside is not None:
            coverages = [100.0 * float(x) for x in run.score.inside]
            rows.append(["  % inside the 95 % interval", *coverages, float(np.mean(coverages))])
    return f"<h3>nrmse per joint</h3>{table(header, rows)}"
