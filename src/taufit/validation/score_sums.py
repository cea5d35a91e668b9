"""Scores over any number of recordings: sums per part that add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from taufit.core.arrays import Array, Float
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
    """Measured and predicted torque of some samples in motion, as sums per joint.

    Attributes:
        count: Samples.
        measured, expected: Means.
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
    def of(cls, measured: Float[Array, "n j"], expected: Float[Array, "n j"]) -> ScoreSums:
        n = len(measured)
        mean, aim = measured.sum(axis=0) / max(n, 1), expected.sum(axis=0) / max(n, 1)
        a, b, error = measured - mean, expected - aim, measured - expected
        return cls(
            n,
            mean,
            aim,
            np.sum(a * a, axis=0),
            np.sum(b * b, axis=0),
            np.sum(a * b, axis=0),
            np.sum(error * error, axis=0),
            np.abs(error).max(axis=0, initial=0.0),
        )

    def __add__(self, other: ScoreSums) -> ScoreSums:
        n = max(self.count + other.count, 1)
        a, b = other.measured - self.measured, other.expected - self.expected
        share = self.count * other.count / n
        return ScoreSums(
            self.count + other.count,
            self.measured + a * other.count / n,
            self.expected + b * other.count / n,
            self.measured_square + other.measured_square + a * a * share,
            self.expected_square + other.expected_square + b * b * share,
            self.product + other.product + a * b * share,
            self.error_square + other.error_square,
            np.maximum(self.largest, other.largest),
        )

    def score(self, file: str, rate_hz: float, cutoff_hz: float) -> Score:
        """The score they make."""
        n = max(self.count, 1)
        rmse = np.sqrt(self.error_square / n)
        spread = np.sqrt(self.measured_square / n)
        # Where the torque does not vary there is no such ratio.
        spread = np.where(spread > 1e-9 * np.maximum(np.abs(self.measured), 1e-300), spread, np.nan)
        size = np.sqrt(self.measured_square * self.expected_square)
        alike = np.where(size > 0.0, self.product / np.where(size > 0.0, size, 1.0), 0.0)
        return Score(
            file=file,
            samples=self.count,
            seconds=self.count / rate_hz,
            cutoff_hz=float(cutoff_hz),
            rmse=rmse,
            nrmse=rmse / spread,
            correlation=alike,
            bias=self.measured - self.expected,
            largest=self.largest,
            e_n=float(np.sqrt(self.error_square.sum()) / n),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TrainingScores:
    """How a fitted model predicts what it was fitted to.

    Attributes:
        all: Over everything.
        files: One score per run, by its file, in order; runs too short to score are left out.
        before: The nominal robot on the same samples, or None where it has no inertia.
    """

    all: Score
    files: tuple[Score, ...]
    before: NominalComparison | None


def training_scores(model: FittedModel, nominal: Robot, source: SampleSource) -> TrainingScores:
    """Scores of a model on its training data, in one pass over them."""
    known = bool(np.any(nominal.parameters))
    settled = reusable_model(model, source)
    parts = list(source.map_parts(_Judge(settled, nominal if known else None)))
    names = ", ".join(dict.fromkeys(source.names))
    totals = [reduce(lambda a, b: a + b, each) for each in zip(*parts, strict=True)]
    if totals[0].count < 10:
        raise RecordingError(
            f"{names}: there are {totals[0].count} samples in motion, too few to score a model."
        )
    found = [one.score(names, source.rate_hz, source.cutoff_hz) for one in totals]
    position = source.summary.extents["position"]
    named = sorted(zip(source.order, parts, strict=True), key=lambda pair: pair[0])
    files = tuple(
        own[0].score(source.names[k], source.rate_hz, source.cutoff_hz)
        for k, own in named
        if own[0].count >= 10
    )
    return TrainingScores(
        replace(found[0], findings=standing_findings(position.width)),
        files,
        NominalComparison(found[1], found[0], found[2]) if known else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    model: FittedModel
    nominal: Robot | None

    def __call__(self, part: Samples) -> tuple[ScoreSums, ...]:
        counted = part.in_motion
        measured = part.torque[counted]
        bad = ~np.isfinite(measured)
        if np.any(bad):
            sample, joint = np.argwhere(bad)[0]
            raise RecordingError(
                f"{part.names[int(part.run[0])]}: the torque of joint {joint + 1} is not finite at "
                f"sample {int(np.flatnonzero(counted)[sample])}. Repair the recording or cut that "
                "section out."
            )
        structure, values = self.model.structure, self.model.values
        out = [ScoreSums.of(measured, _predicted(structure, values, part)[counted])]
        if self.nominal is not None:
            bare = TorqueModel(self.nominal, None, rotor_inertia=True, offset=False)
            own = np.concatenate([self.nominal.parameters, self.nominal.rotor_inertias])
            out.append(ScoreSums.of(measured, _predicted(bare, own, part)[counted]))
            mixed = values.copy()
            mixed[structure.layout.links] = self.nominal.parameters
            out.append(ScoreSums.of(measured, _predicted(structure, mixed, part)[counted]))
        return tuple(out)


def _predicted(
    structure: TorqueModel, values: Float[Array, " p"], part: Samples
) -> Float[Array, "n j"]:
    return RowBuilder(structure, values)(part).predict(values)


# A file whose RMSE is this many times the others' in most joints, or whose RMSE and nrmse are in
# two joints, is not like them.
_TIMES, _TWO_JOINTS = 2.5, 3.0
# It is refused where either is this many times the others' on average, or, with this nrmse, which
# is no model at all, this many.
_MEAN_TIMES, _NOTHING, _NOTHING_TIMES = 6.0, 0.5, 3.0


def outlier_file_findings(scores: Sequence[Score]) -> list[Finding]:
    """A finding for every file whose training error is far above the others'."""
    if len(scores) < 3:
        return []
    errors = np.stack([one.rmse for one in scores])
    shares = np.nan_to_num(np.stack([one.nrmse for one in scores]))
    usual, usual_share = (np.maximum(np.median(each, axis=0), 1e-12) for each in (errors, shares))
    out = []
    for one, error, share in zip(scores, errors, shares, strict=True):
        times: Array = error / usual
        relative: Array = share / usual_share
        # A faster motion has larger torques, a joint that stands has hardly any: both must say so.
        both = np.sort(np.minimum(times, relative))[::-1]
        grave = min(float(np.mean(times)), float(np.mean(relative)))
        refused = np.mean(times) > _MEAN_TIMES or (
            float(np.mean(share)) > _NOTHING and grave > _NOTHING_TIMES
        )
        if refused or np.median(times) > _TIMES or both[:2][-1] > _TWO_JOINTS:
            worst = np.argsort(-times)[:2]
            listed = ", ".join(f"joint {j + 1} {times[j]:.1f} times" for j in worst)
            out.append(
                Finding(
                    "broken_file",
                    "error" if refused else "warning",
                    f"{one.file} is not like the other {len(scores) - 1} recordings: its RMSE is "
                    f"larger than theirs ({listed}). Leave it out, or look at it with `taufit "
                    f"convert {one.file} --report`",
                    value=float(np.mean(times)),
                )
            )
    return out
