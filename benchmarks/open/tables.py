"""Text tables with a header line, compressed or not."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns and their values."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        header = file.readline().strip().split(",")
        return header, np.loadtxt(file, delimiter=",", ndmin=2)
