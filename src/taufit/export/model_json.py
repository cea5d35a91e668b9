"""Model file as an export: nothing is dropped."""

from __future__ import annotations

from pathlib import Path

from taufit.export.export_format import ExportResult
from taufit.model.fitted_model import FittedModel
from taufit.model.model_file import write_model


def write_json(model: FittedModel, path: Path) -> ExportResult:
    """Write the model file with `write_model`."""
    write_model(model, path)
    return ExportResult((path,))
