"""Export of a fitted model in any format, with the parts that the format cannot represent."""

from __future__ import annotations

import os
from pathlib import Path

from taufit.core.errors import TaufitError
from taufit.export.c import c_name
from taufit.export.c.files import write_c
from taufit.export.c.smooth_friction import smooth_torque
from taufit.export.export_format import ExportFormat, ExportResult, as_text
from taufit.export.fmu import fmu_format
from taufit.export.model_json import write_json
from taufit.export.ros2 import write_ros2
from taufit.export.to_casadi import write_casadi
from taufit.export.to_mjcf import mjcf_model, to_mjcf
from taufit.export.to_sdf import sdf_model, to_sdf
from taufit.export.to_urdf import to_urdf, urdf_model
from taufit.model.fitted_model import FittedModel, require_fitted

EXPORTS: dict[str, ExportFormat] = {
    "urdf": ExportFormat(".urdf", as_text(to_urdf), urdf_model),
    "mjcf": ExportFormat(".xml", as_text(to_mjcf), mjcf_model),
    "sdf": ExportFormat(".sdf", as_text(to_sdf), sdf_model),
    "json": ExportFormat(".json", write_json),
    "c": ExportFormat(".c", write_c, is_samplewise=True),
    "fmu": fmu_format(),
    "ros2": ExportFormat(".ros2", write_ros2, is_samplewise=True),
    "casadi": ExportFormat(".casadi", write_casadi, predict=smooth_torque),
}

# Formats for serial arms only.
_SERIAL_ENDINGS = (".sdf", ".casadi")


def export_model(
    model: FittedModel, path: str | os.PathLike[str], *, format: str | None = None
) -> tuple[str, ...]:
    """Write `model` to `path`; returns a phrase for each part the format cannot represent.

    Args:
        model: Fitted model.
        path: `arm.urdf`, `arm.xml` (MJCF), `arm.sdf`, `arm.json`, `arm.c`, which gets headers
            beside it, `arm.fmu` (FMI 2.0, inverse dynamics; others by `write_fmu`), or the suffix
            of any other entry of `EXPORTS`.
        format: Name in `EXPORTS`; default: by the suffix of `path`.

    Example:
        >>> import taufit
        >>> dropped = taufit.export_model(taufit.read_model("model.json"), "arm.urdf")
        >>> "rotor inertia" in " ".join(dropped)
        True
    """
    if format is None:
        endings = {form.ending: name for name, form in EXPORTS.items()}
        format = endings.get(Path(path).suffix.lower())
        if format is None:
            raise TaufitError(
                f"the ending of {path} names no format: use {', '.join(endings)}, or say format=..."
            )
    return write_export(model, format, path).dropped


def write_urdf(model: FittedModel, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write `model` as URDF; returns a phrase for each part a URDF cannot represent."""
    return export_model(model, path, format="urdf")


def write_export(
    model: FittedModel, format: str | ExportFormat, path: str | os.PathLike[str] | None = None
) -> ExportResult:
    """Write `model` in a format, given or by name; without a path into the current directory."""
    if isinstance(format, str):
        if format not in EXPORTS:
            raise TaufitError(f"format {format!r} is not known: use {', '.join(EXPORTS)}.")
        format = EXPORTS[format]
    require_fitted(model, "export")
    if format.ending in _SERIAL_ENDINGS:
        model.robot.require_serial(f"export as {format.ending}")
    return format.write(model, Path(c_name(model) + format.ending if path is None else path))
