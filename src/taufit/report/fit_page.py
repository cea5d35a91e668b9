"""Page about a fitted model: verdict first, then the details."""

from __future__ import annotations

from collections.abc import Sequence

from taufit.core.number_text import fixed
from taufit.model.fitted_model import FittedModel
from taufit.report.model_view import ModelView, ReportRun
from taufit.report.page import render_page
from taufit.report.sections import MODEL_SECTIONS
from taufit.validation import AcceptanceLimits
from taufit.workflow import IdentificationResult


def fit_page(
    result: IdentificationResult,
    *,
    commands: Sequence[tuple[str, str]] = (),
    model_file: str = "",
    limits: AcceptanceLimits | None = None,
) -> str:
    """Page of a fit result.

    Args:
        result: Fit result.
        commands: Purposes and commands to run next.
        model_file: Path of the model file, "" if it was not written.
        limits: Acceptance limits of the user, or None.
    """
    runs = [
        ReportRun(_file_name(score.file), samples, score)
        for score, samples in zip(result.holdout_scores, result.holdout_samples, strict=True)
    ]
    runs.append(ReportRun("training", result.samples, result.training_score, training=True))
    return view_page(
        ModelView.from_runs(
            result.model,
            runs,
            warnings=result.warnings,
            nominal=result.nominal_comparison,
            signs=result.signs,
            dropped=result.estimate.dropped,
            fitted_to=result.samples,
            grades=result.grades,
            commands=commands,
            model_file=model_file,
            limits=limits,
        )
    )


def model_page(
    model: FittedModel,
    runs: Sequence[ReportRun],
    *,
    commands: Sequence[tuple[str, str]] = (),
    model_file: str = "",
) -> str:
    """Page of a model with recordings; the first run is shown in detail."""
    return view_page(ModelView.from_runs(model, runs, commands=commands, model_file=model_file))


def view_page(view: ModelView) -> str:
    """Page of a model view, without empty sections."""
    model = view.model
    trained = [run.score.seconds for run in view.runs if run.training]
    tested = [run.score.seconds for run in view.runs if not run.training]
    facts = [f"{model.robot.joints} joints"]
    facts += [f"trained on {fixed(sum(trained), 0)} s"] if trained else []
    facts += [f"tested on {fixed(sum(tested), 0)} s"] if tested else []
    facts.append(f"low-pass {model.training.conditioning.cutoff_hz:g} Hz")
    subtitle = " · ".join(facts)
    all_sections = (section(view) for section in MODEL_SECTIONS)
    sections = [section for section in all_sections if section is not None]
    return render_page(f"Torque model of {model.robot.name}", subtitle, sections)


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
