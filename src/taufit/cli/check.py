"""`taufit check`: test of a fitted model on recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import format_nrmse, print_json, progress, recording_label
from taufit.cli.options import (
    AcceptanceOptions,
    AllowRepeats,
    Cutoff,
    Json,
    LoadedModel,
    RecordingOptions,
    require_cutoff,
    usage_error,
)
from taufit.cli.parts.next_step import complete_commands, export_file, next_step, quote_command

if TYPE_CHECKING:
    from taufit.health.tracker import FrictionDrift
    from taufit.model.fitted_model import FittedModel
    from taufit.recording import Finding
    from taufit.report.tracking_page import TrackedRun
    from taufit.signals import Samples
    from taufit.validation import Grades, RecordingEvidence, Score, Verdict


def command(  # noqa: PLR0913 - one parameter per option
    arm: LoadedModel,
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
            help="Track Coulomb friction, viscous friction and offset from past samples, from "
            "recording to recording, and report the improvement.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="HTML report of --track to write.", metavar="FILE.html"),
    ] = None,
    allow_repeats: AllowRepeats = False,
    as_json: Json = False,
) -> None:
    """Test a fitted model on further recordings.

    Model and measurement pass the same low-pass. Recordings in amperes use the drive gains of the
    training data. The exit code is 1 if the model exceeds a given limit or is poor.

    Next: `taufit export MODEL --format urdf -o FILE` writes the model for other tools.
    """
    from time import process_time

    from taufit.cli.parts.servo_verbs import check_servo
    from taufit.cli.parts.training_files import is_training_file, training_file_finding
    from taufit.recording.files import find_recordings
    from taufit.servo.model import is_servo_file
    from taufit.validation import grade, residual_spectrum, verdict
    from taufit.validation.grades import unmeasured_findings
    from taufit.workflow.check import check

    started = process_time()
    if is_servo_file(arm.model):
        check_servo(arm.model, recording, source, as_json)
        return
    require_cutoff(cutoff_hz)
    limits = required.limits()
    if report is not None and not track:
        page = complete_commands(quote_command("report", "MODEL", "RECORDING", "-o", report))
        usage_error("--report", f"the page is of tracked friction: add --track. Or use {page}.")
    fitted = arm.read(with_drift=not track)
    paths, _, repeats = find_recordings(
        recording, allow_repeats=allow_repeats, column_map=source.map
    )
    drift_of_runs = _CarriedDrift(arm.drift) if track else None
    tracked: list[TrackedRun] = []
    scores: list[Score] = []
    facts: list[RecordingEvidence] = []
    file_findings: list[Finding] = []
    files: list[dict[str, Any]] = []
    with progress("check") as bar:
        task = bar.add_task("checking", total=len(paths))
        for path in paths:
            recordings = source.read(path)
            result = check(fitted, recordings, cutoff_hz=cutoff_hz, name=str(path))
            score, gravity = result.score, result.gravity
            spectrum = residual_spectrum(fitted, result.samples)
            if drift_of_runs is not None:
                tracked.append(
                    drift_of_runs.track(fitted, result.samples, path, is_plotted=bool(report))
                )
            scores.append(score)
            facts.append(result.evidence)
            file_findings += result.findings
            files.append(
                {
                    **score.to_dict(),
                    "tracked": tracked[-1].score.to_dict() if track else None,
                    "mounting": None if gravity is None else gravity.to_dict(),
                    "residual_median_hz": None
                    if spectrum is None
                    else spectrum.median_frequency.tolist(),
                    "findings": [finding.to_dict() for finding in result.findings],
                    "warnings": list(
                        dict.fromkeys([*(str(f) for f in result.findings), *score.findings])
                    ),
                }
            )
            bar.advance(task)
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.tracking_page import tracking_page

        write_text(report, tracking_page(fitted, tracked))
    if drift_of_runs is not None:
        drift_of_runs.write()
        file_findings += drift_of_runs.findings
    training_paths = [path for path in paths if is_training_file(fitted, path)]
    findings = [*repeats, *map(training_file_finding, training_paths), *file_findings]
    findings += unmeasured_findings(scores)
    trained = fitted.training.score
    on_holdout = len(training_paths) < len(paths)
    grades = grade(scores, facts, on_holdout=on_holdout, findings=findings, training=trained)
    decision = verdict(scores, limits, grades)
    if as_json:
        print_json(
            {
                "model": str(arm.model),
                "robot": fitted.robot.name,
                "files": files,
                "mean_nrmse": grades.unexplained,
                "mean_inside": sum(s.mean_inside or 0.0 for s in scores) / len(scores),
                "training_mean_nrmse": None if trained is None else trained.mean_nrmse,
                **decision.to_dict(),
                **grades.to_dict(),
                "findings": [finding.to_dict() for finding in findings],
                "warnings": list(fitted.training.warnings),
                "cpu_seconds": process_time() - started,
            }
        )
    else:
        _show(fitted, scores, files, decision, grades, arm.model)
        _show_tracking(tracked, report)
    if not decision.passed:
        from taufit.core.errors import InfeasibleError

        reason = "the model breaks the limits" if limits.has_limits else "the model fails"
        raise InfeasibleError(f"{reason}: {'; '.join(decision.reasons)}.")


class _CarriedDrift:
    """Friction tracked over recordings in the order given, kept in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._drift: FrictionDrift | None = None
        self._recordings: tuple[str, ...] = ()
        self.findings: list[Finding] = []
        if path is not None and path.exists():
            from taufit.health.drift import read_drift

            self._drift, self._recordings = read_drift(path)

    def track(
        self, fitted: FittedModel, samples: Samples, path: Path, *, is_plotted: bool
    ) -> TrackedRun:
        """Track the friction of one recording, from the end of the one before."""
        from taufit.core.compute.cache.content import content_hash
        from taufit.health.tracker import interval_coverage, score_tracking, track
        from taufit.model.predict import predicted_torque
        from taufit.recording.finding import Finding
        from taufit.report.tracking_page import TrackedRun

        predicted = predicted_torque(fitted, samples)
        digest = content_hash(path) if self._path is not None else ""
        is_repeated = bool(digest) and digest in self._recordings
        course = track(
            fitted, samples, predicted=predicted, drift=None if is_repeated else self._drift
        )
        if is_repeated:
            self.findings.append(
                Finding(
                    "drift",
                    "warning",
                    f"friction was tracked over {path.name} before: {self._path} stays as it is, "
                    "and this recording begins with the friction of the model",
                )
            )
        else:
            self._drift = course.drift
            self._recordings += (digest,)
        score = score_tracking(samples, predicted, course)
        score = replace(score, inside=interval_coverage(fitted, samples, course))
        return TrackedRun(path.name, samples if is_plotted else samples.head(), course, score)

    def write(self) -> None:
        """Keep the friction at the end of the last recording."""
        if self._path is not None and self._drift is not None:
            from taufit.health.drift import write_drift

            write_drift(self._drift, self._path, recordings=self._recordings)


def _show_tracking(tracked: list[TrackedRun], report: Path | None) -> None:
    for run in tracked:
        score = run.score
        inside = score.mean_inside
        coverage = "" if inside is None else f"; {100 * inside:.0f} % inside the 95 % interval"
        print(
            f"{run.name}: friction followed, mean nrmse {score.mean_nrmse:.4f}; second half "
            f"{score.second_half_before:.4f} -> {score.second_half:.4f}{coverage}"
        )
    if report is not None:
        print(f"Written: {report}")


def _show(
    fitted: FittedModel,
    scores: list[Score],
    files: list[dict[str, Any]],
    decision: Verdict,
    grades: Grades,
    model: Path,
) -> None:
    from taufit.cli.common import headline, joint_table, plain_console
    from taufit.core.number_text import count_text, percent
    from taufit.validation.score_breakdown import stiction_lines

    console = plain_console()
    console.print(
        headline(
            f"{decision.label} ({grades.overall})",
            f"  {fitted.robot.name}: {percent(grades.unexplained)} of the torque is left "
            f"unexplained on {count_text(len(scores), 'recording')}.",
        )
    )
    for text in dict.fromkeys((*decision.reasons, *grades.reasons, grades.headroom_text)):
        if text:
            console.print(f"  {text}")
    training = fitted.training.score
    title = f"{fitted.robot.name}: nrmse per joint, low-pass {scores[0].cutoff_hz:g} Hz"
    table = joint_table(title, fitted.robot.joints)
    if training is not None:
        cells = [*map(format_nrmse, training.measured_nrmse), format_nrmse(training.mean_nrmse)]
        table.add_row("training", *cells)
    for score in scores:
        table.add_row(
            recording_label(score.file),
            *map(format_nrmse, score.measured_nrmse),
            format_nrmse(score.mean_nrmse),
        )
    table.add_section()
    if len(scores) > 1:
        table.add_row("RMSE [N m]")
    for score in scores:
        label = "RMSE [N m]" if len(scores) == 1 else f" {recording_label(score.file)}"
        table.add_row(label, *(f"{x:.2f}" for x in score.rmse), "")
    console.print(table)
    for score in scores:
        coverage = score.mean_inside
        coverage_text = (
            "" if coverage is None else f"; {100 * coverage:.0f} % inside the 95 % interval"
        )
        console.print(
            f"{recording_label(score.file)}: {score.seconds:.1f} s of motion, e_N "
            f"{score.e_n:.4g} N m with "
            f"N = {score.samples}{coverage_text}",
        )
        for line in stiction_lines(fitted, score):
            console.print(f"  {line}")
    for entry in files:
        for text in entry["warnings"]:
            # Most findings name the file themselves.
            file_label = (
                "" if Path(entry["file"]).name in text else f"{recording_label(entry['file'])}: "
            )
            console.print(f"warning: {file_label}{text}")
    if decision.passed:
        file = export_file(fitted.robot)
        text = next_step("export", model, "-o", file, purpose="puts the model to use.")
    else:
        recordings = [entry["file"] for entry in files]
        text = next_step(
            "report", model, *recordings, "-o", "report.html", purpose="shows where it fails."
        )
    console.print(text, soft_wrap=True)
