"""A page about a fitted model: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from taufit.model.fitted_model import FittedModel
from taufit.report.model_view import ModelView, ReportRun
from taufit.report.page import page
from taufit.report.sections import MODEL_SECTIONS
from taufit.workflow import IdentificationResult


def fit_page(done: IdentificationResult) -> str:
    """The page of a fit that has just been made."""
    runs = [
        ReportRun(_short(score.file), samples, score)
        for score, samples in zip(done.holdout_scores, done.holdout_samples, strict=True)
    ]
    runs.append(ReportRun("training", done.samples, done.training_score, training=True))
    return view_page(
        ModelView.of(
            done.model,
            runs,
            warnings=done.warnings,
            nominal=done.nominal_comparison,
            signs=done.signs,
            dropped=done.estimate.dropped,
            fitted_to=done.samples,
            grades=done.grades,
        )
    )


def model_page(model: FittedModel, runs: Sequence[ReportRun]) -> str:
    """The page of a model and recordings; the first run is the one shown in full."""
    return view_page(ModelView.of(model, runs))


def view_page(view: ModelView) -> str:
    """Every section that has something to say."""
    model = view.model
    subtitle = (
        f"{model.robot.joints} joints, low-pass {model.training.conditioning.cutoff_hz:g} Hz, "
        f"friction {type(model.friction).__name__ if model.friction else 'none'}"
    )
    found = (section(view) for section in MODEL_SECTIONS)
    shown = [section for section in found if section is not None]
    return page(f"Torque model of {model.robot.name}", subtitle, shown)


def _short(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
