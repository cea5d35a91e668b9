"""Intervals of motion and standstill."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float

# Speed below which a joint stands still [rad/s or m/s].
STANDSTILL_SPEED = 1e-3
# Travel after which pre-sliding friction no longer depends on the motion before [rad or m].
_BREAKAWAY_TRAVEL = 3e-3
# Joints that start later than this after the first one are ignored [s].
_START_WINDOW_S = 1.0


def speed_threshold(
    velocity: Float[Array, "n j"], noise: Float[Array, " j"] | float = 0.0
) -> Float[Array, " j"]:
    """Speed above which a joint moves: 1 mrad/s, 0.1 % of its top speed or 4 sigma of noise."""
    max_speed = np.max(np.abs(velocity), axis=0, initial=0.0)
    return np.asarray(
        np.maximum(
            STANDSTILL_SPEED,
            np.maximum(1e-3 * max_speed, 4.0 * np.broadcast_to(noise, max_speed.shape)),
        )
    )


def motion_mask(
    velocity: Float[Array, "n j"],
    rate_hz: float,
    *,
    threshold: Float[Array, " j"] | None = None,
    pause_s: float = 0.3,
    margin_s: float = 0.0,
) -> Bool[Array, " n"]:
    """Samples in which any joint moves; pauses shorter than `pause_s` count as motion.

    Motion of at most two samples, or shorter than 50 ms, is ignored.
    """
    if threshold is None:
        threshold = speed_threshold(velocity)
    moving = np.any(np.abs(velocity) > threshold, axis=1)
    moving = _fill(moving, int(pause_s * rate_hz))
    moving = ~_fill_with_ends(~moving, max(2, int(0.05 * rate_hz)))
    margin = round(margin_s * rate_hz)
    if margin > 0:
        for start, stop in intervals(moving):
            moving[max(0, start - margin) : stop + margin] = True
    return moving


def standing_mask(
    velocity: Float[Array, "n j"],
    rate_hz: float,
    *,
    threshold: Float[Array, " j"] | None = None,
    min_duration_s: float = 0.25,
) -> Bool[Array, "n j"]:
    """Per joint, samples at standstill for at least `min_duration_s`."""
    if threshold is None:
        threshold = speed_threshold(velocity)
    is_slow = np.abs(velocity) <= threshold
    min_samples = max(1, int(min_duration_s * rate_hz))
    return np.stack([~_fill(~column, min_samples, ends=True) for column in is_slow.T], axis=1)


def after_breakaway(
    position: Float[Array, "n j"], motion: Bool[Array, " n"], rate_hz: float
) -> Bool[Array, " n"]:
    """Samples in motion without the start of a run, where friction depends on earlier motion.

    At standstill friction may have any value within the stiction band. It is determined only after
    each
    starting joint has travelled far enough. Runs that begin in motion are not shortened.
    """
    moving = intervals(motion)
    if not moving or moving[0][0] == 0:
        return motion
    start, stop = moving[0]
    stop = min(stop, start + round(_START_WINDOW_S * rate_hz))
    has_travelled = np.abs(position[start:stop] - position[start]) > _BREAKAWAY_TRAVEL
    starting_joints = has_travelled.any(axis=0)
    if not starting_joints.any():
        return motion
    out = motion.copy()
    out[start : start + int(has_travelled.argmax(axis=0)[starting_joints].max())] = False
    return out


def intervals(mask: Bool[Array, " n"]) -> list[tuple[int, int]]:
    """(start, stop) indices of every interval of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _fill(mask: Bool[Array, " n"], min_length: int, *, ends: bool = False) -> Bool[Array, " n"]:
    """Set False intervals shorter than `min_length` between True ones to True."""
    out = np.array(mask)
    for start, stop in intervals(~mask):
        is_inside = start > 0 and stop < len(mask)
        if stop - start < min_length and (is_inside or ends):
            out[start:stop] = True
    return out


def _fill_with_ends(mask: Bool[Array, " n"], min_length: int) -> Bool[Array, " n"]:
    """Same as `_fill`, also at the ends."""
    return _fill(mask, min_length, ends=True)
