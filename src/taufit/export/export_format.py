"""Export format: file suffix and writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.files import write_text
from taufit.export.format_reduction import ReducedModel, without_reduction
from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Files and messages of an export.

    Attributes:
        files: Written files, the requested one first.
        dropped: A phrase for each part of the model that the format cannot represent.
        notes: Further messages for the user.
    """

    files: tuple[Path, ...]
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """Entry of `EXPORTS`.

    Attributes:
        ending: File suffix.
        write: Writer (model, path) -> `ExportResult`.
        reduce: Reduction of the model to the terms of the format; default: all terms.
        is_samplewise: Whether the export is called sample by sample with the recorded motion.
        predict: Torque (model, q, v, a, temperature) of an export that differs from its model in
            more than its terms.
    """

    ending: str
    write: Callable[[FittedModel, Path], ExportResult]
    reduce: Callable[[FittedModel], ReducedModel] = without_reduction
    is_samplewise: bool = False
    predict: Callable[..., Float[Array, "n j"]] | None = None


def as_text(
    to_text: Callable[[FittedModel], tuple[str, tuple[str, ...]]],
) -> Callable[[FittedModel, Path], ExportResult]:
    """Writer of a format that is a single text."""

    def write(model: FittedModel, path: Path) -> ExportResult:
        text, dropped = to_text(model)
        write_text(path, text)
        return ExportResult((path,), dropped)

    return write
