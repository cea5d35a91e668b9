"""Write a fitted model in any of the forms, and say what was lost."""

from __future__ import annotations

import os
from pathlib import Path

from taufit.errors import TaufitError
from taufit.export.to_c import c_name, to_c
from taufit.export.to_mjcf import to_mjcf
from taufit.export.to_urdf import to_urdf
from taufit.files import is_stream, write_text
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.model_file import write_model

FORMATS = {"urdf": ".urdf", "mjcf": ".xml", "json": ".json", "c": ".c"}


def export(
    model: FittedModel, path: str | os.PathLike[str], *, format: str | None = None
) -> tuple[str, ...]:
    """Write `model` to `path`; returns a phrase for each part the format cannot hold.

    Args:
        model: A fitted model.
        path: `arm.urdf`, `arm.xml` (MJCF), `arm.json` or `arm.c`, which gets a header beside it.
        format: "urdf", "mjcf", "json" or "c"; by default what the ending of `path` says.
    """
    if format is None:
        endings = {ending: name for name, ending in FORMATS.items()}
        format = endings.get(Path(path).suffix.lower())
        if format is None:
            raise TaufitError(
                f"the ending of {path} names no format: use {', '.join(endings)}, or say format=..."
            )
    return write_export(model, format, path)[1]


def write_urdf(model: FittedModel, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write `model` as URDF; returns a phrase for each part a URDF cannot hold."""
    return export(model, path, format="urdf")


def write_export(
    model: FittedModel, format: str, path: str | os.PathLike[str] | None = None
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write `model`; returns the files and a phrase for each part the format cannot hold."""
    if format not in FORMATS:
        raise TaufitError(f"format {format!r} is not known: use {', '.join(FORMATS)}.")
    require_fitted(model, "export")
    target = Path(path) if path is not None else Path(c_name(model) + FORMATS[format])
    if format == "json":
        write_model(model, target)
        return (target,), ()
    if format == "c":
        if target.suffix == ".h":
            raise TaufitError(f"{target} is the header's name: give the source's, {target.stem}.c.")
        header_path = target if is_stream(target) else target.with_suffix(".h")
        source, header, lost = to_c(model, header_path.name)
        if header_path == target:
            write_text(target, header + source.replace(f'#include "{target.name}"\n', "", 1))
            return (target,), lost
        write_text(target, source)
        write_text(header_path, header)
        return (target, header_path), lost
    text, lost = (to_urdf if format == "urdf" else to_mjcf)(model)
    write_text(target, text)
    return (target,), lost
