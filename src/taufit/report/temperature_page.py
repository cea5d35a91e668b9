"""Page about a warm-up: effect of temperature on friction and torque, by run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.core.number_text import column, count_text, fixed, quantity
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.report.charts import Series, chart, chart_group
from taufit.report.friction_map import friction_map
from taufit.report.page import (
    Number,
    Section,
    numbers,
    render_page,
    small_text,
    statement,
    statements,
    table,
    with_sidebar,
)
from taufit.report.palette import MEASURED, MODEL, RESIDUAL
from taufit.signals.samples import Samples
from taufit.temperature.temperature_slopes import friction_at
from taufit.temperature.warm_up import WarmUpChange, follows_temperature, torque_change, warm_up

if TYPE_CHECKING:
    from taufit.temperature.runwise_fits import RunwiseFits

__all__ = ["run_by_run", "temperature_page", "torque_change"]


def temperature_page(
    model: FittedModel,
    repeated: RunwiseFits,
    samples: Samples,
    *,
    cold: Float[Array, " j"] | None = None,
    warm: Float[Array, " j"] | None = None,
) -> str:
    """Page of friction over temperature, changes of friction and torque, and maps.

    Args:
        model: Model fitted to all runs together, with temperature-dependent friction.
        repeated: The runs, identified one by one.
        samples: Motion on which torque is compared.
        cold, warm: Temperatures to compare [degC]; default the extremes of the training data.
    """
    changes = warm_up(model, samples, cold, warm)
    if changes is None:
        raise TaufitError(
            "this model's viscous friction does not follow temperature: fit it with a law "
            "(--temperature linear) to runs at several."
        )
    change_by_run = _change_by_run(repeated, changes)
    largest = int(np.argmax(np.abs(changes.viscous)))
    head = statements(
        statement(
            "model",
            "Viscous friction, cold to warm",
            f"{fixed(float(changes.viscous.mean()), 0)} %",
            " on average over the joints",
            detail=[
                f"One fit over {count_text(len(repeated.models), 'run')}, friction with "
                f"temperature. Identified run by run: {fixed(float(change_by_run.mean()), 0)} %."
            ],
        ),
        statement(
            "model",
            "Torque",
            quantity(float(changes.largest.max()), "N m"),
            " of torque change at most",
            detail=[
                f"Joint {1 + int(np.argmax(changes.largest))}, on the recorded motion, from the "
                "lowest to the highest temperature."
            ],
        ),
    )
    figures = numbers(
        [
            (
                f"{fixed(float(changes.viscous[largest]), 0)}",
                "%",
                f"largest, of joint {largest + 1}",
            ),
            (
                f"{fixed(float(changes.cold.min()), 0)} to {fixed(float(changes.warm.max()), 0)}",
                "°C",
                "joint temperatures",
            ),
            (str(len(repeated.models)), "", "runs"),
        ]
    )
    sections = [
        Section("Verdict", head + with_sidebar(_friction_charts(model, repeated), figures)),
        Section(
            "Every joint",
            _table(model, changes, change_by_run),
            f"{fixed(float(changes.viscous.min()), 0)} to "
            f"{fixed(float(changes.viscous.max()), 0)} % viscous friction",
        ),
        Section(
            "Friction maps",
            friction_map(model),
            f"{count_text(model.robot.joints, 'joint')} over speed and temperature",
        ),
    ]
    return render_page(
        f"Warm-up of {model.robot.name}", "viscous friction and temperature", sections
    )


def run_by_run(model: FittedModel, samples: Samples, *, dropped: tuple[str, ...] = ()) -> str:
    """Table and charts of the training runs identified one by one, beside the common fit.

    Empty for fewer than three runs, without measured temperatures, or without
    temperature-dependent viscous friction.

    Args:
        model: Model fitted to all runs together.
        samples: Samples of the fit.
        dropped: Parameters fixed at zero in that fit.
    """
    friction: Any = model.friction_model
    if (
        friction is None
        or not follows_temperature(model)
        or samples.temperature is None
        or model.training.thermal is not None
        or len(samples.run_slices()) < 3
    ):
        return ""
    shape = model.joint_shape[:, : len(friction.model.shapes)]
    single_model = replace(model.structure, friction=friction.model, shape=shape)
    names = single_model.names
    try:
        from taufit.temperature.runwise_fits import repeat_identification, single_runs

        repeated = repeat_identification(
            single_model,
            single_runs(samples),
            dropped=tuple(name for name in dropped if name in names),
        )
    except TaufitError:
        # A run that cannot be identified alone does not affect the fit.
        return ""
    changes = warm_up(model, samples)
    assert changes is not None
    return _table(model, changes, _change_by_run(repeated, changes)) + _friction_charts(
        model, repeated
    )


def _change_by_run(repeated: RunwiseFits, changes: WarmUpChange) -> Float[Array, " j"]:
    """Change of viscous friction by the line through the single runs [%]."""
    return 100.0 * (repeated.at(changes.warm) / repeated.at(changes.cold) - 1.0)


def _table(model: FittedModel, changes: WarmUpChange, change_by_run: Float[Array, " j"]) -> str:
    header = ("quantity", *(f"J{j + 1}" for j in range(model.robot.joints)))
    rows = [
        ("cold [°C]", changes.cold),
        ("warm [°C]", changes.warm),
        ("viscous friction, one fit [%]", changes.viscous),
        ("viscous friction, run by run [%]", change_by_run),
        ("mean change of torque [N m]", changes.mean),
        ("largest change of torque [N m]", changes.largest),
        ("change of torque at the speed limit [N m]", changes.at_speed_limit),
        ("change at the speed limit, % of the torque limit", changes.percent_of_torque_limit),
    ]
    cells = [
        (
            name,
            *(
                Number(float(x), text)
                for x, text in zip(values, column(values.tolist()), strict=True)
            ),
        )
        for name, values in rows
    ]
    return table(header, cells, text=(0,), name="Warm-up")


def _friction_charts(model: FittedModel, repeated: RunwiseFits) -> str:
    explanation = small_text(
        "Points: viscous friction Fv of each run, identified by itself. Dashed: the line through "
        "them. Solid: one fit over all runs, with its 95 % band."
    )
    names = [n.replace("_", " ").removesuffix(" joint") for n in model.robot.joint_names]
    charts = []
    for j in range(model.robot.joints):
        t = repeated.temperature[:, j]
        x = np.linspace(t.min(), t.max(), 60)
        fitted, std = np.array(
            [[y[j] for y in friction_at(model, temperature)] for temperature in x]
        ).T
        half = NORMAL_95 * np.nan_to_num(std)
        charts.append(
            chart(
                x,
                [
                    Series("95 %", None, low=fitted - half, high=fitted + half, colour=MODEL),
                    Series("one fit", fitted, colour=MODEL),
                    Series(
                        "line through the runs",
                        repeated.level[j] + repeated.slope[j] * (x - repeated.reference[j]),
                        colour=RESIDUAL,
                        dash=(5, 4),
                    ),
                    Series("runs", repeated.viscous[:, j], x=t, colour=MEASURED, points=True),
                ],
                caption=f"{j + 1} {names[j]}",
                xlabel="temperature [°C]",
                ylabel="Fv [N m s/rad]",
            )
        )
    return chart_group(charts, "Friction over temperature") + explanation
