"""A page about a fitted model: the verdict first, then what it rests on."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import MissingInputError
from taufit.friction import FrictionInput, needs
from taufit.model import predicted_torque
from taufit.model.fitted_model import FittedModel
from taufit.model.record_file import provenance_to_dict
from taufit.report.charts import Series, chart, thin
from taufit.report.friction_map import friction_map
from taufit.report.page import (
    Raw,
    Section,
    bullets,
    cards,
    page,
    paragraph,
    table,
    verdict,
)
from taufit.report.temperature_page import run_by_run
from taufit.signals import Samples
from taufit.validation import Score, residual_spectrum
from taufit.validation import verdict as judge
from taufit.workflow import Identification


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A recording the model is shown on.

    Attributes:
        name: What to call it.
        samples: Conditioned.
        score: The model's, on them.
        training: Whether the model was fitted to it.
    """

    name: str
    samples: Samples
    score: Score
    training: bool = False


def fit_page(done: Identification) -> str:
    """The page of a fit that has just been made."""
    runs = [
        Run(_short(score.file), samples, score)
        for score, samples in zip(done.holdout, done.holdout_samples, strict=True)
    ]
    runs.append(Run("training", done.samples, done.training, training=True))
    extra = []
    if done.signs is not None:
        from taufit.report.signs_picture import signs_picture

        extra.append(Section("Signs", signs_picture(done.signs)))
    warm_up = run_by_run(done.model, done.samples, dropped=done.estimate.dropped)
    if warm_up:
        extra.append(Section("Run by run against temperature", warm_up))
    return model_page(
        done.model, runs, warnings=done.warnings, before=done.before, extra=tuple(extra)
    )


def model_page(
    model: FittedModel,
    runs: list[Run],
    *,
    warnings: tuple[str, ...] = (),
    before: Any = None,
    extra: tuple[Section, ...] = (),
) -> str:
    """The page of a model and recordings; the first run is the one shown in full."""
    predictions = [predicted_torque(model, run.samples) for run in runs]
    sections = [Section("Verdict", _verdict(model, runs, warnings))]
    if runs:
        sections.append(Section("Torque", _torque(model, runs, predictions)))
    sections += extra
    if runs:
        sections.append(Section("What is left over", _left(model, runs, predictions)))
    if model.friction is not None:
        sections.append(Section("Friction", _friction(model, runs, predictions)))
        maps = friction_map(model)
        if maps:
            sections.append(Section("Friction and temperature", maps))
    sections.append(Section("Parameters", _parameters(model)))
    sections.append(Section("What the motion could not show", _unseen(model)))
    if before is not None:
        sections.append(Section("Before identification", _before(before)))
    if runs:
        sections.append(Section("Recordings", _recordings(model, runs)))
    sections.append(Section("How to reproduce", _provenance(model)))
    subtitle = (
        f"{model.robot.joints} joints, low-pass {model.training.conditioning.cutoff_hz:g} Hz, "
        f"friction {type(model.friction).__name__ if model.friction else 'none'}"
    )
    return page(f"Torque model of {model.robot.name}", subtitle, sections)


def _verdict(model: FittedModel, runs: list[Run], warnings: tuple[str, ...]) -> str:
    warnings = warnings or model.training.warnings
    tested = [run for run in runs if not run.training] or runs
    base = model.training.base
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
        figures = [("mean nrmse", f"{mean:.3f}"), *figures]
        figures.append(("correlation, worst joint", f"{_worst_correlation(tested):.3f}"))
        figures.append(("seconds of motion", f"{sum(r.score.seconds for r in runs):.0f}"))
    else:
        head = verdict("warn", "Not tested here", "Give recordings to see how well it predicts.")
    told = f"<h3>Worth knowing</h3>{bullets(warnings)}" if warnings else ""
    scores = _score_table(runs) if runs else ""
    return head + cards(figures) + scores + told


def _worst_correlation(runs: list[Run]) -> float:
    return float(min(np.min(run.score.correlation) for run in runs))


def _score_table(runs: list[Run]) -> str:
    joints = len(runs[0].score.rmse)
    header = ["recording", *(f"J{i + 1}" for i in range(joints)), "mean"]
    rows: list[list[Any]] = []
    for run in runs:
        rows.append([run.name, *(float(x) for x in run.score.nrmse), run.score.mean_nrmse])
        rows.append(["  RMSE [N m]", *(float(x) for x in run.score.rmse), None])
    return f"<h3>nrmse per joint</h3>{table(header, rows)}"


def _torque(model: FittedModel, runs: list[Run], predictions: list[Float[Array, "n j"]]) -> str:
    shown, predicted = runs[0], predictions[0]
    samples = shown.samples
    first = samples.run == samples.run[0]
    moving = np.flatnonzero(samples.in_motion & first)
    part = slice(moving[0], moving[-1] + 1) if len(moving) else slice(None)
    parts = [
        paragraph(
            f"Measured and predicted torque of {shown.name}, through the same low-pass. Drag over "
            "a stretch to zoom all joints, double-click to go back."
        )
    ]
    for joint in range(model.robot.joints):
        time, (measured, expected) = thin(
            samples.time[part], [samples.torque[part, joint], predicted[part, joint]], 1600
        )
        parts.append(
            chart(
                time,
                [
                    Series("measured", measured, colour="#6b7a86"),
                    Series("predicted", expected, colour="#14639e"),
                    Series("left over", measured - expected, colour="#d1622b"),
                ],
                caption=f"Joint {joint + 1}, {model.robot.joint_names[joint]}: "
                f"RMSE {shown.score.rmse[joint]:.3g} N m, "
                f"correlation {shown.score.correlation[joint]:.3f}",
                xlabel="s",
                ylabel="N m",
                group="torque",
            )
        )
    return "".join(parts)


def _left(model: FittedModel, runs: list[Run], predictions: list[Float[Array, "n j"]]) -> str:
    run, predicted = runs[0], predictions[0]
    if run.score.samples < 64:
        return paragraph("Too little motion for a spectrum.")
    spectrum = residual_spectrum(model, run.samples, predicted=predicted)
    words = paragraph(
        "Amplitude density of the torque and of what the model leaves over. A hump where the "
        "robot moves slowly is friction, one above the motion's own frequencies vibration or noise."
    )
    charts = [
        chart(
            spectrum.frequency,
            [
                Series("measured", np.sqrt(spectrum.measured[:, joint]), colour="#6b7a86"),
                Series("left over", np.sqrt(spectrum.residual[:, joint]), colour="#d1622b"),
            ],
            caption=f"Joint {joint + 1}",
            xlabel="Hz",
            ylabel="N m/√Hz",
            group="spectrum",
        )
        for joint in range(model.robot.joints)
    ]
    return words + f'<div class="grid">{"".join(charts)}</div>'


def _friction(model: FittedModel, runs: list[Run], predictions: list[Float[Array, "n j"]]) -> str:
    try:
        return _friction_charts(model, runs, predictions)
    except MissingInputError as error:
        return paragraph(f"Friction over speed alone cannot be drawn: {error}")


def _friction_charts(
    model: FittedModel, runs: list[Run], predictions: list[Float[Array, "n j"]]
) -> str:
    joints = model.robot.joints
    top = model.training.ranges.velocity
    fastest = np.ones(joints) if top is None else top.largest
    charts = []
    for joint in range(joints):
        v = np.linspace(-fastest[joint], fastest[joint], 401)
        grid = np.zeros((len(v), joints))
        grid[:, joint] = v
        series = []
        if runs:
            points = _friction_points(model, runs[-1], predictions[-1], joint)
            series.append(
                Series(
                    "measured less the rest", points[1], x=points[0], colour="#6b7a86", points=True
                )
            )
        loads = _typical_loads(model, runs, joint)
        for load, colour, name in zip(
            loads, ("#14639e", "#8a4fa3"), ("model", "model, high load"), strict=False
        ):
            curve = _friction_curve(model, grid, joint, load)
            loaded = needs(model.friction, "load")
            label = f"{name} ({load:.3g} N m)" if loaded else "model"
            series.append(Series(label, curve, colour=colour))
        charts.append(
            chart(
                v,
                series,
                caption=f"Joint {joint + 1}, {model.robot.joint_names[joint]}",
                xlabel="rad/s",
                ylabel="N m",
            )
        )
    words = paragraph(
        "Friction at steady speed within the range of the training data; outside it the model has "
        "seen nothing. Points are the measured torque less links, rotors and offset."
    )
    return words + f'<div class="grid">{"".join(charts)}</div>'


def _friction_points(
    model: FittedModel, run: Run, predicted: Float[Array, "n j"], joint: int
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    samples = run.samples
    rows = np.flatnonzero(samples.in_motion)
    rows = rows[:: max(1, len(rows) // 700)]
    bare = _without_friction(model)
    rest = predicted_torque(bare, samples)[rows, joint]
    return samples.velocity[rows, joint], samples.torque[rows, joint] - rest


def _without_friction(model: FittedModel) -> FittedModel:
    values = np.array(model.values)
    values[model.layout.friction] = 0.0
    return model.with_values(values)


def _typical_loads(model: FittedModel, runs: list[Run], joint: int) -> list[float]:
    if not (needs(model.friction, "load") and runs):
        return [0.0]
    from taufit.model.predict import rigid_torque

    samples = runs[-1].samples
    load = np.abs(rigid_torque(model, samples)[samples.in_motion, joint])
    return [float(np.quantile(load, 0.1)), float(np.quantile(load, 0.95))]


def _friction_curve(
    model: FittedModel, velocity: Float[Array, "n j"], joint: int, load: float
) -> Float[Array, " n"]:
    carried = np.full_like(velocity, load)
    temperature = np.broadcast_to(model.typical_temperature, velocity.shape)
    inputs = FrictionInput(velocity, load=carried, temperature=temperature)
    columns = model.structure.steady().friction_columns(inputs)
    return (columns @ np.asarray(model.values)[model.layout.friction])[:, joint]


def _parameters(model: FittedModel) -> str:
    base = model.training.base
    if base is None:
        return paragraph("This model carries no uncertainty.")
    words = paragraph(
        "Base parameters are what the motion determines, with 95 % intervals from the residuals "
        "as they are. Single masses and inertias of links are one choice among many with the same "
        "torque and are not listed as measurements."
    )
    rows = []
    for name, expression, value, spread in zip(
        base.names, base.expressions, base.values, base.std, strict=True
    ):
        relative = 100 * spread / abs(value) if value else np.inf
        kind = "good" if relative < 10 else "warn" if relative < 30 else "bad"
        size = f"{relative:.3g} %" if relative < 1000 else "over 1000 %"
        mark = f'<span class="{kind}">{size}</span>'
        half = 1.959964 * spread
        rows.append(
            [name, float(value), float(value - half), float(value + half), Raw(mark), expression]
        )
    header = ("base parameter", "value", "from", "to", "std", "in full")
    return words + table(header, rows, text=(5,))


def _unseen(model: FittedModel) -> str:
    verdicts = model.training.verdicts
    names = model.names
    groups: dict[str, list[str]] = {}
    for name, word in zip(names, verdicts, strict=False):
        groups.setdefault(str(word), []).append(name)
    if not groups:
        return paragraph("Nothing is recorded about identifiability.")
    order = (
        "well",
        "fairly",
        "poorly",
        "only in combination",
        "no effect",
        "not supported by the data",
    )
    rows = [(word, len(groups[word]), ", ".join(groups[word])) for word in order if word in groups]
    words = paragraph(
        "How well each parameter is known by itself: well below 10 % standard deviation, fairly "
        "below 30 %. What is known only in combination shows in the base parameters above; what "
        "has no effect can be anything."
    )
    return words + table(("known", "count", "parameters"), rows, text=(2,))


def _before(before: Any) -> str:
    joints = range(len(before.nominal.rmse))
    rows = [
        ("nominal robot", *(float(x) for x in before.nominal.rmse)),
        ("nominal links, fitted friction", *(float(x) for x in before.with_friction.rmse)),
        ("fitted", *(float(x) for x in before.fitted.rmse)),
    ]
    words = paragraph(
        f"RMSE in N m on the training data. Identification takes away {100 * before.reduction:.0f} "
        "% of the error of the robot's description."
    )
    return words + table(("model", *(f"J{i + 1}" for i in joints)), rows)


def _recordings(model: FittedModel, runs: list[Run]) -> str:
    out = []
    for run in runs:
        samples = run.samples
        out.append(f"<h3>{html.escape(run.name)}</h3>")
        gain = samples.gain
        facts = [
            f"{run.score.seconds:.1f} s in motion on a grid of {samples.rate_hz:g} Hz",
            f"friction delayed by {1000 * samples.delay_s:.1f} ms",
        ]
        if gain is not None and not np.allclose(gain, 1.0):
            facts.append("torque per ampere " + ", ".join(f"{g:.3f}" for g in gain))
        out.append(paragraph("; ".join(facts) + "."))
        findings = [str(f) for f in samples.findings] + list(run.score.findings)
        if findings:
            out.append(bullets(findings))
    return "".join(out)


def _provenance(model: FittedModel) -> str:
    provenance = model.training.provenance
    if provenance is None:
        return paragraph("This model does not say where it came from.")
    return f"<pre>{html.escape(json.dumps(provenance_to_dict(provenance), indent=1))}</pre>"


def _short(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
