"""Recordings: reading, checking and writing measured data. In: a file. Out: a `Recording`.

Not here: resampling, filtering, derivatives and gains (signals).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.recording.channels import Channels as Channels
    from taufit.recording.column_map import ColumnMap as ColumnMap, read_map as read_map
    from taufit.recording.crop import (
        crop as crop,
        split as split,
        tail as tail,
        training_or_holdout_part as training_or_holdout_part,
    )
    from taufit.recording.finding import Finding as Finding
    from taufit.recording.joint_order import (
        reorder_joints as reorder_joints,
        require_joints as require_joints,
    )
    from taufit.recording.live import (
        RecordingWriter as RecordingWriter,
        convert_live_recording as convert_live_recording,
    )
    from taufit.recording.quality import (
        RecordingQuality as RecordingQuality,
        motion_mask as motion_mask,
        recording_quality as recording_quality,
    )
    from taufit.recording.read import (
        READERS as READERS,
        read_recording as read_recording,
        read_recordings as read_recordings,
    )
    from taufit.recording.recording import Recording as Recording
    from taufit.recording.timing import Timing as Timing, sampling_timing as sampling_timing
    from taufit.recording.write import WRITERS as WRITERS, write_recording as write_recording

lazy_package(__name__)
