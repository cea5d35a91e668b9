"""What was measured. In: a file a robot or a logger wrote. Out: a `Recording`, row by row credible.

Left to others: resampling, filtering, derivatives and gains (signals).
"""

from taufit.recording.channels import Channels
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.cut import cut, ending, share_of_runs, split
from taufit.recording.finding import Finding
from taufit.recording.joint_order import in_order, require_joints
from taufit.recording.live import RecordingWriter, compact
from taufit.recording.quality import Quality, in_motion, quality
from taufit.recording.read import READERS, read_recording, read_recordings
from taufit.recording.recording import Recording
from taufit.recording.timing import Timing, timing
from taufit.recording.write import WRITERS, write_recording

__all__ = [
    "READERS",
    "WRITERS",
    "Channels",
    "ColumnMap",
    "Finding",
    "Quality",
    "Recording",
    "RecordingWriter",
    "Timing",
    "compact",
    "cut",
    "ending",
    "in_motion",
    "in_order",
    "quality",
    "read_map",
    "read_recording",
    "read_recordings",
    "require_joints",
    "share_of_runs",
    "split",
    "timing",
    "write_recording",
]
