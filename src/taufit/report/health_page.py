"""Page about the friction of a robot over its runs: verdict first, then every joint."""

from __future__ import annotations

import numpy as np

from taufit.core.number_text import count_text, fixed, interval, quantity
from taufit.core.statistics import NORMAL_95
from taufit.health import HealthReport, History, assess_health
from taufit.report.charts import Series, chart, chart_group
from taufit.report.page import (
    Number,
    Section,
    paragraph,
    render_page,
    statement,
    statements,
    table,
)
from taufit.report.palette import LIMIT, MEASURED, MODEL


def health_page(history: History) -> str:
    """Page with verdict, friction index and CUSUM per joint, temperatures, runs."""
    report = assess_health(history)
    later_runs = len(history.runs) - history.healthy
    largest_cusum = max(joint.cusum for joint in report.joints)
    alarms = sum(joint.alarm for joint in report.joints)
    head = statements(
        statement(
            "good" if report.healthy else "bad",
            "Verdict",
            "",
            report.headline[0].upper() + report.headline[1:],
            detail=[
                f"{later_runs} runs since the baseline of {history.healthy}. Temperature and load "
                "are compensated by the model."
            ],
        ),
        statement(
            "bad" if alarms else "good",
            "Alarms",
            count_text(alarms, "joint") if alarms else "No joint",
            " with an alarm",
            detail=[
                f"Largest CUSUM now {fixed(largest_cusum, 1)}, alarm above "
                f"{fixed(report.threshold, 1)}, where it restarts. False alarms are below "
                f"{report.rate:g} per healthy run."
            ],
        ),
    )
    sections = [
        Section("Verdict", head + _index(history, report) + _table(report)),
        Section("CUSUM", _sums(history, report), f"alarm above {fixed(report.threshold, 1)}"),
        Section("Temperature of the runs", _temperature(history), f"{len(history.runs)} runs"),
        Section("Runs", _runs(history, report), f"{len(history.runs)} runs"),
    ]
    days = dict.fromkeys(run.added[:10] for run in (history.runs[0], history.runs[-1]))
    return render_page(
        f"Health of {history.model.robot.name}",
        f"{len(history.runs)} runs · {' to '.join(days)}",
        sections,
    )


def _table(report: HealthReport) -> str:
    rows = [
        (
            joint.joint,
            _with_interval(joint.change, joint.change_std),
            _with_interval(joint.trend, joint.trend_std),
            Number(joint.cusum, fixed(joint.cusum, 1)),
            joint.alarm_run,
        )
        for joint in report.joints
    ]
    header = ("joint", "change ± 95 % [%]", "trend ± 95 % [% per run]", "CUSUM", "alarm at")
    return table(header, rows, text=(4,), name="Friction of the joints")


def _with_interval(value: float | None, std: float | None) -> Number | None:
    if value is None or std is None or not np.isfinite(value):
        return None
    return Number(float(value), interval(float(value), NORMAL_95 * float(std)))


def _index(history: History, report: HealthReport) -> str:
    x = np.arange(len(history.runs), dtype=float)
    parts = [
        paragraph(
            "Friction above the model's, in percent of the model friction. The band contains 95 % "
            "of healthy runs; runs left of the dashed line are the baseline."
        )
    ]
    for j in range(history.joints):
        half_width = NORMAL_95 * report.percent[: history.healthy, j].std(ddof=1)
        band = np.full(len(x), half_width)
        low, high = report.percent[:, j].min(), report.percent[:, j].max()
        edge = np.array([history.healthy - 0.5, history.healthy - 0.5])
        parts.append(
            chart(
                x,
                [
                    Series("healthy runs, 95 %", None, low=-band, high=band, colour=MEASURED),
                    Series("runs", report.percent[:, j], colour=MODEL, points=True),
                    Series(
                        "end of the baseline",
                        np.array([min(low, -half_width), max(high, half_width)]),
                        x=edge,
                        colour=MEASURED,
                        dash=(4, 4),
                    ),
                ],
                caption=f"Joint {j + 1}: {quantity(float(history.level[j]), 'N m')} expected",
                xlabel="run [number]",
                ylabel="change [%]",
                group="runs",
            )
        )
    return chart_group(parts[1:], "Friction of the runs") + parts[0]


def _sums(history: History, report: HealthReport) -> str:
    if not len(report.sums):
        return paragraph("There are no runs since the baseline yet.")
    x = history.healthy + np.arange(len(report.sums), dtype=float)
    series = [Series(f"joint {j + 1}", report.sums[:, j]) for j in range(history.joints)]
    limit = np.full(len(x), report.threshold)
    series.append(Series("threshold", limit, colour=LIMIT, dash=(6, 4)))
    explanation = paragraph(
        f"Sum of increases over the runs, minus {history.slack:g} standard deviations per run. "
        "Above the threshold an alarm is raised and the sum restarts."
    )
    return explanation + chart(
        x,
        series,
        caption="CUSUM",
        xlabel="run [number]",
        ylabel="CUSUM [standard deviations]",
        tall=True,
    )


def _temperature(history: History) -> str:
    temperature = np.stack([run.temperature for run in history.runs])
    if not np.any(np.isfinite(temperature)):
        return paragraph("The recordings have no temperatures.")
    x = np.arange(len(history.runs), dtype=float)
    series = [Series(f"joint {j + 1}", temperature[:, j]) for j in range(history.joints)]
    return chart(
        x,
        series,
        caption="Mean temperature of each run",
        xlabel="run [number]",
        ylabel="temperature [°C]",
    )


def _runs(history: History, report: HealthReport) -> str:
    header = ("run", *(f"J{j + 1} %" for j in range(history.joints)), "added")
    rows = [
        (run.name, *(float(x) for x in report.percent[i]), run.added)
        for i, run in list(enumerate(history.runs))[-60:]
    ]
    explanation = paragraph("The last 60 runs; the history file has all of them.")
    return explanation + table(header, rows, text=(0, history.joints + 1))
