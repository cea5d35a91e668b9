"""Recording -> file, by the file's ending."""

from __future__ import annotations

import os
from pathlib import Path

from taufit.errors import RecordingError
from taufit.recording.recording import Recording
from taufit.recording.to_parquet import write_parquet


def write_recording(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write one run so that `read_recording` returns it unchanged."""
    name = Path(path).name.lower()
    if name.endswith(".parquet"):
        write_parquet(recording, path)
    else:
        raise RecordingError(f"{path}: recordings are written as .parquet.")
