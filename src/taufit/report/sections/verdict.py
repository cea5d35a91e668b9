"""First screen of a page about a model: statements, all joints, three numbers, next commands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.number_text import decimals_for, fixed, percent, significant
from taufit.report.model_view import ModelView, ReportRun
from taufit.report.page import (
    Number,
    Section,
    bullets,
    commands,
    numbers,
    ruler,
    statement,
    statements,
    table,
    with_sidebar,
)
from taufit.report.sections.torque import torque_charts
from taufit.validation import verdict as judge
from taufit.validation.grades import Grades, Thresholds
from taufit.validation.score_breakdown import stiction_lines

# Ends of the headroom's words; requirements on words, not fitted.
_LITTLE, _SOME, _MUCH = 1.4, 2.5, 4.0


def verdict_section(view: ModelView) -> Section:
    """Statements, charts of all joints, figures and commands."""
    judged = judged_runs(view)
    if not judged or view.grades is None:
        head = statements(
            statement(
                "warn",
                "Accuracy",
                "Not tested here",
                ": give recordings to see how well it predicts",
            ),
            _parameter_statement(view),
        )
        return Section("Verdict", f"{head}<aside>{_aside(view, ())}</aside>")
    head = statements(_accuracy(view, view.grades, judged), _headroom(view.grades))
    charts = torque_charts(view)
    sidebar = _aside(view, judged)
    return Section("Verdict", head + with_sidebar(charts, sidebar))


def judged_runs(view: ModelView) -> list[ReportRun]:
    """Runs kept out of the fit, else all runs."""
    return [run for run in view.runs if not run.training] or list(view.runs)


def _accuracy(view: ModelView, grades: Grades, judged: Sequence[ReportRun]) -> str:
    decision = judge([run.score for run in judged], view.limits, grades)
    is_good = grades.on_holdout and grades.overall in ("excellent", "good")
    kind = "bad" if not decision.passed else "good" if is_good else "warn"
    limits = Thresholds()
    edges = (0.0, limits.excellent, limits.good, limits.usable, 0.5)
    seconds = fixed(sum(run.score.seconds for run in judged), 0)
    names = ", ".join(run.name for run in judged[:3]) + (" …" if len(judged) > 3 else "")
    data = (
        f"{seconds} s of motion that the fit has not seen ({names})"
        if grades.on_holdout
        else f"{seconds} s of its own training data, which proves little: fit with --holdout 30%"
    )
    detail = [f"Mean over the measured joints, on {data}."]
    reasons = dict.fromkeys((*decision.reasons, *grades.reasons))
    detail += [_as_sentence(text) for text in reasons if text]
    label = f"Accuracy: {decision.label} ({grades.overall})"
    if not np.isfinite(grades.unexplained):
        return statement(kind, label, "Not measured", ": no joint's torque", detail=detail)
    # A good model may miss the user's limits: the sentence must not praise it in red.
    is_refused = not decision.passed and grades.overall != "poor"
    return statement(
        kind,
        label,
        "Limit missed" if is_refused else grades.overall.capitalize(),
        f": {percent(grades.unexplained)} of the torque is left unexplained",
        ruler=ruler(grades.unexplained, edges, [f"{100 * edge:g} %" for edge in edges[:-1]]),
        detail=detail,
    )


def _headroom(grades: Grades) -> str:
    if grades.headroom is None:
        return statement(
            "model",
            "Headroom",
            "Unknown",
            ": this recording does not show how much of the torque is noise",
            detail=["Repeat a motion, or hold the arm still for a second, to measure it."],
        )
    kind, words = next(
        (kind, words)
        for limit, kind, words in (
            (_LITTLE, "good", "hardly anything left to gain"),
            (_SOME, "warn", "some room for a better model"),
            (np.inf, "warn", "much room for a better model"),
        )
        if grades.headroom < limit
    )
    joints_with_floor = [g for g in grades.joints if np.isfinite(g.floor)]
    condition = (
        ""
        if len(joints_with_floor) == len(grades.joints)
        else f" on {len(joints_with_floor)} joints where it is known"
    )
    nrmse = float(np.mean([g.nrmse for g in joints_with_floor]))
    return statement(
        kind,
        "Headroom",
        f"{grades.headroom:.1f} ×",
        f" the floor: {words}",
        ruler=ruler(grades.headroom, (1.0, _LITTLE, _SOME, _MUCH), ("1 ×", "1.4 ×", "2.5 ×")),
        detail=[
            f"The floor, {significant(100 * grades.floor)} %, is noise or differs when the motion "
            f"repeats, which no model explains; this one leaves {significant(100 * nrmse)} %"
            f"{condition}."
        ],
    )


def _parameter_statement(view: ModelView) -> str:
    base = view.model.training.base
    count = 0 if base is None else len(base.names)
    return statement("model", "Parameters", f"{count}", " base parameters")


def _aside(view: ModelView, judged: Sequence[ReportRun]) -> str:
    body = numbers(_figures(view, judged))
    if view.commands:
        body += commands("What to do next", view.commands)
    return body


def _figures(view: ModelView, judged: Sequence[ReportRun]) -> list[tuple[str, str, str]]:
    """Three figures: error, coverage, gain over the robot's description."""
    base = view.model.training.base
    out: list[tuple[str, str, str]] = []
    if judged:
        rmse = np.sqrt(np.mean([run.score.rmse**2 for run in judged], axis=0))
        out.append(_error_range(view, rmse, np.mean([run.score.nrmse for run in judged], axis=0)))
        inside = [run.score.mean_inside for run in judged if run.score.mean_inside is not None]
        if inside:
            out.append(
                (
                    percent(float(np.mean(inside)), 0),
                    "",
                    "of measured torques inside the 95 % interval",
                )
            )
        worst = float(min(np.min(run.score.correlation) for run in judged))
        if view.nominal is not None:
            gain = percent(view.nominal.reduction, 0)
            out.append((gain, "", "less error than the robot's description"))
        elif np.isfinite(worst):
            out.append((fixed(worst, 3), "", "correlation of the worst joint"))
    if len(out) < 3 and base is not None:
        out.append((str(len(base.names)), "", "base parameters"))
    return out[:3]


def _error_range(
    view: ModelView, rmse: Float[Array, " j"], nrmse: Float[Array, " j"]
) -> tuple[str, str, str]:
    """Error from best to worst joint; with both turning and sliding joints, in percent."""
    units = {view.torque_unit(j) for j in range(view.joints)}
    if len(units) > 1:
        low, high = fixed(100 * float(np.nanmin(nrmse)), 1), percent(float(np.nanmax(nrmse)))
        return f"{low} to {high}", "", "unexplained, best to worst joint"
    low, high = (significant(float(x), 2) for x in (rmse.min(), rmse.max()))
    return f"{low} to {high}", units.pop(), "RMSE, best to worst joint"


def per_joint(view: ModelView) -> Section | None:
    """Scores of every recording, joint by joint."""
    if not view.runs:
        return None
    judged = judged_runs(view)
    values = np.concatenate([run.score.measured_nrmse for run in judged])
    finite = values[np.isfinite(values)]
    gist = (
        f"{percent(float(finite.min()))} to {percent(float(finite.max()))} unexplained"
        if len(finite)
        else "no joint is measured"
    )
    stiction = [
        f"{run.name}: {line}" for run in view.runs for line in stiction_lines(view.model, run.score)
    ]
    body = _score_table(view)
    if stiction:
        body += f"<h3>Standing joints</h3>{bullets(stiction)}"
    return Section("Per joint", body, gist)


def warnings(view: ModelView) -> Section | None:
    """Warnings of the fit; None without any."""
    if not view.warnings:
        return None
    first = view.warnings[0]
    gist = first if len(first) < 70 else first[:67].rsplit(" ", 1)[0] + " …"
    return Section(f"Warnings ({len(view.warnings)})", bullets(view.warnings), gist)


def _as_sentence(text: str) -> str:
    is_file = "." in text.partition(" ")[0]
    return f"{text}." if is_file else f"{text[:1].upper()}{text[1:]}."


def _score_table(view: ModelView) -> str:
    header = ["recording", "quantity", *(f"J{i + 1}" for i in range(view.joints)), "mean"]
    rows: list[list[object]] = []
    for run in view.runs:
        score = run.score
        parts: list[tuple[str, np.ndarray, float | None, int]] = [
            ("unexplained [%]", 100 * score.measured_nrmse, 100 * score.mean_nrmse, 1)
        ]
        if score.moving_nrmse is not None:
            moving = 100 * np.asarray(score.moving_nrmse)
            finite_values = moving[np.isfinite(moving)]
            mean = float(finite_values.mean()) if len(finite_values) else None
            parts.append(("while the joint moves [%]", moving, mean, 1))
        units = " or ".join(dict.fromkeys(view.torque_unit(j) for j in range(view.joints)))
        rmse = np.asarray(score.rmse)
        parts.append((f"RMSE [{units}]", rmse, None, max(2, decimals_for(float(rmse.min()), 2))))
        if score.inside is not None:
            inside = 100 * np.asarray(score.inside)
            parts.append(("inside the 95 % interval [%]", inside, float(np.mean(inside)), 0))
        rows += [
            [run.name, name, *(Number(float(x), fixed(float(x), d)) for x in values),
             None if mean is None else Number(mean, fixed(mean, d))]
            for name, values, mean, d in parts
        ]  # fmt: skip
    return table(header, rows, text=(0, 1), name="Scores per joint")
