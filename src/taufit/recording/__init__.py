"""What was measured. In: a file a robot or a logger wrote. Out: a `Recording`.

Left to others: resampling, filtering and derivatives (signals).
"""

from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.finding import Finding
from taufit.recording.read import read_recording, read_recordings
from taufit.recording.recording import Recording
from taufit.recording.write import write_recording

__all__ = [
    "ColumnMap",
    "Finding",
    "Recording",
    "read_map",
    "read_recording",
    "read_recordings",
    "write_recording",
]
