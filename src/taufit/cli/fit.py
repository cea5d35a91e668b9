"""`taufit fit`: a robot and recordings in, a model and its scores out."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress, scored, short_name
from taufit.cli.options import (
    AcceptanceOptions,
    RecordingOptions,
    RobotName,
    RobotOptions,
)
from taufit.cli.options.fit import (
    MANY_FILES,
    HoldoutOptions,
    ModelOptions,
    ResultOptions,
)
from taufit.core.parameters import parse_name

# Files are gone through about so often.
_PASSES = 7

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

    from taufit.cli.parts.corrected_map import CorrectedMap
    from taufit.core.compute.cache import Cache
    from taufit.recording import Finding
    from taufit.validation import Verdict
    from taufit.workflow import IdentificationResult


def command(
    robot: RobotName,
    recording: Annotated[
        list[Path],
        typer.Argument(
            help="What was measured; several are fitted together. A folder or a pattern in quotes "
            "stands for all recordings in it.",
            metavar="RECORDING|FOLDER|PATTERN",
        ),
    ],
    source: RecordingOptions,
    kept_out: HoldoutOptions,
    arm: RobotOptions,
    model: ModelOptions,
    required: AcceptanceOptions,
    result: ResultOptions,
) -> None:
    """Fit a robot's dynamic model to recorded motion and torque.

    With the defaults the model is physically possible, its friction terms are those the recording
    supports, and its links lean on the nominal robot only where the motion shows nothing. Limits
    (--max-..., --min-...) are tested on the hold-outs if there are any, else on the training data.

    Next: `taufit check MODEL RECORDING` tests it on recordings it has not seen.
    """
    from time import process_time

    from taufit.cli.parts.corrected_map import write_corrected_map
    from taufit.model.model_file import write_model
    from taufit.recording.files import find_recordings
    from taufit.validation import verdict
    from taufit.workflow import identify
    from taufit.workflow.file_cache import recorded_mounting
    from taufit.workflow.inputs import holdout_files, recording_files

    started = process_time()
    request = model.request()
    limits = required.limits()
    found = find_recordings(recording, allow_repeats=result.allow_repeats)
    paths = found.paths
    cache = result.kept_in(found.folder)

    with progress("fit") as bar, cache or nullcontext():
        files = recording_files(paths, source, kept_out.share, findings=found.findings)
        holdout = holdout_files(
            files, kept_out.files, replace(source, map=kept_out.holdout_map or source.map)
        )
        task = bar.add_task("fitting", total=_PASSES * len(files))
        recorded = None if arm.mounting else recorded_mounting(files, cache)
        nominal = arm.read(robot, recorded_mounting=recorded)
        request = replace(
            request,
            sign_hints=model.hints(nominal.joint_names),
            ignore_contradictions=result.force,
            allow_repeats=result.allow_repeats,
            provenance=_provenance(
                cache,
                recordings=paths,
                holdout=kept_out.files,
                map=source.map,
                robot_file=Path(robot) if Path(robot).exists() else robot,
                **({} if model.friction_file is None else {"friction_file": model.friction_file}),
            ),
            cache=cache,
            processes=_processes(result.processes, len(files)),
            callback=lambda: bar.advance(task),
        )
        with _refusals(
            result, lambda found: write_corrected_map(found, paths, source, robot, result.mend)
        ):
            done = identify(nominal, files, holdout=holdout, request=request)
        bar.update(task, completed=_PASSES * len(files), description="writing")
        judged = verdict(done.holdout_scores or (done.training_score,), limits, done.grades)
        mended = write_corrected_map(done.findings, paths, source, robot, result.mend)
        refused = not judged.passed and not result.force
        if not refused:
            write_model(done.model, result.output)
            if result.report is not None:
                _report(done, result.report)

    if result.as_json:
        data = done.to_dict()
        data |= judged.to_dict()
        data["model"] = None if refused else str(result.output)
        data["remedy"] = None if mended is None else mended.to_dict()
        data["cpu_seconds"] = process_time() - started
        print_json(data)
    else:
        _show(done, judged, result.output, refused)
        if mended is not None:
            print(f"Remedy: fit again with {mended.words}.")
    if refused:
        from taufit.core.errors import InfeasibleError

        missed = "does not reach the limits" if limits.has_limits else "is poor"
        raise InfeasibleError(
            f"the model {missed}, so nothing was written (--force writes it): "
            f"{'; '.join(judged.reasons)}."
        )


def _processes(asked: int | None, files: int) -> int | None:
    """As asked for; few files are not worth starting processes for."""
    return asked if asked is not None or files >= MANY_FILES else 1


@contextmanager
def _refusals(
    result: ResultOptions, remedy: Callable[[Sequence[Finding]], CorrectedMap | None]
) -> Iterator[None]:
    """A refused fit names its remedy and reaches machines too, with its findings."""
    from taufit.diagnosis import ContradictionError

    try:
        yield
    except ContradictionError as error:
        mended = remedy(error.findings)
        if result.as_json:
            found = [finding.to_dict() for finding in error.findings]
            page = {"verdict": "REFUSED", "model": None, "findings": found}
            print_json({**page, "remedy": None if mended is None else mended.to_dict()})
        if mended is not None:
            error.args = (f"{error}\nRemedy: fit again with {mended.words}.",)
        raise


def _provenance(
    cache: Cache | None, **inputs: Path | Sequence[Path] | str | None
) -> dict[str, Any]:
    """Every input file with its hash."""
    from taufit.core.compute.cache.store import content_of

    def described(given: Path | Sequence[Path] | str | None) -> Any:
        if isinstance(given, Path):
            content = content_of(given) if cache is None else cache.content(given)
            return {"file": given.name, "sha256": content}
        if given is None or isinstance(given, str):
            return given
        return [described(path) for path in given]

    return {name: described(given) for name, given in inputs.items()}


def _report(done: IdentificationResult, path: Path) -> None:
    from taufit.core.files import write_text
    from taufit.report import fit_page

    write_text(path, fit_page(done))


def _show(done: IdentificationResult, judged: Verdict, output: Path, refused: bool) -> None:
    from taufit.cli.common import headline, plain_console
    from taufit.model.fitted_zeros import fitted_zeros

    console = plain_console()
    train, estimate = done.training_score, done.estimate
    tested = done.holdout_scores
    unseen = done.mean_holdout_nrmse
    share = train.mean_nrmse if unseen is None else unseen
    where = f"{len(tested)} recording(s) it has not seen" if tested else "its own training data"
    kind = "physically possible" if done.consistent else "NOT physically possible"
    console.print(
        headline(
            f"{judged.label} ({done.grades.overall})",
            f"  {done.model.robot.name}: {100 * share:.1f} % of the torque is left unexplained on "
            f"{where}; the arm is {kind}.",
        )
    )
    for text in done.grades.reasons:
        console.print(f"  {text}")
    console.print(score_table(f"nrmse per joint, low-pass {train.cutoff_hz:g} Hz", done))
    links = sum(name.startswith("link") for name in estimate.base_names)
    console.print(
        f"{train.seconds:.1f} s of motion, {len(estimate.base_names)} base parameters ({links} of "
        f"the links), condition {estimate.condition_number:.0f}. Single link masses are one choice "
        "among many with equal torque; only base parameters are measured.",
    )
    if done.signs is not None:
        found = done.signs
        console.print(
            f"Torque signs: {len(found.segments)} segments, {int(found.ambiguous.sum())} "
            f"ambiguous; {'proven optimal' if found.certified else 'not proven'}, "
            f"{'trustworthy' if found.confident else 'uncertain: see the warnings'}.",
        )
    if estimate.dropped:
        console.print(
            f"Friction terms the data do not support: {_grouped(estimate.dropped)}.",
        )
    for text in _rests_on(done):
        console.print(text)
    for zero in fitted_zeros(done.model):
        console.print(zero.describe)
    from taufit.temperature.apply import describe_slopes

    for text in describe_slopes(done.model):
        console.print(text)
    for text in done.warnings:
        console.print(f"warning: {text}")
    if not tested:
        console.print(
            "Without a hold-out this is the training error, which proves little: add --holdout 30% "
            "or --holdout FILE.",
        )
    if refused:
        return
    console.print(
        f"Written: {output}\nNext: `taufit check {output} RECORDING` tests it on recordings it has "
        "not seen.",
    )


def _rests_on(done: IdentificationResult) -> list[str]:
    """What came from the data, and from which speed on friction is a guess."""
    from taufit.model.information_share import measured_speed_range

    out = []
    shares = done.model.training.from_data
    if shares is not None:
        links = " ".join(f"{100 * x:.0f}" for x in shares.links)
        out.append(
            f"From the data, in percent of each link's parameters: {links}; the rest is the "
            "nominal robot."
        )
    known = measured_speed_range(done.model)
    if known is not None and known.describe:
        out.append(known.describe)
    return out


def score_table(title: str, done: IdentificationResult) -> Table:
    """One row per recording, one column per joint."""
    import numpy as np

    from taufit.cli.common import joint_table

    train, joints = done.training_score, done.model.robot.joints
    table = joint_table(title, joints)
    named = (("training", train), *((short_name(s.file), s) for s in done.holdout_scores))
    for label, one in named:
        table.add_row(label, *map(scored, one.nrmse), scored(one.mean_nrmse))
        if one.inside is not None:
            cells = [
                *(f"{100 * x:.0f}" for x in one.inside),
                f"{100 * (one.mean_inside or 0.0):.0f}",
            ]
            table.add_row("  % inside 95 % interval", *cells, style="dim")
    words = [grade.grade for grade in done.grades.joints]
    table.add_row("grade", *words, done.grades.overall)
    table.add_section()
    unit, gain = "N m", np.ones(joints)
    known = done.model.training.conditioning.gain
    if known is not None and any(f.kind == "gains_unknown" for f in done.findings):
        # Newton metres would be the nominal robot's.
        unit, gain = "A", known
    table.add_row(f"RMSE training [{unit}]", *(f"{x:.2f}" for x in train.rmse / gain), "")
    if done.nominal_comparison is not None:
        nominal = done.nominal_comparison.nominal.rmse / gain
        table.add_row("  nominal robot", *(f"{x:.2f}" for x in nominal), "")
    return table


def _grouped(names: tuple[str, ...]) -> str:
    """("joint_1.load", "joint_2.load") as "load (joints 1, 2)"."""
    joints: dict[str, list[str]] = {}
    for name in names:
        owner = parse_name(name)
        group = "presliding" if owner.quantity.startswith("presliding") else owner.quantity
        number = str(owner.number + 1)
        if number not in joints.setdefault(group, []):
            joints[group].append(number)
    return ", ".join(
        f"{group} (joint{'s' if len(which) > 1 else ''} {', '.join(which)})"
        for group, which in joints.items()
    )
