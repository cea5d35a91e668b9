"""Write a fitted model in any of the forms, and say what was lost."""

from __future__ import annotations

import os
from pathlib import Path

from taufit.errors import TaufitError
from taufit.export.to_c import c_name, to_c
from taufit.export.to_mjcf import to_mjcf
from taufit.export.to_urdf import to_urdf
from taufit.files import write_text
from taufit.model_file import write_model
from taufit.torque_model import TorqueModel

FORMATS = {"urdf": ".urdf", "mjcf": ".xml", "json": ".json", "c": ".c"}


def write_export(
    model: TorqueModel, format: str, path: str | os.PathLike[str] | None = None
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write `model`; returns the files and a phrase for each part the format cannot hold."""
    if format not in FORMATS:
        raise TaufitError(f"format {format!r} is not known: use {', '.join(FORMATS)}.")
    if model.values is None:
        raise TaufitError("this model has no parameters yet: fit it first.")
    target = Path(path) if path is not None else Path(c_name(model) + FORMATS[format])
    if format == "json":
        write_model(model, target)
        return (target,), ()
    if format == "c":
        header_path = target.with_suffix(".h")
        source, header, lost = to_c(model, header_path.name)
        write_text(target, source)
        write_text(header_path, header)
        return (target, header_path), lost
    text, lost = (to_urdf if format == "urdf" else to_mjcf)(model)
    write_text(target, text)
    return (target,), lost
