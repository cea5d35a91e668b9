"""Scores of predicted against measured torque, per joint, over the samples in motion."""

from __future__ import annotations

from pathlib import PurePath

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.model.score import Score
from taufit.model.training_record import Range
from taufit.recording import require_joints
from taufit.signals.samples import Samples
from taufit.validation.noise_floor import noise_findings, noise_share

# Tolerated excess over the training range, relative to its span, and tolerated fraction of samples.
_RANGE_TOLERANCE = 0.05
_MIN_OUTSIDE_FRACTION = 0.01

_QUANTITIES = (
    ("position", "positions", 180.0 / np.pi, "deg", "m"),
    ("velocity", "speeds", 180.0 / np.pi, "deg/s", "m/s"),
    ("temperature", "temperatures", 1.0, "degC", "degC"),
)


def range_findings(model: FittedModel, samples: Samples) -> tuple[str, ...]:
    """One sentence per quantity on joints outside the training range."""
    messages = []
    moving = samples.in_motion
    for name, quantity, scale, unit, slide_unit in _QUANTITIES:
        span: Range | None = getattr(model.training.ranges, name)
        values = getattr(samples, name)
        if span is None or values is None or not np.any(moving):
            continue
        low, high = span.low, span.high
        slack = _RANGE_TOLERANCE * np.maximum(high - low, 1e-12)
        outside = (values[moving] < low - slack) | (values[moving] > high + slack)
        fraction = outside.mean(axis=0)
        outside_joints = np.flatnonzero(fraction > _MIN_OUTSIDE_FRACTION)
        if len(outside_joints) == 0:
            continue
        worst = int(outside_joints[np.argmax(fraction[outside_joints])])
        is_prismatic = model.robot.is_prismatic[worst]
        k, label = (1.0, slide_unit) if is_prismatic else (scale, unit)
        joint_values = values[moving, worst]
        numbers = ", ".join(str(j + 1) for j in outside_joints)
        messages.append(
            f"{quantity} of joint {numbers} leave the range of training (worst: joint {worst + 1}, "
            f"{k * joint_values.min():.3g} .. {k * joint_values.max():.3g} {label} where "
            f"{k * low[worst]:.3g} .. "
            f"{k * high[worst]:.3g} was fitted, {100 * fraction[worst]:.0f} % of the samples)"
        )
    return tuple(messages)


# Smallest range of motion of a moving joint [rad or m].
_MIN_RANGE = 0.02


def score(
    model: FittedModel,
    samples: Samples,
    *,
    predicted: Float[Array, "n j"] | None = None,
    rows: Bool[Array, " n"] | None = None,
    file: str | None = None,
) -> Score:
    """Score of a model on samples, over all runs.

    Args:
        model: A fitted model.
        samples: Samples to predict.
        predicted: Predicted torque, if already computed.
        rows: Samples that count; those in motion by default.
        file: Label of the score; names of the runs by default.
    """
    from taufit.validation.score import range_findings

    robot = model.robot
    require_joints(samples.joints, robot.joints, name=samples.names[0], robot=robot.name)
    included = samples.in_motion if rows is None else rows
    n = int(np.count_nonzero(included))
    names = ", ".join(dict.fromkeys(samples.names))
    if n < 10:
        raise RecordingError(f"{names}: there are {n} samples in motion, too few to score a model.")
    if predicted is None:
        predicted = predicted_torque(model, samples)
    measured, expected = samples.torque[included], predicted[included]
    bad = ~np.isfinite(measured)
    if np.any(bad):
        sample, joint = np.argwhere(bad)[0]
        raise RecordingError(
            f"{names}: the torque of joint {joint + 1} is not finite at sample "
            f"{int(np.flatnonzero(included)[sample])}. Repair the recording or cut that segment "
            "out."
        )
    error = measured - expected
    rmse = np.sqrt(np.mean(error**2, axis=0))
    torque_std = measured.std(axis=0)
    # Constant torque has no nrmse.
    has_variation = torque_std > 1e-9 * np.maximum(np.abs(measured).max(axis=0), 1e-300)
    torque_std = np.where(has_variation, torque_std, np.nan)
    noise = noise_share(samples) if rows is None else None
    return Score(
        file=names if file is None else file,
        samples=n,
        seconds=n / samples.rate_hz,
        cutoff_hz=float(samples.cutoff_hz),
        rmse=rmse,
        nrmse=rmse / torque_std,
        correlation=_correlation(measured, expected),
        bias=error.mean(axis=0),
        largest=np.abs(error).max(axis=0),
        e_n=float(np.linalg.norm(error) / n),
        noise_share=noise,
        findings=(
            *standing_findings(np.ptp(samples.position[included], axis=0)),
            *range_findings(model, samples),
            *noise_findings(samples, noise),
        )
        if noise is not None
        else (),
    )


def standing_findings(span: Float[Array, " j"]) -> tuple[str, ...]:
    """Sentence on standing joints, whose nrmse is not meaningful."""
    standing = np.flatnonzero(span < _MIN_RANGE)
    if len(standing) == 0:
        return ()
    numbers = ", ".join(str(j + 1) for j in standing)
    return (
        f"joint {numbers} stand{'s' if len(standing) == 1 else ''} still: nrmse and correlation "
        "say nothing there, look at RMSE",
    )


def _correlation(
    measured: Float[Array, "n j"], expected: Float[Array, "n j"]
) -> Float[Array, " j"]:
    """Pearson's correlation; 0 where a signal is constant."""
    a, b = measured - measured.mean(axis=0), expected - expected.mean(axis=0)
    size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return np.where(size > 0.0, np.sum(a * b, axis=0) / np.where(size > 0.0, size, 1.0), 0.0)


def short_name(path: str) -> str:
    """File name without its folders, for tables."""
    return PurePath(path).name
