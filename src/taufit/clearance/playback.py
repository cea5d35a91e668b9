"""Curves that controllers make of a motion: its formula, a table of knots, trajectory points.

A slow period is the same path at lower speed, and a Fourier series is periodic, so neither needs a
proof of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.clearance.curve import Curve, curve_of, hermite
from taufit.clearance.proof import SHARE, prove_limits
from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.excitation import Fourier, Motion, Sampled, Spline, Strokes
from taufit.excitation.robot_programs import KNOTS_S, knots
from taufit.robot import Limits

# Playback modes: program on the controller, streamed set points, joint trajectory.
PROGRAM, STREAM, TRAJECTORY = "program", "stream", "trajectory"
# Knot intervals of a program if coarser ones violate a limit [s], and maximum number of knots.
_FINER_S, _MOST_KNOTS = (0.05, 0.02), 20_000
# Tolerance of limits for cubics, whose acceleration steps at the ends; the servo smooths that.
CUBIC_SHARE = 0.02
# Rate of trajectory points [Hz], and fractions of limits that count as rest.
POINTS_HZ = 50.0
_REST_SPEED, _REST_ACCELERATION = 1e-3, 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Part of a playback, as a curve.

    Attributes:
        name: Name for messages.
        curve: Joint-space curve.
        share: Tolerance of its speed and acceleration limits, as a fraction.
    """

    name: str
    curve: Curve
    share: float = SHARE


def parts_of(
    motion: Motion, limits: Limits, names: tuple[str, ...], way: str
) -> tuple[tuple[Part, ...], float]:
    """Parts of a motion in a playback mode, and the time between knots [s].

    Approaches are not included: they are straight legs, proved one by one.
    """
    parts = [Part("the motion", curve_of(motion))]
    between = KNOTS_S
    if way == PROGRAM and not isinstance(motion, Fourier):
        between, table = _table(motion, limits, names)
        parts.append(Part("the motion through its knots", table, CUBIC_SHARE))
    if way == TRAJECTORY:
        count = max(1, int(np.ceil(motion.duration * POINTS_HZ)))
        seconds = motion.duration
        if isinstance(motion, Fourier):
            # Points of later periods lie on the same curve.
            seconds = min(motion.duration, max(motion.period, 60.0))
            count = max(1, int(np.ceil(seconds * POINTS_HZ)))
        time = np.linspace(0.0, seconds, count + 1)
        q, v, a = motion.at(time)
        parts.append(Part("the trajectory", hermite(time, q, v, a), CUBIC_SHARE))
        parts.append(Part("the trajectory by cubics", hermite(time, q, v), CUBIC_SHARE))
    return tuple(parts), between


def _table(motion: Motion, limits: Limits, names: tuple[str, ...]) -> tuple[float, Curve]:
    """Coarsest table of cubics that keeps the limits as well as the motion does."""
    between, curve = KNOTS_S, hermite(*knots(motion, KNOTS_S))
    for finer in _FINER_S:
        if not prove_limits(curve, limits, names) or motion.duration / finer > _MOST_KNOTS:
            break
        between, curve = finer, hermite(*knots(motion, finer))
    return between, curve


def rest_reasons(motion: Motion, limits: Limits, names: tuple[str, ...]) -> list[str]:
    """Messages for ends of a motion that are not at rest; empty if both are."""
    out = []
    ends = np.array([0.0, motion.duration])
    _, v, a = motion.at(ends)
    for where, speed, acceleration in zip(("start", "end"), v, a, strict=True):
        fast = np.abs(speed) / limits.velocity
        hard = np.abs(acceleration) / limits.acceleration
        joint = int(fast.argmax())
        if fast[joint] > _REST_SPEED:
            out.append(
                f"the motion is not at rest at its {where}: {names[joint]} moves at "
                f"{abs(speed[joint]):.3g} rad/s there{_whole_periods(motion, where)}"
            )
            continue
        joint = int(hard.argmax())
        if hard[joint] > _REST_ACCELERATION:
            out.append(
                f"the motion is not at rest at its {where}: {names[joint]} accelerates by "
                f"{abs(acceleration[joint]):.3g} rad/s^2 there{_whole_periods(motion, where)}"
            )
    return out


def _whole_periods(motion: Motion, where: str) -> str:
    periods = getattr(motion, "periods", 1.0)
    broken = where == "end" and abs(periods - round(periods)) > 1e-9
    return "; play whole periods (--periods)" if broken else ""


def turned(motion: Motion, turns: Float[Array, " j"]) -> Motion:
    """Copy of a motion with joints shifted by full turns."""
    shift = 2.0 * np.pi * np.asarray(turns, float)
    if isinstance(motion, Fourier):
        return replace(motion, offset=motion.offset + shift)
    if isinstance(motion, Spline):
        return replace(motion, control=motion.control + shift)
    if isinstance(motion, Sampled):
        return Sampled(motion.time, motion.position + shift)
    if isinstance(motion, Strokes):
        return Strokes(
            motion.pose + shift, motion.joint, motion.displacement, motion.speed, motion.ramp
        )
    raise TaufitError(f"a motion of type {type(motion).__name__} cannot be turned.")


def turns_towards(
    motion: Motion, here: Float[Array, " j"], limits: Limits, revolute: Array
) -> Float[Array, " j"]:
    """Full turns of each joint that bring the start nearest to a pose, within the limits."""
    q = motion.at(np.linspace(0.0, motion.duration, 2000))[0]
    low, high = q.min(axis=0), q.max(axis=0)
    start = motion.at(np.zeros(1))[0][0]
    out = np.zeros(len(start))
    for joint in np.flatnonzero(revolute):
        choices = [
            turn
            for turn in (-2, -1, 0, 1, 2)
            if turn == 0
            or (
                low[joint] + 2 * np.pi * turn >= limits.lower[joint]
                and high[joint] + 2 * np.pi * turn <= limits.upper[joint]
            )
        ]
        out[joint] = min(
            choices, key=lambda turn: abs(start[joint] + 2 * np.pi * turn - here[joint])
        )
    return out
