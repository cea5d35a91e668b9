"""What was measured. In: a file a robot or a logger wrote. Out: a `Recording`, row by row credible.

Left to others: resampling, filtering, derivatives and gains (signals).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.recording.column_map import ColumnMap as ColumnMap
    from taufit.recording.column_map import read_map as read_map
    from taufit.recording.cut import (
        cut as cut,
    )
    from taufit.recording.cut import (
        ending as ending,
    )
    from taufit.recording.cut import (
        share_of_runs as share_of_runs,
    )
    from taufit.recording.cut import (
        split as split,
    )
    from taufit.recording.finding import Finding as Finding
    from taufit.recording.joint_order import in_order as in_order
    from taufit.recording.joint_order import require_joints as require_joints
    from taufit.recording.live import RecordingWriter as RecordingWriter
    from taufit.recording.live import compact as compact
    from taufit.recording.quality import (
        Quality as Quality,
    )
    from taufit.recording.quality import (
        in_motion as in_motion,
    )
    from taufit.recording.quality import (
        quality as quality,
    )
    from taufit.recording.read import (
        READERS as READERS,
    )
    from taufit.recording.read import (
        read_recording as read_recording,
    )
    from taufit.recording.read import (
        read_recordings as read_recordings,
    )
    from taufit.recording.recording import Recording as Recording
    from taufit.recording.timing import Timing as Timing
    from taufit.recording.timing import timing as timing
    from taufit.recording.write import WRITERS as WRITERS
    from taufit.recording.write import write_recording as write_recording

lazy_room(
    __name__,
    {
        "column_map": "ColumnMap read_map",
        "cut": "cut ending share_of_runs split",
        "finding": "Finding",
        "joint_order": "in_order require_joints",
        "live": "RecordingWriter compact",
        "quality": "Quality in_motion quality",
        "read": "READERS read_recording read_recordings",
        "recording": "Recording",
        "timing": "Timing timing",
        "write": "WRITERS write_recording",
    },
)
