"""`taufit export`: a fitted model in other tools' forms, and what each is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import (
    Json,
    Model,
    RecordingOptions,
    mounting_given,
    require_choice,
    usage_error,
)

if TYPE_CHECKING:
    from taufit.export.export_accuracy import ExportAccuracy
    from taufit.export.export_format import ExportFormat
    from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """Which functional mock-up unit is written with --format fmu."""

    fmi: Annotated[
        str | None, typer.Option(help="Version of FMI of an FMU: 2 (default) or 3.", metavar="N")
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            help="What an FMU computes: inverse (motion in, torque out; default) or forward.",
            metavar="NAME",
        ),
    ] = None

    def form(self, format: str) -> ExportFormat:
        """The entry of `EXPORTS`, an FMU as asked for."""
        from taufit.export import EXPORTS
        from taufit.export.fmu import FMI_VERSIONS, KINDS, fmu_format

        require_choice(format, EXPORTS, "--format")
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
    model: Model,
    format: Annotated[
        str, typer.Option("--format", help="urdf, mjcf, json, c or fmu.", metavar="NAME")
    ] = "urdf",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; C gets headers beside it."),
    ] = None,
    mounting: Annotated[
        str | None,
        typer.Option(
            help="Move the arm first: ground, ceiling, wall or ROLL,PITCH,YAW in degrees."
        ),
    ] = None,
    holdout: Annotated[
        list[Path] | None,
        typer.Option(help="Recording to test the exported form on; repeatable."),
    ] = None,
    unit: UnitOptions = UnitOptions(),
    recordings: RecordingOptions = RecordingOptions(),
    as_json: Json = False,
) -> None:
    """Write a fitted model as URDF, MJCF, JSON, C or FMU.

    A URDF you started from keeps everything but its inertials and friction. Where a format lacks
    terms of the model (URDF has neither rotor inertia nor offsets), its own terms are refitted to
    the training data, as the model file remembers them; what is missing is listed with its size,
    and what the written form leaves unexplained is printed beside the model's own figure, on the
    training data and on every --holdout. A model that is not physically possible is refused. With
    --mounting the arm is mounted another way first, and parameters that are not identifiable in the
    old mounting are listed (--format json keeps a model for `taufit check`).
    An FMU is a unit for co-simulation tools: FMI 2.0 or 3.0 (--fmi), inverse or forward dynamics
    (--kind), with its C sources and a binary for this platform where there is a C compiler.

    Next: load it in your simulator or controller.
    """
    from taufit.export import write_export
    from taufit.export.export_accuracy import accuracy_on_training
    from taufit.model.model_file import read_model

    form = unit.form(format)
    fitted = read_model(model)
    tested = _tested(fitted, form, holdout or [], recordings)
    moved = None
    if mounting is not None:
        from taufit.calibration import move_model

        moved = move_model(fitted, mounting_given(mounting))
        fitted = moved.model
    written = write_export(fitted, form, output)
    trained = accuracy_on_training(fitted, form)
    refitted = form.reduce(fitted).refitted
    files = [str(file) for file in written.files]
    if as_json:
        data: dict[str, Any] = {
            "format": format,
            "files": files,
            "dropped": list(written.dropped),
            "notes": list(written.notes),
            "refitted": refitted,
            "training": None if trained is None else trained.to_dict(),
            "holdout": [one.to_dict() for one in tested],
        }
        if moved is not None:
            data |= {"moved": moved.statement, "unknown": list(moved.unknown)}
        print_json(data)
        return
    if moved is not None:
        print(f"Moved {moved.statement}")
    print("Written: " + ", ".join(files))
    for part in written.dropped:
        print(f"Not representable in {format.upper()}: {part}.")
    if refitted:
        print(f"The terms of {format.upper()} were refitted to make up for that.")
    for note in written.notes:
        print(note)
    for label, one in (
        *([("training data", trained)] if trained else []),
        *((one.file, one) for one in tested),
    ):
        print(f"Torque left unexplained on {label}: {_percentages(one)}.")
    print("Next: load it in your simulator or controller.")


def _percentages(accuracy: ExportAccuracy) -> str:
    """Unexplained share of torque, of the export and of the model it was made from."""
    if not math.isfinite(accuracy.mean_nrmse):
        return "not known, the torque of no joint varies there"
    return f"{accuracy.mean_nrmse:.2%} (the model itself: {accuracy.model_mean_nrmse:.2%})"


def _tested(
    fitted: FittedModel, form: ExportFormat, files: list[Path], recordings: RecordingOptions
) -> list[ExportAccuracy]:
    """What the form is worth on recordings, conditioned like the training data."""
    from taufit.export.export_accuracy import accuracy_on_samples
    from taufit.workflow import condition_like

    return [
        accuracy_on_samples(
            fitted,
            form,
            condition_like(fitted, recordings.read(path), name=path.name),
            path.name,
        )
        for path in files
    ]
