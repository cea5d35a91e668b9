"""Curves that controllers make of a motion: its formula, a table of knots, trajectory points.

A slow period is the same path at lower speed, and a Fourier series is periodic, so neither needs a
proof of its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.clearance.curve import Curve, exact_curve, hermite
from taufit.clearance.proof import LIMIT_TOLERANCE, prove_limits
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.excitation import Fourier, LineStrokes, Motion, SampledMotion, Spline, Strokes
from taufit.excitation.robot_programs import KNOTS_S, knots
from taufit.robot import JointLimits

# Playback modes: program on the controller, streamed set points, joint trajectory.
PROGRAM, STREAM, TRAJECTORY = "program", "stream", "trajectory"
# Knot intervals of a program if coarser ones violate a limit [s], and maximum number of knots.
_FINE_KNOTS_S, _MAXIMUM_KNOTS = (0.05, 0.02), 20_000
# Tolerance of limits for cubics, whose acceleration steps at the ends; the servo smooths that.
CUBIC_TOLERANCE = 0.02
# Rate of trajectory points [Hz], and fractions of limits that count as rest.
POINTS_HZ = 50.0
_REST_SPEED, _REST_ACCELERATION = 1e-3, 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class PlaybackPart:
    """Part of a playback, as a curve.

    Attributes:
        name: Name for messages.
        curve: Joint-space curve.
        tolerance: Tolerance of its speed and acceleration limits, as a fraction.
    """

    name: str
    curve: Curve
    tolerance: float = LIMIT_TOLERANCE


def playback_parts(
    motion: Motion, limits: JointLimits, names: tuple[str, ...], mode: str
) -> tuple[tuple[PlaybackPart, ...], float]:
    """Parts of a motion in a playback mode, and the time between knots [s].

    Approaches are not included: they are straight legs, proved one by one.
    """
    parts = [PlaybackPart("the motion", exact_curve(motion))]
    knots_s = KNOTS_S
    if mode == PROGRAM and not isinstance(motion, Fourier):
        knots_s, table = _table(motion, limits, names)
        parts.append(PlaybackPart("the motion through its knots", table, CUBIC_TOLERANCE))
    if mode == TRAJECTORY:
        count = max(1, int(np.ceil(motion.duration * POINTS_HZ)))
        seconds = motion.duration
        if isinstance(motion, Fourier):
            # Points of later periods lie on the same curve.
            seconds = min(motion.duration, max(motion.period, 60.0))
            count = max(1, int(np.ceil(seconds * POINTS_HZ)))
        time = np.linspace(0.0, seconds, count + 1)
        q, v, a = motion.at(time)
        parts.append(PlaybackPart("the trajectory", hermite(time, q, v, a), CUBIC_TOLERANCE))
        parts.append(PlaybackPart("the trajectory by cubics", hermite(time, q, v), CUBIC_TOLERANCE))
    return tuple(parts), knots_s


def _table(motion: Motion, limits: JointLimits, names: tuple[str, ...]) -> tuple[float, Curve]:
    """Coarsest table of cubics that keeps the limits as well as the motion does."""
    knots_s, curve = KNOTS_S, hermite(*knots(motion, KNOTS_S))
    for fine_s in _FINE_KNOTS_S:
        if not prove_limits(curve, limits, names) or motion.duration / fine_s > _MAXIMUM_KNOTS:
            break
        knots_s, curve = fine_s, hermite(*knots(motion, fine_s))
    return knots_s, curve


def rest_reasons(motion: Motion, limits: JointLimits, names: tuple[str, ...]) -> list[str]:
    """Messages for ends of a motion that are not at rest; empty if both are."""
    messages = []
    ends = np.array([0.0, motion.duration])
    _, v, a = motion.at(ends)
    for end_name, speed, acceleration in zip(("start", "end"), v, a, strict=True):
        speed_ratio = np.abs(speed) / limits.velocity
        acceleration_ratio = np.abs(acceleration) / limits.acceleration
        joint = int(speed_ratio.argmax())
        if speed_ratio[joint] > _REST_SPEED:
            messages.append(
                f"the motion is not at rest at its {end_name}: {names[joint]} moves at "
                f"{abs(speed[joint]):.3g} rad/s there{_period_remedy(motion, end_name)}"
            )
            continue
        joint = int(acceleration_ratio.argmax())
        if acceleration_ratio[joint] > _REST_ACCELERATION:
            messages.append(
                f"the motion is not at rest at its {end_name}: {names[joint]} accelerates by "
                f"{abs(acceleration[joint]):.3g} rad/s^2 there{_period_remedy(motion, end_name)}"
            )
    return messages


def _period_remedy(motion: Motion, end_name: str) -> str:
    periods = getattr(motion, "periods", 1.0)
    is_partial = end_name == "end" and abs(periods - round(periods)) > 1e-9
    return "; play whole periods (--periods)" if is_partial else ""


def shift_by_turns(motion: Motion, turns: Float[Array, " j"]) -> Motion:
    """Copy of a motion with joints shifted by full turns."""
    shift = 2.0 * np.pi * np.asarray(turns, float)
    if isinstance(motion, Fourier):
        return replace(motion, offset=motion.offset + shift)
    if isinstance(motion, Spline):
        return replace(motion, control=motion.control + shift)
    if isinstance(motion, SampledMotion):
        return SampledMotion(motion.time, motion.position + shift)
    if isinstance(motion, Strokes):
        return Strokes(
            motion.pose + shift, motion.joint, motion.displacement, motion.speed, motion.ramp
        )
    if isinstance(motion, LineStrokes):
        return replace(motion, pose=motion.pose + shift)
    raise TaufitError(f"a motion of type {type(motion).__name__} cannot be turned.")


def turns_towards(
    motion: Motion, pose: Float[Array, " j"], limits: JointLimits, revolute: Array
) -> Float[Array, " j"]:
    """Full turns of each joint that bring the start nearest to a pose, within the limits."""
    q = motion.at(np.linspace(0.0, motion.duration, 2000))[0]
    low, high = q.min(axis=0), q.max(axis=0)
    start = motion.at(np.zeros(1))[0][0]
    turns = np.zeros(len(start))
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
        turns[joint] = min(
            choices, key=lambda turn: abs(start[joint] + 2 * np.pi * turn - pose[joint])
        )
    return turns
