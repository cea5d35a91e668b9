"""Consecutive moves of single joints, each at constant speed with smooth ramps.

A move of length x at speed v ramps up and down within r and lasts T = x/v + r; with the smooth step
S(u) = u - sin(2 pi u)/(2 pi), u = t/r between 0 and 1,

    velocity = v (S(t) - S(t - (T - r))),      largest acceleration = 2 v/r.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError

_MINIMUM_RAMP_S = 0.1
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Strokes:
    """Moves of single joints about a pose, with a short rest after each.

    Attributes:
        pose: Start pose [rad or m].
        joint: Joint of each move, from 0.
        displacement: Displacement of that joint from the pose at the end of the move [rad or m].
        speed: Speed of the constant part [rad/s].
        ramp: Duration of each ramp [s].
    """

    pose: Float[Array, " j"]
    joint: Int[Array, " m"]
    displacement: Float[Array, " m"]
    speed: Float[Array, " m"]
    ramp: Float[Array, " m"]
    _begin: Float[Array, " m"] = field(init=False, repr=False)
    _from: Float[Array, " m"] = field(init=False, repr=False)
    _standing: Float[Array, "m j"] = field(init=False, repr=False)

    @classmethod
    def of(
        cls, pose: Float[Array, " j"], moves: Sequence[tuple[int, float, float, float]]
    ) -> Strokes:
        """Make strokes of (joint, displacement, speed, acceleration); short ones are slowed."""
        position = np.zeros(len(pose))
        strokes = []
        for joint, target, speed, acceleration in moves:
            travel = abs(target - position[joint])
            if travel < 1e-6:
                continue
            v = min(speed, travel / _MINIMUM_RAMP_S, float(np.sqrt(0.5 * acceleration * travel)))
            strokes.append((joint, target, v, max(_MINIMUM_RAMP_S, 2.0 * v / acceleration)))
            position[joint] = target
        joints, *values = zip(*strokes, strict=True)
        return cls(np.asarray(pose, float), np.array(joints, int), *(np.array(x) for x in values))

    def __post_init__(self) -> None:
        values = (self.pose, self.displacement, self.speed, self.ramp)
        if not all(np.all(np.isfinite(x)) for x in values) or len(self.joint) == 0:
            raise TaufitError("a motion of strokes needs finite numbers and at least one move.")
        lengths = {len(self.joint), len(self.displacement), len(self.speed), len(self.ramp)}
        if len(lengths) != 1 or np.any((self.joint < 0) | (self.joint >= len(self.pose))):
            raise TaufitError("every stroke has a joint of the arm, a target, a speed and a ramp.")
        if np.any(self.speed <= 0) or np.any(self.ramp <= 0):
            raise TaufitError("speeds and ramps of strokes must be positive.")
        position = np.zeros(len(self.pose))
        begin, start, standing, clock = [], [], [], 0.0
        for k, joint in enumerate(self.joint):
            begin.append(clock)
            start.append(position[joint])
            standing.append(position.copy())
            travel = abs(self.displacement[k] - position[joint])
            clock += travel / self.speed[k] + self.ramp[k] + _PAUSE_S
            position[joint] = self.displacement[k]
        object.__setattr__(self, "_begin", np.array([*begin, clock]))
        object.__setattr__(self, "_from", np.array(start))
        object.__setattr__(self, "_standing", np.array(standing))

    @property
    def joints(self) -> int:
        return len(self.pose)

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self._begin[-1])

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration at times [s]; standing before 0 and after `duration`."""
        t = np.clip(np.asarray(time, float), 0.0, self.duration)
        k = np.clip(np.searchsorted(self._begin, t, side="right") - 1, 0, len(self.joint) - 1)
        travel = self.displacement[k] - self._from[k]
        ramp, speed = self.ramp[k], self.speed[k]
        constant_time = np.abs(travel) / speed
        stroke_time = t - self._begin[k]
        q = self.pose + self._standing[k]
        v, a = np.zeros_like(q), np.zeros_like(q)
        rows = np.arange(len(t))
        up, down = _smooth_step(stroke_time, ramp), _smooth_step(stroke_time - constant_time, ramp)
        sign = np.sign(travel) * speed
        q[rows, self.joint[k]] += sign * (up[0] - down[0])
        v[rows, self.joint[k]] = sign * (up[1] - down[1])
        a[rows, self.joint[k]] = sign * (up[2] - down[2])
        return q, v, a

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` returns the same motion."""
        return {
            "pose": self.pose.tolist(),
            "joint": (self.joint + 1).tolist(),
            "displacement": self.displacement.tolist(),
            "speed": self.speed.tolist(),
            "ramp": self.ramp.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Strokes:
        """Inverse of `to_dict`."""
        return cls(
            np.array(data["pose"], float),
            np.array(data["joint"], int) - 1,
            np.array(data["displacement"], float),
            np.array(data["speed"], float),
            np.array(data["ramp"], float),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LineStrokes:
    """Strokes of all joints at once along a line in joint space: q = pose + direction s(t).

    Played backwards, the line has the same positions and accelerations and opposite velocities.

    Attributes:
        pose: Pose at s = 0 [rad or m].
        direction: Displacement of every joint per unit of s.
        path: Strokes of s.
    """

    pose: Float[Array, " j"]
    direction: Float[Array, " j"]
    path: Strokes

    def __post_init__(self) -> None:
        if self.pose.shape != self.direction.shape or self.path.joints != 1:
            raise TaufitError("strokes along a line need a direction per joint and one path.")
        if not (np.all(np.isfinite(self.pose)) and np.all(np.isfinite(self.direction))):
            raise TaufitError("strokes along a line need finite numbers.")

    @property
    def joints(self) -> int:
        return len(self.pose)

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.path.duration

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration at times [s]; standing before 0 and after `duration`."""
        s, v, a = (values * self.direction for values in self.path.at(time))
        return self.pose + s, v, a

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` returns the same motion."""
        return {
            "pose": self.pose.tolist(),
            "direction": self.direction.tolist(),
            "path": self.path.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LineStrokes:
        """Inverse of `to_dict`."""
        return cls(
            np.array(data["pose"], float),
            np.array(data["direction"], float),
            Strokes.from_dict(data["path"]),
        )


def _smooth_step(t: Float[Array, " n"], ramp: Float[Array, " n"]) -> tuple[Array, Array, Array]:
    """Integral, value and slope of a smooth step of length `ramp` that begins at 0."""
    u = np.clip(t / ramp, 0.0, 1.0)
    turn = 2.0 * np.pi * u
    integral = ramp * (u**2 / 2 + (np.cos(turn) - 1.0) / (4 * np.pi**2))
    integral = integral + np.maximum(t - ramp, 0.0)
    slope = np.where((t > 0) & (t < ramp), (1.0 - np.cos(turn)) / ramp, 0.0)
    return integral, u - np.sin(turn) / (2 * np.pi), slope
