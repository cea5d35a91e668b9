"""`taufit export`: a fitted model in other tools' forms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taufit.cli.common import print_json
from taufit.cli.options import Json, Model, mounting_given, one_of


def command(
    model: Model,
    format: Annotated[
        str, typer.Option("--format", help="urdf, mjcf, json or c.", metavar="NAME")
    ] = "urdf",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; C gets a header beside it."),
    ] = None,
    mounting: Annotated[
        str | None,
        typer.Option(
            help="Move the arm first: ground, ceiling, wall or ROLL,PITCH,YAW in degrees."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a fitted model as URDF, MJCF, JSON or C.

    A URDF you started from keeps everything but its inertials. Parts that a format cannot represent
    (friction beyond Coulomb and viscous in URDF, say) are listed. A model that is not physically
    possible is refused. With --mounting the arm is mounted another way first, and parameters that
    are not identifiable in the old mounting are listed (--format json keeps a model for
    `taufit check`).

    Next: load it in your simulator or controller.
    """
    from taufit.export import EXPORTS, write_export
    from taufit.model.model_file import read_model

    one_of(format, EXPORTS, "--format")
    fitted = read_model(model)
    moved = None
    if mounting is not None:
        from taufit.calibration import move_model

        moved = move_model(fitted, mounting_given(mounting))
        fitted = moved.model
    written = write_export(fitted, format, output)
    files = [str(file) for file in written.files]
    if as_json:
        data = {"format": format, "files": files, "dropped": list(written.dropped)}
        if moved is not None:
            data |= {"moved": moved.statement, "unknown": list(moved.unknown)}
        print_json(data)
        return
    if moved is not None:
        print(f"Moved {moved.statement}")
    print("Written: " + ", ".join(files))
    for part in written.dropped:
        print(f"Not representable in {format.upper()}: {part}.")
    print("Next: load it in your simulator or controller.")
