"""Scores over any number of recordings, from sums per part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.score import Score
from taufit.model.torque_model import TorqueModel
from taufit.recording.finding import Finding
from taufit.regression.result_reuse import reusable_model
from taufit.regression.rows import RowBuilder
from taufit.robot import Robot
from taufit.signals.sample_source import SampleSource
from taufit.signals.samples import Samples
from taufit.validation.nominal_comparison import NominalComparison
from taufit.validation.score import standing_findings


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Sums of measured and predicted torque over samples in motion, per joint.

    Attributes:
        count: Number of samples.
        measured, expected: Mean measured and predicted torque.
        measured_square, expected_square, product: Sums of squares and products about the means.
        error_square: Sum of squared errors.
        largest: Largest error.
    """

    count: int
    measured: Float[Array, " j"]
    expected: Float[Array, " j"]
    measured_square: Float[Array, " j"]
    expected_square: Float[Array, " j"]
    product: Float[Array, " j"]
    error_square: Float[Array, " j"]
    largest: Float[Array, " j"]

    @classmethod
    def from_torque(cls, measured: Float[Array, "n j"], expected: Float[Array, "n j"]) -> ScoreSums:
        n = len(measured)
        mean, expected_mean = measured.sum(axis=0) / max(n, 1), expected.sum(axis=0) / max(n, 1)
        a, b, error = measured - mean, expected - expected_mean, measured - expected
        return cls(
            n,
            mean,
            expected_mean,
            np.sum(a * a, axis=0),
            np.sum(b * b, axis=0),
            np.sum(a * b, axis=0),
            np.sum(error * error, axis=0),
            np.abs(error).max(axis=0, initial=0.0),
        )

    def __add__(self, other: ScoreSums) -> ScoreSums:
        n = max(self.count + other.count, 1)
        a, b = other.measured - self.measured, other.expected - self.expected
        factor = self.count * other.count / n
        return ScoreSums(
            self.count + other.count,
            self.measured + a * other.count / n,
            self.expected + b * other.count / n,
            self.measured_square + other.measured_square + a * a * factor,
            self.expected_square + other.expected_square + b * b * factor,
            self.product + other.product + a * b * factor,
            self.error_square + other.error_square,
            np.maximum(self.largest, other.largest),
        )

    def score(self, file: str, rate_hz: float, cutoff_hz: float) -> Score:
        """Score from the sums."""
        n = max(self.count, 1)
        rmse = np.sqrt(self.error_square / n)
        torque_std = np.sqrt(self.measured_square / n)
        # Constant torque has no nrmse.
        torque_std = np.where(
            torque_std > 1e-9 * np.maximum(np.abs(self.measured), 1e-300), torque_std, np.nan
        )
        size = np.sqrt(self.measured_square * self.expected_square)
        correlation = np.where(size > 0.0, self.product / np.where(size > 0.0, size, 1.0), 0.0)
        return Score(
            file=file,
            samples=self.count,
            seconds=self.count / rate_hz,
            cutoff_hz=float(cutoff_hz),
            rmse=rmse,
            nrmse=rmse / torque_std,
            correlation=correlation,
            bias=self.measured - self.expected,
            largest=self.largest,
            e_n=float(np.sqrt(self.error_square.sum()) / n),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TrainingScores:
    """Scores of a fitted model on its training data.

    Attributes:
        overall: Score over all samples.
        files: Score of each run, in order; runs too short to score are left out.
        nominal_comparison: Nominal robot on the same samples, or None if it has no inertial
            parameters.
    """

    overall: Score
    files: tuple[Score, ...]
    nominal_comparison: NominalComparison | None


def training_scores(model: FittedModel, nominal: Robot, source: SampleSource) -> TrainingScores:
    """Scores of a model on its training data, in one pass over them."""
    has_masses = bool(np.any(nominal.parameters))
    reference_model = reusable_model(model, source)
    parts = list(source.map_parts(_ScorePart(reference_model, nominal if has_masses else None)))
    names = ", ".join(dict.fromkeys(source.names))
    totals = [reduce(lambda a, b: a + b, part_sums) for part_sums in zip(*parts, strict=True)]
    if totals[0].count < 10:
        raise RecordingError(
            f"{names}: there are {totals[0].count} samples in motion, too few to score a model."
        )
    scores = [sums.score(names, source.rate_hz, source.cutoff_hz) for sums in totals]
    position = source.summary.ranges["position"]
    parts_in_order = sorted(zip(source.order, parts, strict=True), key=lambda pair: pair[0])
    files = tuple(
        part[0].score(source.names[k], source.rate_hz, source.cutoff_hz)
        for k, part in parts_in_order
        if part[0].count >= 10
    )
    return TrainingScores(
        replace(scores[0], findings=standing_findings(position.width)),
        files,
        NominalComparison(scores[1], scores[0], scores[2]) if has_masses else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _ScorePart:
    model: FittedModel
    nominal: Robot | None

    def __call__(self, part: Samples) -> tuple[ScoreSums, ...]:
        in_motion = part.in_motion
        measured = part.torque[in_motion]
        bad = ~np.isfinite(measured)
        if np.any(bad):
            sample, joint = np.argwhere(bad)[0]
            raise RecordingError(
                f"{part.names[int(part.run[0])]}: the torque of joint {joint + 1} is not finite at "
                f"sample {int(np.flatnonzero(in_motion)[sample])}. Repair the recording or cut "
                "that section out."
            )
        structure, values = self.model.structure, self.model.values
        out = [ScoreSums.from_torque(measured, _predict_part(structure, values, part)[in_motion])]
        if self.nominal is not None:
            nominal_model = TorqueModel(self.nominal, None, rotor_inertia=True, offset=False)
            nominal_values = np.concatenate([self.nominal.parameters, self.nominal.rotor_inertias])
            out.append(
                ScoreSums.from_torque(
                    measured, _predict_part(nominal_model, nominal_values, part)[in_motion]
                )
            )
            combined = values.copy()
            combined[structure.layout.links] = self.nominal.parameters
            out.append(
                ScoreSums.from_torque(measured, _predict_part(structure, combined, part)[in_motion])
            )
        return tuple(out)


def _predict_part(
    structure: TorqueModel, values: Float[Array, " p"], part: Samples
) -> Float[Array, "n j"]:
    return RowBuilder(structure, values)(part).predict(values)


# A file is an outlier if its RMSE exceeds the median of all files by this factor in most joints, or
# RMSE and nrmse do so in two joints.
_RMSE_RATIO, _TWO_JOINT_RATIO = 2.5, 3.0
# It is an error if RMSE exceeds the median by this factor on average, or nrmse is above this value
# and both exceed the median by the last factor.
_ERROR_RATIO, _ERROR_NRMSE, _ERROR_NRMSE_RATIO = 6.0, 0.5, 3.0


def outlier_file_findings(scores: Sequence[Score]) -> list[Finding]:
    """Finding for every file whose training error is far above that of the others."""
    if len(scores) < 3:
        return []
    errors = np.stack([score.rmse for score in scores])
    nrmses = np.nan_to_num(np.stack([score.nrmse for score in scores]))
    median_rmse, median_nrmse = (
        np.maximum(np.median(values, axis=0), 1e-12) for values in (errors, nrmses)
    )
    out = []
    for score, error, nrmse in zip(scores, errors, nrmses, strict=True):
        rmse_ratio: Array = error / median_rmse
        nrmse_ratio: Array = nrmse / median_nrmse
        # Fast motion increases RMSE, a standing joint increases nrmse: both must be large.
        joint_ratios = np.sort(np.minimum(rmse_ratio, nrmse_ratio))[::-1]
        mean_ratio = min(float(np.mean(rmse_ratio)), float(np.mean(nrmse_ratio)))
        is_error = np.mean(rmse_ratio) > _ERROR_RATIO or (
            float(np.mean(nrmse)) > _ERROR_NRMSE and mean_ratio > _ERROR_NRMSE_RATIO
        )
        if (
            is_error
            or np.median(rmse_ratio) > _RMSE_RATIO
            or joint_ratios[:2][-1] > _TWO_JOINT_RATIO
        ):
            worst = np.argsort(-rmse_ratio)[:2]
            joint_text = ", ".join(f"joint {j + 1} {rmse_ratio[j]:.1f} times" for j in worst)
            out.append(
                Finding(
                    "broken_file",
                    "error" if is_error else "warning",
                    f"{score.file} is not like the other {len(scores) - 1} recordings: its RMSE is "
                    f"larger than theirs ({joint_text}). Leave it out, or look at it with `taufit "
                    f"convert {score.file} --report`",
                    value=float(np.mean(rmse_ratio)),
                    file=score.file,
                )
            )
    return out
