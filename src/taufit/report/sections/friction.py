"""Friction sections: over speed, over temperature, and by run."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import MissingInputError
from taufit.model.fitted_model import FittedModel
from taufit.report.charts import Series, chart, chart_group
from taufit.report.friction_map import friction_map
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph
from taufit.report.palette import MEASURED, MODEL, SECOND_MODEL
from taufit.report.temperature_page import run_by_run
from taufit.terms import DISSIPATIVE, TermInput, needs, typical_channels

_POINTS, _CURVE_POINTS = 700, 401
# Quantiles of the load in motion for curves of load-dependent friction.
_LOAD_QUANTILES = (0.1, 0.95)


def friction(view: ModelView) -> Section | None:
    """Friction over speed, one chart per joint, or a message if it cannot be drawn."""
    if not view.model.layout.of_kind(DISSIPATIVE).any():
        return None
    try:
        return Section("Friction", _charts(view), _gist(view.model))
    except MissingInputError as error:
        message = paragraph(f"Friction over speed alone cannot be drawn: {error}")
        return Section("Friction", message, "cannot be drawn")


def _charts(view: ModelView) -> str:
    velocity_range = view.model.training.ranges.velocity
    max_speed = np.ones(view.joints) if velocity_range is None else velocity_range.largest
    charts = []
    for joint in range(view.joints):
        v = np.linspace(-max_speed[joint], max_speed[joint], _CURVE_POINTS)
        charts.append(
            chart(
                v,
                [*_points(view, joint), *_curves(view, v, joint)],
                caption=view.short_label(joint),
                xlabel=f"speed [{view.speed_unit(joint)}]",
                ylabel=f"friction [{view.torque_unit(joint)}]",
                group=f"friction {joint + 1}",
            )
        )
    explanation = paragraph(
        "Friction at constant speed within the training range; outside it the model extrapolates. "
        "Points are the measured torque minus links, rotors and offset."
    )
    return explanation + chart_group(charts, "Friction")


def _gist(model: FittedModel) -> str:
    name = type(model.friction_model).__name__ if model.friction_model is not None else "none"
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
    return f"{words} friction"


def _points(view: ModelView, joint: int) -> list[Series]:
    """Measured torque of the last run minus all terms except friction."""
    if not view.runs:
        return []
    samples, predicted = view.runs[-1].samples, view.predictions[-1]
    rows = np.flatnonzero(samples.in_motion)
    rows = rows[:: max(1, len(rows) // _POINTS)]
    other_torque = predicted.total[rows, joint] - predicted.friction[rows, joint]
    measured = samples.torque[rows, joint] - other_torque
    speed = samples.velocity[rows, joint]
    return [Series("measured friction", measured, x=speed, colour=MEASURED, points=True)]


def _curves(view: ModelView, speed: Float[Array, " n"], joint: int) -> list[Series]:
    model = view.model
    if not (needs(model.term_sum, "load") and view.runs):
        return [Series("model", friction_curve(model, speed, joint, 0.0), colour=MODEL)]
    moving = view.runs[-1].samples.in_motion
    loads = np.quantile(np.abs(view.predictions[-1].links[moving, joint]), _LOAD_QUANTILES)
    return [
        Series(name, friction_curve(model, speed, joint, load), colour=colour, dash=dash)
        for load, name, colour, dash in zip(
            loads.tolist(),
            ("model, low load", "model, high load"),
            (MODEL, SECOND_MODEL),
            ((), (6, 4)),
            strict=True,
        )
    ]


def friction_curve(
    model: FittedModel, speed: Float[Array, " n"], joint: int, load: float
) -> Float[Array, " n"]:
    """Friction at constant speed and the given load, at the model's typical temperature [N m]."""
    velocity = np.zeros((len(speed), model.robot.joints))
    velocity[:, joint] = speed
    temperature = np.broadcast_to(model.typical_temperature, velocity.shape)
    channels = {**typical_channels(model.term_sum, velocity), "temperature": temperature}
    inputs = TermInput(velocity, load=np.full_like(velocity, load), channels=channels)
    columns = model.structure.steady_state().only(DISSIPATIVE).friction_columns(inputs)
    return (columns @ np.asarray(model.values)[model.layout.drive])[:, joint]


def friction_and_temperature(view: ModelView) -> Section | None:
    """Maps of friction over temperature; None if friction does not depend on temperature."""
    if not view.model.layout.of_kind(DISSIPATIVE).any():
        return None
    maps = friction_map(view.model)
    return Section("Friction and temperature", maps, "maps over speed") if maps else None


def run_by_run_section(view: ModelView) -> Section | None:
    """Friction by run over temperature; None if the runs do not differ in temperature."""
    if view.fitted_to is None:
        return None
    body = run_by_run(view.model, view.fitted_to, dropped=view.dropped)
    return Section("Run by run against temperature", body, "one point per run") if body else None
