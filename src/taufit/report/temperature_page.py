"""A page about a warm-up: what temperature does to friction and torque, run by run."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.estimation.prediction import predicted_torque
from taufit.estimation.repeated import Repeated
from taufit.estimation.temperature import friction_at
from taufit.report.charts import Series, chart
from taufit.report.friction_map import friction_map
from taufit.report.page import Section, cards, page, paragraph, table, verdict
from taufit.signals.samples import Samples
from taufit.torque_model import TorqueModel


def torque_change(
    model: TorqueModel,
    samples: Samples,
    cold: Float[Array, " j"],
    warm: Float[Array, " j"],
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Mean and largest change of torque along a motion when every joint goes from cold to warm."""
    from dataclasses import replace

    shape = samples.position.shape
    torque = [
        predicted_torque(model, replace(samples, temperature=np.broadcast_to(t, shape).copy()))
        for t in (cold, warm)
    ]
    change = np.abs(torque[1] - torque[0])[samples.in_motion]
    return change.mean(axis=0), change.max(axis=0)


def temperature_page(
    model: TorqueModel,
    repeated: Repeated,
    samples: Samples,
    *,
    cold: Float[Array, " j"] | None = None,
    warm: Float[Array, " j"] | None = None,
) -> str:
    """One page: friction against temperature, change of friction and torque, maps.

    Args:
        model: Fitted to all runs at once, with friction that follows temperature.
        repeated: The same runs, identified one by one.
        samples: A motion on which torque is compared.
        cold, warm: Temperatures to compare [degC]; by default the training data's extremes.
    """
    span = model.meta["range"]["temperature"]
    cold = np.array(span["low"] if cold is None else cold, float)
    warm = np.array(span["high"] if warm is None else warm, float)
    one, _ = friction_at(model, cold)
    other, _ = friction_at(model, warm)
    change = 100.0 * (other / one - 1.0)
    old = 100.0 * (repeated.at(warm) / repeated.at(cold) - 1.0)
    mean, largest = torque_change(model, samples, cold, warm)
    limit = model.robot.limits.torque
    share = 100.0 * largest / np.where(np.isfinite(limit), limit, np.nan)
    head = verdict(
        "good",
        f"Viscous friction changes by {change.mean():.0f} % on average from cold to warm",
        f"One fit over {len(repeated.models)} runs whose friction follows temperature. Identified "
        f"run by run the figure is {old.mean():.0f} %.",
    )
    figures = cards(
        [
            ("largest change of viscous friction", f"{change[np.argmax(np.abs(change))]:.0f} %"),
            ("largest change of torque", f"{largest.max():.3g} N m"),
            ("runs", str(len(repeated.models))),
        ]
    )
    joints = range(model.robot.joints)
    header = ("", *(f"J{j + 1}" for j in joints))
    rows = [
        ("cold [degC]", *(float(x) for x in cold)),
        ("warm [degC]", *(float(x) for x in warm)),
        ("viscous friction, one fit [%]", *(float(x) for x in change)),
        ("viscous friction, run by run [%]", *(float(x) for x in old)),
        ("mean change of torque [N m]", *(float(x) for x in mean)),
        ("largest change of torque [N m]", *(float(x) for x in largest)),
        ("the same, % of the torque limit", *(float(x) for x in share)),
    ]
    sections = [
        Section("Verdict", head + figures + table(header, rows)),
        Section("Friction against temperature", _lines(model, repeated)),
        Section("Friction maps", friction_map(model)),
    ]
    return page(f"Warm-up of {model.robot.name}", "viscous friction and temperature", sections)


def _lines(model: TorqueModel, repeated: Repeated) -> str:
    words = paragraph(
        "Points: viscous friction of each run, identified by itself. Dashed: the line through "
        "them. Solid: one fit over all runs, with its 95 % band."
    )
    charts = []
    for j in range(model.robot.joints):
        t = repeated.temperature[:, j]
        x = np.linspace(t.min(), t.max(), 60)
        own, std = np.array([[y[j] for y in friction_at(model, at)] for at in x]).T
        half = 1.96 * np.nan_to_num(std)
        charts.append(
            chart(
                x,
                [
                    Series("95 %", None, low=own - half, high=own + half, colour="#14639e"),
                    Series("one fit", own, colour="#14639e"),
                    Series(
                        "line through the runs",
                        repeated.level[j] + repeated.slope[j] * (x - repeated.reference[j]),
                        colour="#d1622b",
                        dash=(5, 4),
                    ),
                    Series("runs", repeated.viscous[:, j], x=t, colour="#6b7a86", points=True),
                ],
                caption=f"Joint {j + 1}, {model.robot.joint_names[j]}",
                xlabel="degC",
                ylabel="N m s/rad",
            )
        )
    return words + f'<div class="grid">{"".join(charts)}</div>'
