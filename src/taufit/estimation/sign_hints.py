"""Signs of single stretches that the user knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.errors import RecordingError
from taufit.signals import Samples


@dataclass(frozen=True, slots=True)
class SignHint:
    """A stretch of one joint whose sign the user knows.

    Attributes:
        joint: Counted from 0.
        t0, t1: From when to when, within the run [s].
        sign: +1 or -1.
        run: Counted from 0.
    """

    joint: int
    t0: float
    t1: float
    sign: int
    run: int = 0


def apply_hints(
    hints: Sequence[SignHint],
    samples: Samples,
    values: Float[Array, "n j"],
    known: Bool[Array, "n j"],
    borders: Bool[Array, "n j"],
) -> None:
    for hint in hints:
        if not 0 <= hint.joint < samples.joints or hint.sign not in (-1, 1):
            raise RecordingError(
                f"the sign {hint.sign:+d} given for joint {hint.joint + 1} makes no sense: joints "
                f"are 1 to {samples.joints}, signs +1 or -1."
            )
        inside = (samples.run == hint.run) & (samples.time >= hint.t0) & (samples.time <= hint.t1)
        if not np.any(inside):
            raise RecordingError(
                f"run {hint.run + 1} has no sample of joint {hint.joint + 1} between {hint.t0:g} "
                f"and {hint.t1:g} s, where a sign was given."
            )
        values[inside, hint.joint] = hint.sign * np.abs(values[inside, hint.joint])
        known[inside, hint.joint] = True
        edge = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
        borders[edge[edge < len(values)], hint.joint] = True
