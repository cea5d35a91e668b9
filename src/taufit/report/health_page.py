"""A page about a robot's friction over its runs: the verdict first, then every joint."""

from __future__ import annotations

import numpy as np

from taufit.core.statistics import NORMAL_95
from taufit.health import HealthReport, History, judge
from taufit.report.charts import Series, chart
from taufit.report.page import Section, cards, page, paragraph, table, verdict
from taufit.report.palette import LIMIT, MEASURED, MODEL


def health_page(history: History) -> str:
    """One page: verdict, friction index and CUSUM per joint, temperatures, runs."""
    found = judge(history)
    later = len(history.runs) - history.healthy
    worst = max(one.cusum for one in found.joints)
    head = verdict(
        "good" if found.healthy else "bad",
        found.headline[0].upper() + found.headline[1:],
        f"{later} runs since the baseline of {history.healthy}. Temperature and load are taken out "
        f"by the model; false alarms are below {found.rate:g} per healthy run.",
    )
    figures = cards(
        [
            ("runs since the baseline", str(later)),
            ("joints with an alarm", str(sum(one.alarm for one in found.joints))),
            ("largest CUSUM", f"{worst:.1f} of {found.threshold:.1f}"),
        ]
    )
    sections = [
        Section("Verdict", head + figures + _table(found)),
        Section("Friction, temperature and load taken out", _index(history, found)),
        Section("What adds up", _sums(history, found)),
        Section("Temperature of the runs", _temperature(history)),
        Section("Runs", _runs(history, found)),
    ]
    return page(
        f"Health of {history.model.robot.name}",
        f"{len(history.runs)} runs, {history.runs[0].added[:10]} to {history.runs[-1].added[:10]}",
        sections,
    )


def _table(found: HealthReport) -> str:
    rows = [
        (
            one.joint,
            one.change,
            NORMAL_95 * one.change_std,
            one.trend,
            NORMAL_95 * one.trend_std,
            one.cusum,
            one.alarm_run,
        )
        for one in found.joints
    ]
    header = ("joint", "change %", "±", "trend % per run", "±", "CUSUM", "alarm at")
    return table(header, rows, text=(6,))


def _index(history: History, found: HealthReport) -> str:
    x = np.arange(len(history.runs), dtype=float)
    parts = [
        paragraph(
            "Friction beyond what the model expects, in percent of the expected friction. The band "
            "holds 95 % of healthy runs; runs left of the dashed line are the baseline."
        )
    ]
    for j in range(history.joints):
        spread = NORMAL_95 * found.percent[: history.healthy, j].std(ddof=1)
        band = np.full(len(x), spread)
        low, high = found.percent[:, j].min(), found.percent[:, j].max()
        edge = np.array([history.healthy - 0.5, history.healthy - 0.5])
        parts.append(
            chart(
                x,
                [
                    Series("healthy runs, 95 %", None, low=-band, high=band, colour=MEASURED),
                    Series("runs", found.percent[:, j], colour=MODEL, points=True),
                    Series(
                        "end of the baseline",
                        np.array([min(low, -spread), max(high, spread)]),
                        x=edge,
                        colour=MEASURED,
                        dash=(4, 4),
                    ),
                ],
                caption=f"Joint {j + 1}: {history.level[j]:.3g} N m expected",
                xlabel="run",
                ylabel="%",
                group="runs",
            )
        )
    return f'{parts[0]}<div class="grid">{"".join(parts[1:])}</div>'


def _sums(history: History, found: HealthReport) -> str:
    if not len(found.sums):
        return paragraph("There are no runs behind the baseline yet.")
    x = history.healthy + np.arange(len(found.sums), dtype=float)
    series = [Series(f"joint {j + 1}", found.sums[:, j]) for j in range(history.joints)]
    limit = np.full(len(x), found.threshold)
    series.append(Series("threshold", limit, colour=LIMIT, dash=(6, 4)))
    words = paragraph(
        f"Rises add up, run after run, less {history.slack:g} standard deviations that are "
        "forgiven each time. Above the threshold is an alarm, after which the sum starts anew."
    )
    return words + chart(
        x, series, caption="CUSUM", xlabel="run", ylabel="standard deviations", tall=True
    )


def _temperature(history: History) -> str:
    warm = np.stack([run.temperature for run in history.runs])
    if not np.any(np.isfinite(warm)):
        return paragraph("The recordings have no temperatures.")
    x = np.arange(len(history.runs), dtype=float)
    series = [Series(f"joint {j + 1}", warm[:, j]) for j in range(history.joints)]
    return chart(x, series, caption="Mean temperature of each run", xlabel="run", ylabel="degC")


def _runs(history: History, found: HealthReport) -> str:
    header = ("run", *(f"J{j + 1} %" for j in range(history.joints)), "added")
    rows = [
        (run.name, *(float(x) for x in found.percent[i]), run.added)
        for i, run in list(enumerate(history.runs))[-60:]
    ]
    words = paragraph("The last 60 runs; the history file has all of them.")
    return words + table(header, rows, text=(0, history.joints + 1))
