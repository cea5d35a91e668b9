"""File endings of recordings and robots, and names similar to that of a missing file."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

RECORDING_ENDINGS = (
    ".parquet", ".csv", ".tsv", ".txt", ".npz", ".npy", ".mat", ".h5", ".hdf5", ".mcap", ".bag",
    ".db3", ".live",
)  # fmt: skip
ROBOT_ENDINGS = (".urdf", ".xacro", ".yaml", ".yml", ".xml")


def ending(path: str | os.PathLike[str]) -> str:
    """Ending of a file name in lower case, without that of compression."""
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def similar_files(path: str | os.PathLike[str], count: int = 3) -> tuple[str, ...]:
    """Files beside a missing one with similar names, and those of its name in subfolders."""
    name, folder = Path(path).name, Path(path).parent
    if not folder.is_dir():
        return ()
    names = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    similar = difflib.get_close_matches(name, names, n=count, cutoff=0.7)
    below = [str(file) for file in folder.glob(f"*/{name}")]
    return tuple([*(str(folder / other) for other in similar), *below][:count])


def missing_file_text(path: str | os.PathLike[str]) -> str:
    """Message for a file that does not exist, with similar names."""
    similar = similar_files(path)
    hint = f" Similar: {', '.join(similar)}." if similar else ""
    folder = Path(path).parent
    if not folder.exists():
        hint = f" There is no folder {folder} either."
    return f"there is no file {path}.{hint}"
