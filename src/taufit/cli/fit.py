"""`taufit fit`: fit of a dynamic model to recordings."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    HTML_ENDINGS,
    HTML_REMEDY,
    AcceptanceOptions,
    RecordingOptions,
    RobotName,
    RobotOptions,
    require_ending,
)
from taufit.cli.options.fit import (
    MANY_FILES,
    HoldoutOptions,
    ModelOptions,
    ResultOptions,
)

# Approximate number of passes over the files.
_PASSES = 7

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taufit.cli.parts.corrected_map import CorrectedMap
    from taufit.core.compute.cache import Cache
    from taufit.recording import Finding
    from taufit.validation import AcceptanceLimits
    from taufit.workflow import IdentificationResult


def command(
    robot: RobotName,
    recording: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings, folders or quoted patterns, fitted together.",
            metavar="RECORDING|FOLDER|PATTERN",
        ),
    ],
    source: RecordingOptions,
    holdout_options: HoldoutOptions,
    arm: RobotOptions,
    model: ModelOptions,
    acceptance: AcceptanceOptions,
    result: ResultOptions,
) -> None:
    """Fit a dynamic model to recorded motion and torque.

    By default the model is physically consistent, friction terms are selected from the data, and
    parameters that the motion does not identify stay at the nominal robot's values. Acceptance
    limits (--max-..., --min-...) are tested on the hold-out data if there are any, else on the
    training data.

    Next: `taufit check MODEL RECORDING` tests it on further recordings.
    """
    from time import process_time

    from taufit.cli.parts.repeated_fit import fit_arguments, require_same_inputs
    from taufit.model.model_file import write_model
    from taufit.recording.files import find_recordings, require_unseen_holdout
    from taufit.validation import verdict
    from taufit.workflow import identify
    from taufit.workflow.file_cache import mounting_from_recordings
    from taufit.workflow.inputs import holdout_files, recording_files

    started = process_time()
    require_ending(
        result.output, (".json",), "--output", "`taufit export` writes models in other formats."
    )
    require_ending(result.report, HTML_ENDINGS, "--report", HTML_REMEDY)
    request = model.request()
    limits = acceptance.limits()
    selected_files = find_recordings(
        recording, allow_repeats=result.allow_repeats, column_map=source.map
    )
    paths = selected_files.paths
    if not result.allow_repeats:
        require_unseen_holdout(paths, holdout_options.files)
    cache = result.open_cache(selected_files.folder)

    with progress("fit") as bar, cache or nullcontext():
        files = recording_files(
            paths, source, holdout_options.share, findings=selected_files.findings
        )
        holdout = holdout_files(
            files,
            holdout_options.files,
            replace(source, map=holdout_options.holdout_map or source.map),
        )
        task = bar.add_task("fitting", total=_PASSES * len(files))
        mounting = None if arm.mounting else mounting_from_recordings(files, cache)
        arm = arm.select_part(robot, paths, source.topic)
        nominal = arm.read(robot, recorded_mounting=mounting)
        inputs = _provenance(
            cache,
            recordings=paths,
            holdout=holdout_options.files,
            holdout_share=holdout_options.share or None,
            map=source.map,
            robot_file=Path(robot) if Path(robot).exists() else robot,
            **({} if model.friction_file is None else {"friction_file": model.friction_file}),
        )
        if result.again is not None:
            require_same_inputs(result.again, inputs)
        request = replace(
            request,
            sign_hints=model.hints(nominal.joint_names),
            ignore_contradictions=result.ignore_contradictions,
            allow_standing_joints=True,
            allow_repeats=result.allow_repeats,
            provenance={**inputs, "arguments": list(fit_arguments.get())},
            cache=cache,
            processes=_processes(result.processes, len(files)),
            callback=lambda: bar.advance(task),
        )
        with _report_contradiction(
            result,
            lambda findings: _corrected_map(findings, paths, source, robot, result.write_map),
        ):
            identified = identify(nominal, files, holdout=holdout, request=request)
        bar.update(task, completed=_PASSES * len(files), description="writing")
        decision = verdict(
            identified.holdout_scores or (identified.training_score,), limits, identified.grades
        )
        corrected = _corrected_map(identified.findings, paths, source, robot, result.write_map)
        is_refused = not decision.passed and not result.ignore_contradictions
        if not is_refused:
            write_model(identified.model, result.output)
            if result.report is not None:
                from taufit.cli.parts.report_commands import fit_commands

                next_commands = fit_commands(
                    fit_arguments.get(),
                    identified.model,
                    result.output,
                    paths,
                    source,
                    is_tested=bool(identified.holdout_scores),
                )
                _report(identified, result, next_commands, limits)

    if result.as_json:
        data = identified.to_dict()
        data |= decision.to_dict()
        data["model"] = None if is_refused else str(result.output)
        data["remedy"] = None if corrected is None else corrected.to_dict()
        data["cpu_seconds"] = process_time() - started
        print_json(data)
    else:
        from taufit.cli.parts.fit_display import show_fit

        show_fit(identified, decision, result.output, is_refused)
        if corrected is not None:
            print(f"Remedy: fit again with {corrected.description}.{corrected.next_line}")
    if is_refused:
        from taufit.core.errors import InfeasibleError

        failure = "does not reach the limits" if limits.has_limits else "is poor"
        raise InfeasibleError(
            f"the model {failure}, so nothing was written (--ignore-contradictions writes it): "
            f"{'; '.join(decision.reasons)}."
        )


def _processes(requested: int | None, files: int) -> int | None:
    """Requested number of processes; one for few files."""
    return requested if requested is not None or files >= MANY_FILES else 1


def _corrected_map(
    findings: Sequence[Finding],
    paths: Sequence[Path],
    source: RecordingOptions,
    robot: str,
    output: Path | None,
) -> CorrectedMap | None:
    """Remedy of findings, with the corrected column map written; None without a remedy."""
    if not any(finding.remedy is not None for finding in findings):
        return None
    from taufit.cli.parts.corrected_map import write_corrected_map

    return write_corrected_map(findings, paths, source, robot, output)


@contextmanager
def _report_contradiction(
    result: ResultOptions, remedy: Callable[[Sequence[Finding]], CorrectedMap | None]
) -> Iterator[None]:
    """Add the remedy to a contradiction error, and print its findings as JSON if requested."""
    from taufit.cli.parts.error_output import command_error
    from taufit.diagnosis import ContradictionError

    try:
        yield
    except ContradictionError as error:
        corrected = remedy(error.findings)
        if result.apply_remedy and corrected is not None and corrected.arguments is not None:
            corrected.fit_again(error, result)
        if result.as_json:
            findings = [finding.to_dict() for finding in error.findings]
            page: dict[str, Any] = {"verdict": "REFUSED", "model": None, "findings": findings}
            page["remedy"] = None if corrected is None else corrected.to_dict()
            print_json({**page, **command_error(error).to_dict()})
        if corrected is not None:
            text = f"Remedy: fit again with {corrected.description}.{corrected.next_line}"
            error.args = (f"{error}\n{text}",)
        raise


def _provenance(
    cache: Cache | None, **inputs: Path | Sequence[Path] | str | float | None
) -> dict[str, Any]:
    """Every input file with its hash."""
    from taufit.core.compute.cache.content import content_hash

    def describe(source: Path | Sequence[Path] | str | float | None) -> Any:
        if isinstance(source, Path):
            content = content_hash(source) if cache is None else cache.content(source)
            return {"file": source.name, "sha256": content}
        if source is None or isinstance(source, (str, float)):
            return source
        return [describe(path) for path in source]

    return {name: describe(source) for name, source in inputs.items()}


def _report(
    identified: IdentificationResult,
    result: ResultOptions,
    commands: list[tuple[str, str]],
    limits: AcceptanceLimits,
) -> None:
    from taufit.core.files import write_text
    from taufit.report import fit_page

    assert result.report is not None
    page = fit_page(identified, commands=commands, model_file=str(result.output), limits=limits)
    write_text(result.report, page)
