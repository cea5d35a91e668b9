"""Scores of models on recordings as a table: cross-validation and comparison of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.core.threads import one_blas_thread
from taufit.model.fitted_model import FittedModel
from taufit.model.model_file import read_model
from taufit.model.score import Score
from taufit.recording import Recording
from taufit.robot import Robot
from taufit.signals import Samples
from taufit.validation.score import score, short_name
from taufit.workflow.fit_request import FitRequest, apply_choices
from taufit.workflow.identify import identify
from taufit.workflow.inputs import File, Recordings, separate_recordings
from taufit.workflow.training_data import condition_for_model

if TYPE_CHECKING:
    from taufit.workflow.fit_choices import FitChoices


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Nrmse of models on recordings.

    Attributes:
        models: Names of the models, one per column.
        recordings: Names of the recordings, one per row.
        nrmse: Nrmse by recording, model and joint.
    """

    models: tuple[str, ...]
    recordings: tuple[str, ...]
    nrmse: Float[Array, "r m j"]

    @property
    def mean_nrmse(self) -> Float[Array, "r m"]:
        """Mean over the joints."""
        return np.asarray(np.nanmean(self.nrmse, axis=2))

    def __repr__(self) -> str:
        lines = self._cells()
        widths = [max(10, *map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if k else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in self._cells())
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _cells(self) -> list[list[str]]:
        """Lines of texts: names of the models, then each recording with its mean nrmse."""
        rows = zip(self.recordings, self.mean_nrmse, strict=True)
        head = ["mean nrmse", *self.models]
        return [head, *([name, *(f"{x:.3f}" for x in values)] for name, values in rows)]


def cross_validate(
    robot: Robot | File,
    recordings: Recordings,
    *,
    request: FitRequest | None = None,
    **choices: Unpack[FitChoices],
) -> ScoreTable:
    """Score each recording by a model identified from the others.

    Args:
        robot: Robot, bundled name or file.
        recordings: Two or more recordings, files or frames, e.g. one per day.
        request: Settings of `identify` as one object; single keywords replace its values.
        choices: Settings of `identify`.

    Example:
        >>> import taufit
        >>> taufit.cross_validate("ur3e", ["run.parquet", "other_day.parquet"], friction="linear")
        mean nrmse ...
    """
    settings = apply_choices(request, choices, "cross_validate")
    parts = separate_recordings(recordings, settings.reader)
    if len(parts) < 2:
        raise RecordingError(
            f"cross-validation needs two recordings or more, got {len(parts)}. Give more files, or "
            'keep a part out with holdout="30%".'
        )
    rows = []
    for name, runs in parts.items():
        others = [run for other, group in parts.items() if other != name for run in group]
        result = identify(robot, others, holdout={name: runs}, request=settings)
        rows.append(result.holdout_scores[0].measured_nrmse)
    nrmse = np.stack(rows)[:, None]
    return ScoreTable(("left out",), tuple(map(short_name, parts)), nrmse)


def compare(
    models: Mapping[str, FittedModel | File] | Sequence[FittedModel | File],
    recordings: Recordings,
    *,
    request: FitRequest | None = None,
    **choices: Unpack[FitChoices],
) -> ScoreTable:
    """Score models on recordings that none of them was fitted to.

    Args:
        models: Fitted models or model files, by name or in order.
        recordings: Recordings, files or frames of the same robot.
        request: Settings of reading (`column_map`, `torque_kind`) as one object.
        choices: The same as single keywords.

    Example:
        >>> import taufit
        >>> taufit.compare({"first": "model.json"}, "other_day.parquet")
        mean nrmse ...
    """
    settings = apply_choices(request, choices, "compare")
    if not isinstance(models, Mapping):
        models = {f"model {k}": model for k, model in enumerate(models, 1)}
    fitted = {
        name: model if isinstance(model, FittedModel) else read_model(model)
        for name, model in models.items()
    }
    parts = separate_recordings(recordings, settings.reader)
    nrmse = [
        [_nrmse(model, runs, name) for model in fitted.values()] for name, runs in parts.items()
    ]
    return ScoreTable(tuple(fitted), tuple(map(short_name, parts)), np.array(nrmse))


@one_blas_thread
def check(
    model: FittedModel | File,
    recordings: Recordings | Samples | Sequence[Samples],
    *,
    names: Sequence[str] | None = None,
    request: FitRequest | None = None,
    **choices: Unpack[FitChoices],
) -> tuple[Score, ...]:
    """Scores of a fitted model on hold-out recordings or samples, one per recording.

    Args:
        model: Fitted model or model file.
        recordings: Recordings, files or frames of the same robot, conditioned like the training
            data; or conditioned samples.
        names: Names for messages, one per recording.
        request: Settings of reading (`column_map`, `torque_kind`) as one object.
        choices: The same as single keywords.

    Example:
        >>> import taufit
        >>> (score,) = taufit.check("model.json", "other_day.parquet")
        >>> score.nrmse.shape, score.mean_nrmse < 0.2
        ((6,), True)
    """
    settings = apply_choices(request, choices, "check")
    fitted = model if isinstance(model, FittedModel) else read_model(model)
    items = [recordings] if isinstance(recordings, Samples) else recordings
    if isinstance(items, Sequence) and items and all(isinstance(item, Samples) for item in items):
        labels: Sequence[str | None] = names if names is not None else [None] * len(items)
        return tuple(
            score(fitted, item, file=label) for label, item in zip(labels, items, strict=True)
        )
    parts = separate_recordings(items, settings.reader)
    return tuple(
        score(fitted, condition_for_model(fitted, runs, name=label), file=label)
        for label, runs in zip(names if names is not None else parts, parts.values(), strict=True)
    )


def _nrmse(model: FittedModel, runs: Sequence[Recording], name: str) -> Any:
    return score(model, condition_for_model(model, runs, name=name), file=name).measured_nrmse
