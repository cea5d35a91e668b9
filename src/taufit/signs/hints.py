"""Sign hints: signs of single segments given by the user."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, TaufitError
from taufit.signals import Samples


@dataclass(frozen=True, slots=True)
class SignHint:
    """Segment of one joint with a sign given by the user.

    Attributes:
        joint: Joint index, from 0.
        t0, t1: Start and end within the run [s].
        sign: +1 or -1.
        run: Run index, from 0.
    """

    joint: int
    t0: float
    t1: float
    sign: int
    run: int = 0

    def covers(self, samples: Samples) -> Bool[Array, " n"]:
        """Mask of the samples of that segment."""
        return (samples.run == self.run) & (samples.time >= self.t0) & (samples.time <= self.t1)

    def __str__(self) -> str:
        return f"joint {self.joint + 1} at {self.t0:g}-{self.t1:g} s of run {self.run + 1}"


_HINT_PATTERN = re.compile(
    r"(?P<joint>.+):(?P<t0>[\d.]+)-(?P<t1>[\d.]+):(?P<sign>[+-])1?(?:@(?P<run>\d+))?"
)


def read_hint(text: str, joint_names: Sequence[str] = ()) -> SignHint:
    """Parse a hint JOINT:T0-T1:SIGN or, for another run than the first, JOINT:T0-T1:SIGN@RUN.

    Args:
        text: E.g. "2:3.1-4.0:+" or "elbow:3.1-4.0:-@2": joints by number or name, joints and runs
            from 1, times in seconds as in segments and warnings.
        joint_names: Joint names of the robot.
    """
    match = _HINT_PATTERN.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        t0, t1 = float(match["t0"]), float(match["t1"])
    except ValueError:
        raise TaufitError(
            f"{text!r} is not the sign of a segment: write JOINT:T0-T1:+ or JOINT:T0-T1:-, e.g. "
            "2:3.1-4.0:+, and @RUN behind it in another run than the first."
        ) from None
    name, run = match["joint"], int(match["run"] or 1)
    if name in joint_names:
        joint = list(joint_names).index(name)
    elif name.isdecimal() and 1 <= int(name) <= (len(joint_names) or int(name)):
        joint = int(name) - 1
    else:
        valid_joints = f"1 to {len(joint_names)}, or {', '.join(joint_names)}"
        raise TaufitError(
            f"there is no joint {name!r}: use {valid_joints if joint_names else 'numbers'}."
        )
    if not t0 < t1 or run < 1:
        raise TaufitError(
            f"{text!r} names no segment: it must begin before it ends, and runs count from 1."
        )
    return SignHint(joint, t0, t1, 1 if match["sign"] == "+" else -1, run - 1)


def apply_hints(
    hints: Sequence[SignHint],
    samples: Samples,
    values: Float[Array, "n j"],
    has_sign: Bool[Array, "n j"],
    borders: Bool[Array, "n j"],
) -> None:
    """Set the sign of the values of each segment, mark them as known and its ends as cuts."""
    recorded = has_sign.copy()
    hint_sign = np.zeros(values.shape, np.int8)
    for hint in hints:
        if not 0 <= hint.joint < samples.joints or hint.sign not in (-1, 1):
            raise RecordingError(
                f"the sign {hint.sign:+d} given for joint {hint.joint + 1} makes no sense: joints "
                f"are 1 to {samples.joints}, signs +1 or -1."
            )
        inside, i = hint.covers(samples), hint.joint
        if not np.any(inside):
            raise RecordingError(
                f"run {hint.run + 1} has no sample of joint {i + 1} between {hint.t0:g} "
                f"and {hint.t1:g} s, where a sign was given."
            )
        if np.any(recorded[inside, i]):
            raise RecordingError(
                f"a sign was given for {hint}, whose torque carries its own. Leave it out, or have "
                "the recorded signs set aside (signed: false in the column map)."
            )
        if np.any(hint_sign[inside, i] == -hint.sign):
            raise RecordingError(f"two opposite signs were given for {hint}. Keep the right one.")
        hint_sign[inside, i] = hint.sign
        values[inside, i] = hint.sign * np.abs(values[inside, i])
        has_sign[inside, i] = True
        edge = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
        borders[edge[edge < len(values)], i] = True
