"""`taufit export`: a fitted model in formats of other tools, with its accuracy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    Json,
    LoadedModel,
    RecordingOptions,
    require_choice,
    require_ending,
    require_mounting,
    usage_error,
)
from taufit.core.dataclasses import dataclass
from taufit.core.endings import ending

if TYPE_CHECKING:
    from taufit.export.c.instruction_count import InstructionCount
    from taufit.export.export_accuracy import ExportAccuracy
    from taufit.export.export_format import ExportFormat
    from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Options of single formats."""

    fmi: Annotated[
        str | None, typer.Option(help="FMI version of an FMU: 2 (default) or 3.", metavar="N")
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            help="Function of an FMU: inverse (motion in, torque out; default) or forward.",
            metavar="NAME",
        ),
    ] = None

    count: Annotated[
        bool,
        typer.Option(
            "--count-instructions",
            help="Instructions of one call at random states, for C and ROS 2 (needs valgrind).",
        ),
    ] = False

    def export_format(self, format: str) -> ExportFormat:
        """Entry of `EXPORTS`, for an FMU with the requested version and kind."""
        from taufit.export import EXPORTS
        from taufit.export.fmu import FMI_VERSIONS, KINDS, fmu_format

        require_choice(format, EXPORTS, "--format")
        if self.count and format not in ("c", "ros2"):
            usage_error("--count-instructions", "it goes with --format c or ros2.")
        if format != "fmu":
            if self.fmi is not None or self.kind is not None:
                usage_error("--fmi, --kind", "they go with --format fmu.")
            return EXPORTS[format]
        versions = {version: version for version in FMI_VERSIONS}
        versions |= {version[0]: version for version in FMI_VERSIONS}
        fmi = FMI_VERSIONS[0] if self.fmi is None else self.fmi
        require_choice(fmi, versions, "--fmi")
        kind = KINDS[0] if self.kind is None else self.kind
        require_choice(kind, KINDS, "--kind")
        return fmu_format(versions[fmi], kind)


def command(
    arm: LoadedModel,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format: urdf, mjcf, sdf, json, c, fmu, casadi, ros2; default by --output.",
            metavar="NAME",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; C headers are written beside it."),
    ] = None,
    mounting: Annotated[
        str | None,
        typer.Option(help="New mounting: ground, ceiling, wall or ROLL,PITCH,YAW [deg]."),
    ] = None,
    holdout: Annotated[
        list[Path] | None,
        typer.Option(help="Recording to test the exported model on. Repeatable."),
    ] = None,
    unit: FormatOptions = FormatOptions(),
    recordings: RecordingOptions = RecordingOptions(),
    as_json: Json = False,
) -> None:
    """Write a fitted model as URDF, MJCF, SDF, C, FMU, CasADi, ROS 2 package or JSON.

    The original URDF is kept except for inertials and friction. If a format lacks terms of the
    model (URDF has neither rotor inertia nor offsets), its terms are refitted to the training data
    stored in the model file; missing terms are listed with their size, and the nrmse of the
    exported model is printed beside that of the model, on the training data and on every --holdout.
    A physically inconsistent model is rejected. With --mounting the robot is remounted first, and
    parameters not identifiable in the old mounting are listed (--format json writes a model for
    `taufit check`). An FMU is a unit for co-simulation tools: FMI 2.0 or 3.0 (--fmi), inverse or
    forward dynamics (--kind), with C sources and, if there is a C compiler, a binary for this
    platform.

    Next: load it in your simulator or controller.
    """
    from taufit.cli.parts.servo_verbs import export_servo
    from taufit.export import write_export
    from taufit.export.export_accuracy import accuracy_on_training
    from taufit.servo.model import is_servo_file

    if is_servo_file(arm.model):
        export_servo(arm.model, format or "mjcf", output, holdout or [], recordings, as_json)
        return

    format = _format_name(format, output)
    chosen_format = unit.export_format(format)
    fitted = arm.read()
    holdout_accuracy = _test_on_recordings(fitted, chosen_format, holdout or [], recordings)
    remounted = None
    if mounting is not None:
        from taufit.calibration import move_model

        remounted = move_model(fitted, require_mounting(mounting))
        fitted = remounted.model
    result = write_export(fitted, chosen_format, output)
    training_accuracy = accuracy_on_training(fitted, chosen_format)
    refitted = chosen_format.reduce(fitted).refitted
    instructions = _count_instructions(fitted) if unit.count else ()
    files = [str(file) for file in result.files]
    if as_json:
        data: dict[str, Any] = {
            "format": format,
            "files": files,
            "dropped": list(result.dropped),
            "notes": list(result.notes),
            "refitted": refitted,
            "training": None if training_accuracy is None else training_accuracy.to_dict(),
            "holdout": [accuracy.to_dict() for accuracy in holdout_accuracy],
        }
        if instructions:
            data["instructions"] = [entry.to_dict() for entry in instructions]
        if remounted is not None:
            data |= {"moved": remounted.statement, "unknown": list(remounted.unknown)}
        print_json(data)
        return
    if remounted is not None:
        print(f"Moved {remounted.statement}")
    print("Written: " + ", ".join(files))
    for part in result.dropped:
        print(f"Not representable in {format.upper()}: {part}.")
    if refitted:
        print(f"The terms of {format.upper()} were refitted to make up for that.")
    for note in result.notes:
        print(note)
    for label, accuracy in (
        *([("training data", training_accuracy)] if training_accuracy else []),
        *((accuracy.file, accuracy) for accuracy in holdout_accuracy),
    ):
        print(f"Torque left unexplained on {label}: {_format_nrmse(accuracy)}.")
    _print_instructions(instructions)
    print("Next: load it in your simulator or controller.")


def _count_instructions(fitted: FittedModel) -> tuple[InstructionCount, ...]:
    """Work per call of the exported C."""
    from taufit.export.c.instruction_count import count_instructions

    with progress("Counting instructions"):
        return count_instructions(fitted)


def _print_instructions(counts: tuple[InstructionCount, ...]) -> None:
    for entry in counts:
        print(
            f"Instructions of one {entry.function} call: {entry.median:,} in the median, "
            f"{entry.worst:,} at worst over {len(entry.counts)} states."
        )


def _format_name(format: str | None, output: Path | None) -> str:
    """Format by its name or the ending of the output; wrong usage if they contradict each other."""
    from taufit.export import EXPORTS

    by_ending = {entry.ending: name for name, entry in EXPORTS.items()}
    if format is None:
        if output is None or not output.suffix:
            return "urdf"
        if ending(output) not in by_ending:
            choices = ", ".join(by_ending)
            usage_error("--output", f"{output}: no format ends so. Use {choices}, or --format.")
        return by_ending[ending(output)]
    require_choice(format, EXPORTS, "--format")
    remedy = f"Write `-o {'' if output is None else output.with_suffix(EXPORTS[format].ending)}`."
    # A URDF is XML too.
    endings = (EXPORTS[format].ending, *([".xml"] if format == "urdf" else []))
    require_ending(output, endings, "--output", remedy)
    return format


def _format_nrmse(accuracy: ExportAccuracy) -> str:
    """nrmse of the exported model and of the model itself, as text."""
    if not math.isfinite(accuracy.mean_nrmse):
        return "not known, the torque of no joint varies there"
    return f"{accuracy.mean_nrmse:.2%} (the model itself: {accuracy.model_mean_nrmse:.2%})"


def _test_on_recordings(
    fitted: FittedModel,
    chosen_format: ExportFormat,
    files: list[Path],
    recordings: RecordingOptions,
) -> list[ExportAccuracy]:
    """Accuracy of the exported model on recordings, conditioned like the training data."""
    if not files:
        return []
    from taufit.export.export_accuracy import accuracy_on_samples
    from taufit.workflow import condition_for_model

    return [
        accuracy_on_samples(
            fitted,
            chosen_format,
            condition_for_model(fitted, recordings.read(path), name=path.name),
            path.name,
        )
        for path in files
    ]
