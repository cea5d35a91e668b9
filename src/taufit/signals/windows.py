"""When the arm moves and when it stands."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float

# Slower than this nothing counts as moving [rad/s or m/s].
SLOWEST = 1e-3
# Travel after which friction has forgotten which way it was strained before [rad or m].
_FORGOTTEN = 3e-3
# Joints that start later than this after the first one are not waited for [s].
_TOGETHER_S = 1.0


def speed_threshold(
    velocity: Float[Array, "n j"], noise: Float[Array, " j"] | float = 0.0
) -> Float[Array, " j"]:
    """Above what speed a joint moves: 1 mrad/s, 0.1 % of its top speed or 4 sigma of its noise."""
    top = np.max(np.abs(velocity), axis=0, initial=0.0)
    return np.asarray(
        np.maximum(SLOWEST, np.maximum(1e-3 * top, 4.0 * np.broadcast_to(noise, top.shape)))
    )


def motion_mask(
    velocity: Float[Array, "n j"],
    rate_hz: float,
    *,
    threshold: Float[Array, " j"] | None = None,
    pause_s: float = 0.3,
    margin_s: float = 0.0,
) -> Bool[Array, " n"]:
    """Whether any joint moves; pauses shorter than `pause_s` belong to the motion.

    Blips that are no longer than two samples, or shorter than 50 ms, are not motion.
    """
    if threshold is None:
        threshold = speed_threshold(velocity)
    moving = np.any(np.abs(velocity) > threshold, axis=1)
    moving = _fill(moving, int(pause_s * rate_hz))
    moving = ~_fill_inside(~moving, max(2, int(0.05 * rate_hz)))
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
    lasting_s: float = 0.25,
) -> Bool[Array, "n j"]:
    """Per joint, rows in which it stands still for at least `lasting_s`."""
    if threshold is None:
        threshold = speed_threshold(velocity)
    still = np.abs(velocity) <= threshold
    shortest = max(1, int(lasting_s * rate_hz))
    return np.stack([~_fill(~column, shortest, ends=True) for column in still.T], axis=1)


def after_breakaway(
    position: Float[Array, "n j"], motion: Bool[Array, " n"], rate_hz: float
) -> Bool[Array, " n"]:
    """The rows in motion without the start of a run, where friction depends on what was before it.

    At rest friction may be anything up to breakaway, in either direction: whatever the approach and
    the controller left. Nothing recorded later says how much, until each joint that sets off has
    travelled far enough. A run that is in motion at its first sample has no such start.
    """
    moving = intervals(motion)
    if not moving or moving[0][0] == 0:
        return motion
    start, stop = moving[0]
    stop = min(stop, start + round(_TOGETHER_S * rate_hz))
    away = np.abs(position[start:stop] - position[start]) > _FORGOTTEN
    waited = away.any(axis=0)
    if not waited.any():
        return motion
    out = motion.copy()
    out[start : start + int(away.argmax(axis=0)[waited].max())] = False
    return out


def intervals(mask: Bool[Array, " n"]) -> list[tuple[int, int]]:
    """(first, past the last) of every interval of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _fill(mask: Bool[Array, " n"], shortest: int, *, ends: bool = False) -> Bool[Array, " n"]:
    """False intervals shorter than `shortest` between True ones become True."""
    out = np.array(mask)
    for start, stop in intervals(~mask):
        inside = start > 0 and stop < len(mask)
        if stop - start < shortest and (inside or ends):
            out[start:stop] = True
    return out


def _fill_inside(mask: Bool[Array, " n"], shortest: int) -> Bool[Array, " n"]:
    """As `_fill`, at the ends too."""
    return _fill(mask, shortest, ends=True)
