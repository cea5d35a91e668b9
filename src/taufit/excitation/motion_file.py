"""Motions as JSON files: `{"kind": "fourier", ...}`, written by `design`, played by `simulate`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from taufit.core.decompression_limits import limits_are_lifted
from taufit.core.errors import TaufitError
from taufit.core.files import write_json
from taufit.core.plain_data import read_json
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.sampled_motion import SampledMotion
from taufit.excitation.spline import Spline
from taufit.excitation.stroke_motion import LineStrokes, Strokes

# Maximum duration [s]: memory grows in proportion.
MAXIMUM_DURATION_S = 7200.0
MOTIONS: dict[str, Any] = {
    "fourier": Fourier,
    "sampled": SampledMotion,
    "spline": Spline,
    "strokes": Strokes,
    "line_strokes": LineStrokes,
}


def motion_to_dict(motion: Motion) -> dict[str, Any]:
    """Plain data for JSON, with the kind of motion."""
    for kind, cls in MOTIONS.items():
        if type(motion) is cls:
            return {"kind": kind, **motion.to_dict()}
    raise TaufitError(
        f"a motion of type {type(motion).__name__} cannot be written; "
        f"known kinds are {', '.join(MOTIONS)}."
    )


def motion_from_dict(data: Any, where: str = "this motion") -> Motion:
    """Inverse of `motion_to_dict`; unknown keys are ignored."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in MOTIONS:
        raise TaufitError(
            f"{where} is of kind {kind!r}; known kinds are {', '.join(MOTIONS)}. "
            "`taufit design` writes motion files."
        )
    try:
        motion: Motion = MOTIONS[kind].from_dict(data)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise TaufitError(f"{where} is incomplete or damaged: {error!r}.") from None
    if not (0.0 < motion.duration <= MAXIMUM_DURATION_S or limits_are_lifted()):
        raise TaufitError(
            f"{where} lasts {motion.duration:g} s; a motion lasts at most {MAXIMUM_DURATION_S:g} "
            "s. If it is "
            "really that long, give --large."
        )
    return motion


def write_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    clearance: Mapping[str, Any] | None = None,
    **notes: Any,
) -> None:
    """Write a motion file.

    Args:
        motion: Motion to be written.
        path: File to write.
        clearance: Cell, limits, approach and digests, made by `clearance.clearance_block`.
        notes: Further data under "notes": robot, mounting, criterion, ...
    """
    data = motion_to_dict(motion)
    if notes:
        data["notes"] = notes
    if clearance is not None:
        data["clearance"] = dict(clearance)
    write_json(path, data)


def read_motion(path: str | os.PathLike[str]) -> Motion:
    """Read a motion file written by `write_motion`."""
    return motion_from_dict(read_json(path, "a JSON motion file"), str(path))
