"""C files: the source with a header for C, one for C++ and a CMake target."""

from __future__ import annotations

from pathlib import Path

from taufit.core.errors import TaufitError
from taufit.core.files import is_stream, write_text
from taufit.export.c.texts import c_texts
from taufit.export.export_format import ExportResult
from taufit.model.fitted_model import FittedModel


def write_c(model: FittedModel, path: Path) -> ExportResult:
    """Write arm.c, arm.h, arm.hpp and arm.cmake; into a stream, header and source as one text."""
    if path.suffix in (".h", ".hpp", ".cmake"):
        raise TaufitError(f"{path} is the name of a file beside it: give {path.stem}.c.")
    if is_stream(path):
        texts = c_texts(model)
        source = "".join(
            line for line in texts.source.splitlines(True) if not line.startswith('#include "')
        )
        write_text(path, texts.header + source)
        return ExportResult((path,))
    texts = c_texts(model, path.stem)
    files = {
        path: texts.source,
        path.with_suffix(".h"): texts.header,
        path.with_suffix(".hpp"): texts.cpp_header,
    }
    if path.suffix == ".c":
        files[path.with_suffix(".cmake")] = texts.cmake
    for file, text in files.items():
        write_text(file, text)
    return ExportResult(tuple(files))
