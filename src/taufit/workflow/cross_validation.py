"""Cross-validation over runs: each is predicted by a model fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence

from taufit.core.compute.engines import Engine, Processes, WorkerLostError
from taufit.core.errors import RecordingError, TaufitError
from taufit.estimators import Estimator
from taufit.model.score import Score
from taufit.model.torque_model import TorqueModel
from taufit.signals.sample_source import SamplesInMemory
from taufit.signals.samples import Samples
from taufit.validation.score import score
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.steps import FitState, solve


def cross_validate_structure(
    model: TorqueModel,
    runs: Sequence[Samples],
    estimator: Estimator | None = None,
    *,
    folds: int | None = None,
    engine: Engine | None = None,
) -> tuple[Score, ...]:
    """Scores of runs, each by a model fitted without it.

    Args:
        model: Structure of the torque model.
        runs: Runs with equal conditioning, one per recording.
        estimator: Estimator as for `fit`.
        folds: Number of groups of runs left out in turn; every run by default.
        engine: Engine that runs the fits; this process by default.
    """
    if len(runs) < 2:
        raise RecordingError(
            "cross-validation over runs needs two recordings or more. Give more recordings, or "
            "keep one out with --holdout."
        )
    count = len(runs) if folds is None else max(2, min(folds, len(runs)))
    groups = [[i for i in range(len(runs)) if i % count == fold] for fold in range(count)]
    results = (engine or Processes()).map(
        _score_fold, ((model, tuple(runs), estimator, tuple(group)) for group in groups)
    )
    scores: dict[int, Score] = {}
    for group, result in zip(groups, results, strict=True):
        if isinstance(result, WorkerLostError):
            raise TaufitError(
                f"a fold of the cross-validation could not be fitted: {result.reason}"
            )
        scores |= dict(zip(group, result, strict=True))
    return tuple(scores[i] for i in range(len(runs)))


def _score_fold(
    model: TorqueModel,
    runs: Sequence[Samples],
    estimator: Estimator | None,
    left_out: Sequence[int],
) -> tuple[Score, ...]:
    """Scores of some runs by a fit to the others."""
    training = Samples.concatenate([run for i, run in enumerate(runs) if i not in left_out])
    state = FitState(model.robot, model, SamplesInMemory(training))
    fitted = solve(FitRequest(estimator=estimator), state).model
    return tuple(score(fitted, runs[i]) for i in left_out)
