"""How well a model predicts conditioned torque: figures per joint over the part in motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.errors import RecordingError
from taufit.model.predict import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.signals.samples import Samples

# A joint that turns less than this stands still [rad or m].
_SMALLEST_RANGE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Predicted against measured torque of one recording, both through the same low-pass.

    With e the error over the N samples in motion of j joints:

        rmse = sqrt(mean e^2),  nrmse = rmse / std of the measured torque   (per joint)
        e_n  = sqrt(e'e) / N over all joints, comparable only at equal N

    Attributes:
        file: The recording.
        samples: N.
        seconds: Of motion.
        cutoff_hz: Of the low-pass; figures are comparable only at equal cut-off.
        rmse: Root mean square error [N m].
        nrmse: The same over the standard deviation of the measured torque.
        correlation: Between measured and predicted torque.
        bias: Mean error, measured less predicted [N m].
        largest: Largest error [N m].
        e_n: See above.
        findings: What to know about this recording, e.g. that it leaves the range of training.
    """

    file: str
    samples: int
    seconds: float
    cutoff_hz: float
    rmse: Float[Array, " j"]
    nrmse: Float[Array, " j"]
    correlation: Float[Array, " j"]
    bias: Float[Array, " j"]
    largest: Float[Array, " j"]
    e_n: float
    findings: tuple[str, ...] = ()

    @property
    def mean_nrmse(self) -> float:
        """Mean over the joints."""
        return float(np.mean(self.nrmse))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "file": self.file,
            "rmse": self.rmse.tolist(),
            "nrmse": self.nrmse.tolist(),
            "mean_nrmse": self.mean_nrmse,
            "correlation": self.correlation.tolist(),
            "samples": self.samples,
            "seconds": self.seconds,
            "cutoff_hz": None if np.isinf(self.cutoff_hz) else self.cutoff_hz,
            "bias": self.bias.tolist(),
            "largest": self.largest.tolist(),
            "e_n": self.e_n,
            "n_val": self.samples,
            "findings": list(self.findings),
        }


def score(
    model: TorqueModel,
    samples: Samples,
    *,
    predicted: Float[Array, "n j"] | None = None,
    rows: Bool[Array, " n"] | None = None,
    file: str | None = None,
) -> Score:
    """The score of a model on samples, all runs together.

    Args:
        model: A fitted model.
        samples: What it should predict.
        predicted: Its torque, where that is at hand.
        rows: Samples that count; by default those in motion.
        file: What to call it; by default the runs' names.
    """
    from taufit.validation.range_of_training import range_findings

    if samples.joints != model.robot.joints:
        raise RecordingError(
            f"{samples.names[0]} has {samples.joints} joints and the model of {model.robot.name} "
            f"has {model.robot.joints}: this is a recording of another robot."
        )
    counted = samples.in_motion if rows is None else rows
    n = int(np.count_nonzero(counted))
    names = ", ".join(dict.fromkeys(samples.names))
    if n < 10:
        raise RecordingError(f"{names}: there are {n} samples in motion, too few to score a model.")
    if predicted is None:
        predicted = predicted_torque(model, samples)
    measured, expected = samples.torque[counted], predicted[counted]
    bad = ~np.isfinite(measured)
    if np.any(bad):
        sample, joint = np.argwhere(bad)[0]
        raise RecordingError(
            f"{names}: the torque of joint {joint + 1} is not finite at sample "
            f"{int(np.flatnonzero(counted)[sample])}. Repair the recording or cut that stretch out."
        )
    error = measured - expected
    rmse = np.sqrt(np.mean(error**2, axis=0))
    spread = np.maximum(measured.std(axis=0), np.finfo(float).tiny)
    return Score(
        file=names if file is None else file,
        samples=n,
        seconds=n / samples.rate_hz,
        cutoff_hz=float(samples.cutoff_hz),
        rmse=rmse,
        nrmse=rmse / spread,
        correlation=_correlation(measured, expected),
        bias=error.mean(axis=0),
        largest=np.abs(error).max(axis=0),
        e_n=float(np.linalg.norm(error) / n),
        findings=(*_standing(samples, counted), *range_findings(model, samples))
        if rows is None
        else (),
    )


def _standing(samples: Samples, counted: Bool[Array, " n"]) -> tuple[str, ...]:
    """A sentence where joints stand still: their nrmse divides by torque that hardly changes."""
    still = np.flatnonzero(np.ptp(samples.position[counted], axis=0) < _SMALLEST_RANGE)
    if len(still) == 0:
        return ()
    listed = ", ".join(str(j + 1) for j in still)
    return (
        f"joint {listed} stand{'s' if len(still) == 1 else ''} still: nrmse and correlation say "
        "nothing there, look at RMSE",
    )


def check(
    model: TorqueModel, samples: Samples | Sequence[Samples], *, names: Sequence[str] | None = None
) -> tuple[Score, ...]:
    """Scores of a fitted model on samples it has not seen, one per recording."""
    many = [samples] if isinstance(samples, Samples) else list(samples)
    labels: Sequence[str | None] = names if names is not None else [None] * len(many)
    return tuple(score(model, one, file=label) for one, label in zip(many, labels, strict=True))


def _correlation(
    measured: Float[Array, "n j"], expected: Float[Array, "n j"]
) -> Float[Array, " j"]:
    """Pearson's, and 0 where either does not change."""
    a, b = measured - measured.mean(axis=0), expected - expected.mean(axis=0)
    size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return np.where(size > 0.0, np.sum(a * b, axis=0) / np.where(size > 0.0, size, 1.0), 0.0)


def short_name(path: str) -> str:
    """A file's name without its folders, for tables."""
    return PurePath(path).name
