"""Page about the friction of a robot over its runs: verdict first, then every joint."""

from __future__ import annotations

import numpy as np

from taufit.core.statistics import NORMAL_95
from taufit.health import HealthReport, History, assess_health
from taufit.report.charts import Series, chart
from taufit.report.page import Section, cards, paragraph, render_page, table, verdict_box
from taufit.report.palette import LIMIT, MEASURED, MODEL


def health_page(history: History) -> str:
    """Page with verdict, friction index and CUSUM per joint, temperatures, runs."""
    report = assess_health(history)
    later_runs = len(history.runs) - history.healthy
    largest_cusum = max(joint.cusum for joint in report.joints)
    head = verdict_box(
        "good" if report.healthy else "bad",
        report.headline[0].upper() + report.headline[1:],
        f"{later_runs} runs since the baseline of {history.healthy}. Temperature and load are "
        f"compensated by the model; false alarms are below {report.rate:g} per healthy run.",
    )
    figures = cards(
        [
            ("runs since the baseline", str(later_runs)),
            ("joints with an alarm", str(sum(joint.alarm for joint in report.joints))),
            ("largest CUSUM", f"{largest_cusum:.1f} of {report.threshold:.1f}"),
        ]
    )
    sections = [
        Section("Verdict", head + figures + _table(report)),
        Section("Friction index, compensated for temperature and load", _index(history, report)),
        Section("CUSUM", _sums(history, report)),
        Section("Temperature of the runs", _temperature(history)),
        Section("Runs", _runs(history, report)),
    ]
    return render_page(
        f"Health of {history.model.robot.name}",
        f"{len(history.runs)} runs, {history.runs[0].added[:10]} to {history.runs[-1].added[:10]}",
        sections,
    )


def _table(report: HealthReport) -> str:
    rows = [
        (
            joint.joint,
            joint.change,
            NORMAL_95 * joint.change_std,
            joint.trend,
            NORMAL_95 * joint.trend_std,
            joint.cusum,
            joint.alarm_run,
        )
        for joint in report.joints
    ]
    header = ("joint", "change %", "±", "trend % per run", "±", "CUSUM", "alarm at")
    return table(header, rows, text=(6,))


def _index(history: History, report: HealthReport) -> str:
    x = np.arange(len(history.runs), dtype=float)
    parts = [
        paragraph(
            "Friction above the model's, in percent of the model friction. The band contains 95 "
            "% of "
            "healthy runs; runs left of the dashed line are the baseline."
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
                caption=f"Joint {j + 1}: {history.level[j]:.3g} N m expected",
                xlabel="run [number]",
                ylabel="change [%]",
                group="runs",
            )
        )
    return f'{parts[0]}<div class="grid">{"".join(parts[1:])}</div>'


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
