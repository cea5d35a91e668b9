"""Motion of a recording, for playing it again."""

from __future__ import annotations

import numpy as np

from taufit.core.errors import RecordingError
from taufit.excitation import SampledMotion
from taufit.recording import Recording

_GRID_HZ = 100.0


def motion_of_recording(recording: Recording, *, cutoff_hz: float = 6.0) -> SampledMotion:
    """Commanded motion of a recording, or the smoothed measured one if there is none.

    Both are resampled at 100 Hz; a measured motion passes a zero-phase low-pass first, to remove
    encoder noise.
    """
    commanded = recording.commanded_position
    position = recording.position if commanded is None else commanded
    time, indices = np.unique(np.asarray(recording.time, float), return_index=True)
    is_valid = np.isfinite(time) & np.all(np.isfinite(position[indices]), axis=1)
    time, position = time[is_valid], position[indices][is_valid]
    if len(time) < 12:
        raise RecordingError("this recording is too short to be played again.")
    grid = np.arange(time[0], time[-1], 1.0 / _GRID_HZ)
    path = np.stack([np.interp(grid, time, column) for column in position.T], 1)
    if commanded is None:
        from scipy.signal import butter, sosfiltfilt

        filter_ = butter(2, cutoff_hz, fs=_GRID_HZ, output="sos")
        path = sosfiltfilt(filter_, path, axis=0, padlen=min(100, len(path) - 1))
    return SampledMotion(grid - grid[0], path)
