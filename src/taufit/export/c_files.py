"""C as files: the source, and its header beside it."""

from __future__ import annotations

from pathlib import Path

from taufit.errors import TaufitError
from taufit.export.form import Written
from taufit.export.to_c import to_c
from taufit.files import is_stream, write_text
from taufit.model.fitted_model import FittedModel


def write_c(model: FittedModel, path: Path) -> Written:
    """Source and header; one text where the output is a stream."""
    if path.suffix == ".h":
        raise TaufitError(f"{path} is the header's name: give the source's, {path.stem}.c.")
    if is_stream(path):
        source, header, dropped = to_c(model, path.name)
        write_text(path, header + source.replace(f'#include "{path.name}"\n', "", 1))
        return Written((path,), dropped)
    header_path = path.with_suffix(".h")
    source, header, dropped = to_c(model, header_path.name)
    write_text(path, source)
    write_text(header_path, header)
    return Written((path, header_path), dropped)
