"""Cropping in time, and splitting into training and hold-out parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.errors import RecordingError
from taufit.recording.recording import Recording, select_rows

# Gap between training and hold-out part, so that filters do not mix them [s].
GAP_S = 0.5


def crop(recording: Recording, start: float | None, end: float | None) -> Recording:
    """Part of a recording from `start` to `end` [s after the first sample], both included."""
    elapsed = recording.time - recording.time[0]
    low = 0.0 if start is None else start
    high = np.inf if end is None else end
    name = recording.name
    if not low < high:
        raise RecordingError(f"--from {low:g} is not before --to {high:g}.")
    rows = np.flatnonzero((elapsed >= low) & (elapsed <= high))
    if len(rows) < 2:
        raise RecordingError(
            f"{name} lasts {elapsed[-1]:.4g} s: there is nothing from {low:g} to {high:g} s. "
            "--from and --to count seconds from its first sample."
        )
    meta = {**recording.meta, "cut_s": [float(low), float(min(high, elapsed[-1]))]}
    return select_rows(recording, rows, meta=meta)


def split(recording: Recording, fraction: float) -> tuple[Recording, Recording]:
    """Split into a training part and the last `fraction` of the time as hold-out, with a gap
    between.
    """
    if not 0.0 < fraction < 1.0:
        raise RecordingError(f"a hold-out of {100 * fraction:g} % is not between 0 and 100 %.")
    name = recording.name
    elapsed = recording.time - recording.time[0]
    border = (1.0 - fraction) * elapsed[-1]
    gap = min(GAP_S, 0.1 * min(border, elapsed[-1] - border))
    if np.count_nonzero(elapsed <= border - gap) < 2 or np.count_nonzero(elapsed >= border) < 2:
        raise RecordingError(
            f"{name} is too short to keep {100 * fraction:g} % of it out of the fit."
        )
    first = crop(recording, None, float(border - gap))
    last = crop(recording, float(border), None)
    label = f"{name} (last {100 * fraction:g} %)"
    return first, replace(last, meta={**last.meta, "file": label})


def training_or_holdout_part(
    runs: list[Recording], fraction: float, *, end: bool
) -> list[Recording]:
    """First part of each run, or its last `fraction`; a single run's tail includes the earlier
    samples.
    """
    if end and len(runs) == 1:
        return [tail(runs[0], fraction)]
    return [split(run, fraction)[end] for run in runs]


def tail(recording: Recording, fraction: float) -> Recording:
    """Last `fraction` of the time, including the samples before it for low-pass and friction state.

    `counted_s` in its meta is the time interval to be scored [s after the first row].
    """
    _, last = split(recording, fraction)
    lead_s = float(last.time[0] - recording.time[0])
    meta = {"file": last.meta["file"], "counted_s": [lead_s, float("inf")]}
    return replace(recording, meta={**recording.meta, **meta})
