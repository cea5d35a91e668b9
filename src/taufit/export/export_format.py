"""A form a fitted model is written in: its ending, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from taufit.core.files import write_text
from taufit.export.format_reduction import ReducedModel, keep_all_terms
from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote.

    Attributes:
        files: The one asked for first.
        dropped: A phrase for each part of the model that the form cannot represent.
        notes: What else a user of the files should know.
    """

    files: tuple[Path, ...]
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One entry of `EXPORTS`.

    Attributes:
        ending: Of its files.
        write: (model, path) -> `Written`.
        held: The model as the form holds it; by default whole.
        stepped: Whether it is called sample by sample with the motion as it comes.
    """

    ending: str
    write: Callable[[FittedModel, Path], ExportResult]
    held: Callable[[FittedModel], ReducedModel] = keep_all_terms
    stepped: bool = False


def as_text(
    to_text: Callable[[FittedModel], tuple[str, tuple[str, ...]]],
) -> Callable[[FittedModel, Path], ExportResult]:
    """The writer of a form that is one text."""

    def write(model: FittedModel, path: Path) -> ExportResult:
        text, dropped = to_text(model)
        write_text(path, text)
        return ExportResult((path,), dropped)

    return write
