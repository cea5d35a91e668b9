"""Recording -> CSV and .npz with taufit's columns."""

from __future__ import annotations

import gzip
import io
import os

import numpy as np

from taufit.core.files import replace_file
from taufit.recording.canonical import metadata_to_text, to_columns
from taufit.recording.readers.from_arrays import META_NAME
from taufit.recording.readers.from_csv import META_MARK
from taufit.recording.recording import Recording


def write_csv(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write every number in the shortest form that reads back exactly.

    The first line is a comment with JSON metadata; `pandas.read_csv(..., comment="#")` skips it.
    """
    columns, page = to_columns(recording)
    separator = "\t" if ".tsv" in str(path).lower() else ","
    text = io.StringIO()
    text.write(f"{META_MARK}{metadata_to_text(page)}\n")
    text.write(separator.join(columns) + "\n")
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        text.write(separator.join(map(repr, row)) + "\n")
    data = text.getvalue().encode()
    with replace_file(path) as temporary:
        compress = str(path).lower().endswith(".gz")
        temporary.write_bytes(gzip.compress(data, 6, mtime=0) if compress else data)


def write_npz(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write one array per column, and the JSON metadata as text under "taufit"."""
    columns, page = to_columns(recording)
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **{**columns, META_NAME: np.array(metadata_to_text(page))})  # type: ignore[arg-type]
