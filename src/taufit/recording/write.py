"""Writing of recordings; the format is selected by the file's ending."""

from __future__ import annotations

import os
from pathlib import Path

from taufit.core.errors import RecordingError
from taufit.core.files import is_stream
from taufit.recording.recording import Recording
from taufit.recording.writers.to_bag import write_mcap, write_ros2_bag
from taufit.recording.writers.to_parquet import write_parquet
from taufit.recording.writers.to_text import write_csv, write_npz

WRITERS = {
    ".parquet": write_parquet,
    ".csv": write_csv,
    ".csv.gz": write_csv,
    ".tsv": write_csv,
    ".tsv.gz": write_csv,
    ".npz": write_npz,
    ".mcap": write_mcap,
}


def write_recording(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write one run so that `read_recording` returns it unchanged.

    A name without an ending gives a ROS 2 bag (a directory); a device or pipe without one Parquet.

    Example:
        >>> import taufit
        >>> recording = taufit.read_recording("run.parquet")
        >>> taufit.write_recording(recording, "run.csv")
        >>> (taufit.read_recording("run.csv").position == recording.position).all()
        np.True_
    """
    name = Path(path).name.lower()
    for ending, write in WRITERS.items():
        if name.endswith(ending):
            return write(recording, path)
    if is_stream(path):
        return write_parquet(recording, path)
    if "." not in name:
        return write_ros2_bag(recording, path)
    raise RecordingError(
        f"{path}: recordings are written as {', '.join(WRITERS)}, or as a ROS 2 bag (a name "
        "without an ending)."
    )
