"""`taufit check`: a fitted model on recordings it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress, scored, short_name
from taufit.cli.options import (
    AcceptanceOptions,
    AllowRepeats,
    Cutoff,
    Json,
    Model,
    RecordingOptions,
    Report,
    cutoff_given,
    usage_error,
)

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel
    from taufit.report.tracking_page import TrackedRun
    from taufit.signals import Samples
    from taufit.validation import Score, Verdict
    from taufit.workflow.check import CheckResult


def command(  # noqa: PLR0913 - one parameter per option
    model: Model,
    recording: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings of the same robot, or folders of them.", metavar="RECORDING|FOLDER"
        ),
    ],
    source: RecordingOptions,
    required: AcceptanceOptions,
    cutoff_hz: Cutoff = None,
    track: Annotated[
        bool,
        typer.Option(
            "--track",
            help="Follow Coulomb friction, viscous friction and offset slowly, from what was "
            "measured before, and say what that is worth.",
        ),
    ] = False,
    report: Report = None,
    allow_repeats: AllowRepeats = False,
    as_json: Json = False,
) -> None:
    """Test a fitted model on recordings it has not seen.

    Both sides pass the same low-pass. Recordings in amperes use the gains found with the training
    data. The exit code is 1 where the model fails: where it breaks a limit of yours, or is poor.

    Next: `taufit export MODEL --format urdf -o FILE` puts the model to use.
    """
    from time import process_time

    from taufit.model.model_file import read_model
    from taufit.recording.files import find_recordings
    from taufit.validation import grade, residual_spectrum, verdict
    from taufit.workflow.check import check

    started = process_time()
    cutoff_given(cutoff_hz)
    limits = required.limits()
    if report is not None and not track:
        usage_error("--report", "the page shows friction as it is followed: add --track.")
    fitted = read_model(model)
    paths, _, repeats = find_recordings(recording, allow_repeats=allow_repeats)
    followed: list[TrackedRun] = []
    scores: list[Score] = []
    checked: list[CheckResult] = []
    files: list[dict[str, Any]] = []
    with progress("check") as bar:
        task = bar.add_task("checking", total=len(paths))
        for path in paths:
            recordings = source.read(path)
            done = check(fitted, recordings, cutoff_hz=cutoff_hz, name=str(path))
            one, gravity = done.score, done.gravity
            spectrum = residual_spectrum(fitted, done.samples)
            if track:
                followed.append(_followed(fitted, done.samples, path))
            scores.append(one)
            checked.append(done)
            files.append(
                {
                    **one.to_dict(),
                    "tracked": followed[-1].score.to_dict() if track else None,
                    "mounting": None if gravity is None else gravity.to_dict(),
                    "residual_median_hz": None
                    if spectrum is None
                    else spectrum.median_frequency.tolist(),
                    "findings": [finding.to_dict() for finding in done.findings],
                    "warnings": list(
                        dict.fromkeys([*(str(f) for f in done.findings), *one.findings])
                    ),
                }
            )
            bar.advance(task)
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.tracking_page import tracking_page

        write_text(report, tracking_page(fitted, followed))
    found = [*repeats, *(finding for one in checked for finding in one.findings)]
    grades = grade(
        scores,
        [one.floor for one in checked],
        on_holdout=True,
        training=fitted.training.score,
        findings=found,
    )
    judged = verdict(scores, limits, grades)
    trained = fitted.training.score
    if as_json:
        print_json(
            {
                "model": str(model),
                "robot": fitted.robot.name,
                "files": files,
                "mean_nrmse": sum(s.mean_nrmse for s in scores) / len(scores),
                "mean_inside": sum(s.mean_inside or 0.0 for s in scores) / len(scores),
                "training_mean_nrmse": None if trained is None else trained.mean_nrmse,
                **judged.to_dict(),
                **grades.to_dict(),
                "findings": [finding.to_dict() for finding in found],
                "warnings": list(fitted.training.warnings),
                "cpu_seconds": process_time() - started,
            }
        )
    else:
        _show(fitted, scores, files, judged, model)
        _show_followed(followed, report)
    if not judged.passed:
        from taufit.core.errors import InfeasibleError

        why = "the model breaks the limits" if limits.has_limits else "the model fails"
        raise InfeasibleError(f"{why}: {'; '.join(judged.reasons)}.")


def _followed(fitted: FittedModel, samples: Samples, path: Path) -> TrackedRun:
    """One recording with its friction followed."""
    from taufit.health.tracker import track, tracked_score
    from taufit.model.predict import predicted_torque
    from taufit.report.tracking_page import TrackedRun

    predicted = predicted_torque(fitted, samples)
    course = track(fitted, samples, predicted=predicted)
    return TrackedRun(path.name, samples, course, tracked_score(samples, predicted, course))


def _show_followed(followed: list[TrackedRun], report: Path | None) -> None:
    for run in followed:
        own = run.score
        print(
            f"{run.name}: friction followed, mean nrmse {own.mean_nrmse:.4f}; second half "
            f"{own.second_half_before:.4f} -> {own.second_half:.4f}"
        )
    if report is not None:
        print(f"Written: {report}")


def _show(
    fitted: FittedModel,
    scores: list[Score],
    files: list[dict[str, Any]],
    judged: Verdict,
    model: Path,
) -> None:
    from taufit.cli.common import headline, joint_table, plain_console
    from taufit.validation.score_breakdown import stiction_lines

    console = plain_console()
    console.print(headline(judged.label, f"  {'; '.join(judged.reasons)}"))
    training = fitted.training.score
    title = f"{fitted.robot.name}: nrmse per joint, low-pass {scores[0].cutoff_hz:g} Hz"
    table = joint_table(title, fitted.robot.joints)
    if training is not None:
        cells = [*map(scored, training.nrmse), scored(training.mean_nrmse)]
        table.add_row("training", *cells)
    for one in scores:
        table.add_row(short_name(one.file), *map(scored, one.nrmse), scored(one.mean_nrmse))
    table.add_section()
    if len(scores) > 1:
        table.add_row("RMSE [N m]")
    for one in scores:
        label = "RMSE [N m]" if len(scores) == 1 else f" {short_name(one.file)}"
        table.add_row(label, *(f"{x:.2f}" for x in one.rmse), "")
    console.print(table)
    for one in scores:
        held = one.mean_inside
        share = "" if held is None else f"; {100 * held:.0f} % inside the 95 % interval"
        console.print(
            f"{short_name(one.file)}: {one.seconds:.1f} s of motion, e_N {one.e_n:.4g} N m with "
            f"N = {one.samples}{share}",
        )
        for line in stiction_lines(fitted, one):
            console.print(f"  {line}")
    for entry in files:
        for text in entry["warnings"]:
            # Most findings of a recording name its file themselves.
            where = "" if Path(entry["file"]).name in text else f"{short_name(entry['file'])}: "
            console.print(f"warning: {where}{text}")
    if judged.passed:
        following = f"`taufit export {model} --format urdf -o FILE` puts the model to use."
    else:
        following = (
            f"`taufit report {model} RECORDING` shows where it fails. An arm that carried "
            f"something is for `taufit payload {model} RECORDING`."
        )
    console.print(f"Next: {following}")
