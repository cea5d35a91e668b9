"""Motions for other purposes than inertial parameters: friction strokes, warm-up, envelopes."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import InfeasibleError
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.sampled import Sampled
from taufit.robot import Limits, Robot

# Constant speeds of paper F's friction tests [deg/s].
PAPER_SPEEDS_DEG = (
    *(0.1, 0.2, 0.4, 0.5, 0.8, 1, 1.2, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5, 5),
    *(6, 8, 10, 12, 15, 16, 20, 25, 30),
)


def friction_strokes(
    robot: Robot,
    joint: int,
    speeds: Float[Array, " s"],
    *,
    pose: Float[Array, " j"],
    stroke: float = 0.4,
    acceleration: float = 4.0,
    longest_s: float = 20.0,
) -> Sampled:
    """One joint to and fro at constant speeds, the others still.

    Forward and backward pass the same positions at the same speed, so that half their difference
    is friction alone. A slow stroke is cut to what fits in `longest_s`.

    Args:
        robot: The arm, for its limits.
        joint: Which joint moves, from 0.
        speeds: Magnitudes [rad/s].
        pose: Where the others stay, and the middle of the strokes.
        stroke: Length of a slow stroke [rad].
        acceleration: At the turns [rad/s^2].
        longest_s: Longest time for one stroke.
    """
    speeds = np.asarray(speeds, float)
    if not (np.all(np.isfinite(speeds)) and np.all(speeds > 0) and len(speeds)):
        raise InfeasibleError("friction strokes need positive speeds.")
    if np.any(speeds > robot.limits.velocity[joint]):
        raise InfeasibleError(
            f"a stroke at {speeds.max():.3g} rad/s is faster than joint {joint + 1} may move "
            f"({robot.limits.velocity[joint]:.3g} rad/s)."
        )
    # Fast strokes get the length that half a second of steady speed takes.
    steady = speeds * (0.5 + 2.0 * speeds / acceleration)
    halves = 0.5 * np.maximum(np.minimum(stroke, speeds * longest_s), steady)
    moves: list[tuple[float, float]] = []
    for speed, half in zip(speeds, halves, strict=True):
        moves += [(-half, max(speed, 0.1)), (half, speed), (-half, speed)]
    moves.append((0.0, 0.1))
    times, positions = [np.zeros(1)], [np.zeros(1)]
    for target, speed in moves:
        here = positions[-1][-1]
        if abs(target - here) < 1e-9:
            continue
        t, q = _trapezoid(abs(target - here), speed, acceleration)
        times.append(times[-1][-1] + t[1:])
        positions.append(here + np.sign(target - here) * q[1:])
    moved = np.concatenate(positions)
    low, high = robot.limits.lower[joint], robot.limits.upper[joint]
    if pose[joint] + moved.min() < low or pose[joint] + moved.max() > high:
        raise InfeasibleError(
            f"strokes of {stroke:.3g} rad about {pose[joint]:.3g} leave the range of joint "
            f"{joint + 1} [{low:.3g}, {high:.3g}]; give another pose or a shorter stroke."
        )
    q = np.tile(np.asarray(pose, float), (len(moved), 1))
    q[:, joint] += moved
    return Sampled(np.concatenate(times), q)


def _trapezoid(
    travel: float, speed: float, acceleration: float
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Time and position of a rest-to-rest move with smooth turns (jerk-free at the ends)."""
    ramp = min(speed / acceleration * 2.0, travel / speed)
    duration = travel / speed + ramp
    count = int(np.clip(duration * 100, 24, 4000))
    t = np.linspace(0.0, duration, count)

    def reached(x: Float[Array, " n"]) -> Float[Array, " n"]:
        # Integral of a smooth step of length `ramp`: s - sin(2 pi s)/(2 pi), integrated.
        s = np.clip(x / ramp, 0.0, 1.0)
        inside = ramp * (s**2 / 2 + (np.cos(2 * np.pi * s) - 1) / (4 * np.pi**2))
        return inside + np.maximum(x - ramp, 0.0)

    q = speed * (reached(t) - reached(t - (duration - ramp)))
    return t, q


def warm_up(
    robot: Robot, limits: Limits, *, centre: Float[Array, " j"], minutes: float = 10.0
) -> Fourier:
    """All joints to and fro at 70 % of their speed, at different rhythms, for some minutes."""
    joints = robot.joints
    frequency = 0.05
    harmonics = 6
    sine, cosine = np.zeros((joints, harmonics)), np.zeros((joints, harmonics))
    for i in range(joints):
        k = 2 + i % 4
        room = min(limits.upper[i] - centre[i], centre[i] - limits.lower[i])
        w = 2 * np.pi * frequency * k
        amplitude = 0.7 * min(limits.velocity[i] / w, limits.acceleration[i] / w**2, room) / 2
        # Two neighbouring harmonics that cancel in velocity and acceleration at the ends.
        cosine[i, k - 1] = amplitude
        cosine[i, k] = -amplitude * (k / (k + 1)) ** 2
    offset = centre + cosine.sum(1)
    periods = max(1, round(minutes * 60 * frequency))
    return Fourier(offset, sine, cosine, frequency, "amplitude", float(periods))


def envelope_of(motion: Motion, torque: Float[Array, " j"] | None = None) -> Limits:
    """The range, speeds and accelerations another motion uses, as limits for a new one."""
    q, v, a = motion.at(np.linspace(0.0, motion.duration, 20001))
    return Limits(
        q.min(0),
        q.max(0),
        np.abs(v).max(0),
        np.abs(a).max(0),
        np.full(motion.joints, np.inf) if torque is None else torque,
    )
