"""Playback of a motion on a robot: parts common to all controllers."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.wire.source import SampleBlock

# Phases of a playback: approach, slow run and warm-up, recorded motion, end.
APPROACH, PREPARATION, RECORDED, FINISHED = 1, 2, 3, 4
# Written by a program that did not find the robot at its expected start.
WRONG_START = 6
# Standstill before and after the motion [s].
_STANDSTILL_S = 0.5
# Approach and return: speed [rad/s], acceleration [rad/s^2], and minimum duration of a leg sent as
# points [s].
APPROACH_SPEED, APPROACH_ACCELERATION = 0.3, 0.5
_MIN_LEG_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class MotionRanges:
    """Ranges of a motion, shown before the robot moves.

    Attributes:
        lower, upper: Position range [rad].
        speed, acceleration: Largest speeds and accelerations [rad/s], [rad/s^2].
        duration: Duration [s].
        start: Start position.
    """

    lower: Float[Array, " j"]
    upper: Float[Array, " j"]
    speed: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    duration: float
    start: Float[Array, " j"]

    @classmethod
    def from_samples(
        cls,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        duration: float,
    ) -> MotionRanges:
        """Ranges of a densely sampled motion."""
        return cls(
            position.min(0),
            position.max(0),
            np.abs(velocity).max(0),
            np.abs(acceleration).max(0),
            duration,
            position[0].copy(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Approach:
    """Straight legs in joint space to the start of a motion, with a stop after each.

    Attributes:
        poses: Poses from the current one to the start.
        speed: Largest joint speed [rad/s].
        acceleration: Largest joint acceleration [rad/s^2].
    """

    poses: Float[Array, "n j"]
    speed: float = APPROACH_SPEED
    acceleration: float = APPROACH_ACCELERATION

    @property
    def leg_durations(self) -> Float[Array, " m"]:
        """Duration of each leg from standstill to standstill [s].

        10 s^3 - 15 s^4 + 6 s^5 peaks at 15/8 of its mean speed and at 10/sqrt(3) travel/time^2; a
        cubic stays below both.
        """
        travel = np.abs(np.diff(self.poses, axis=0)).max(axis=1)
        by_speed = 1.875 * travel / self.speed
        by_acceleration = np.sqrt(10.0 / np.sqrt(3.0) * travel / self.acceleration)
        return np.maximum(np.maximum(by_speed, by_acceleration), _MIN_LEG_S)

    @property
    def duration(self) -> float:
        """Duration of all legs [s]."""
        return float(self.leg_durations.sum())

    def motion_states(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration along the legs."""
        legs = self.leg_durations
        edges = np.concatenate([[0.0], np.cumsum(legs)])
        time = np.clip(time, 0.0, edges[-1])
        k = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(legs) - 1)
        seconds = legs[k][:, None]
        s = np.clip((time - edges[k])[:, None] / seconds, 0.0, 1.0)
        travel = self.poses[k + 1] - self.poses[k]
        q = self.poses[k] + travel * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        v = travel * 30.0 * s**2 * (1.0 - s) ** 2 / seconds
        a = travel * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / seconds**2
        return q, v, a


@runtime_checkable
class PlayableMotion(Protocol):
    """Motion: position, velocity and acceleration at any time; standstill outside its duration."""

    @property
    def duration(self) -> float: ...

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]: ...


class _PlaybackPhase(NamedTuple):
    """Phase of a playback: the motion at a fraction of its speed, standstill, or the return."""

    phase: int
    seconds: float
    pace: float
    segment: str


@dataclass(frozen=True, slots=True, eq=False)
class Playback:
    """Sequence of a playback from its start pose: slow run, warm-up, recorded motion.

    Attributes:
        motion: Motion to be recorded.
        slow: Fraction of the speed of a first run (one period, if periodic); 0 for none.
        warm_up_s: Minimum duration of the warm-up [s].
        period: Period of a periodic motion [s]; None for any other.
        return_path: Legs from its end to its start; None for one straight leg.
    """

    motion: PlayableMotion
    slow: float = 0.0
    warm_up_s: float = 0.0
    period: float | None = None
    return_path: Approach | None = None

    @property
    def phases(self) -> tuple[_PlaybackPhase, ...]:
        """Phases in order."""
        cycle_s = self.motion.duration if self.period is None else self.period
        ends = self.motion.at(np.array([0.0, cycle_s]))[0]
        travel = float(np.abs(ends[1] - ends[0]).max())
        return_phases = []
        if travel > 1e-6:
            return_phases = [_PlaybackPhase(PREPARATION, self._path_to_start.duration, 1.0, "back")]
        standstill = _PlaybackPhase(PREPARATION, _STANDSTILL_S, 0.0, "start")
        out: list[_PlaybackPhase] = []
        if self.slow > 0.0:
            out += [
                _PlaybackPhase(PREPARATION, cycle_s / self.slow, self.slow, "motion"),
                *return_phases,
                standstill,
            ]
        for _ in range(int(np.ceil(self.warm_up_s / cycle_s))):
            out += [_PlaybackPhase(PREPARATION, cycle_s, 1.0, "motion"), *return_phases]
        return (
            *out,
            _PlaybackPhase(RECORDED, _STANDSTILL_S, 0.0, "start"),
            _PlaybackPhase(RECORDED, self.motion.duration, 1.0, "motion"),
            _PlaybackPhase(RECORDED, _STANDSTILL_S, 0.0, "end"),
        )

    @property
    def _path_to_start(self) -> Approach:
        """Legs from the end to the start."""
        if self.return_path is not None:
            return self.return_path
        return Approach(self.motion.at(np.array([self.motion.duration + 1.0, -1.0]))[0])

    @property
    def duration(self) -> float:
        """Total duration [s]."""
        return float(sum(part.seconds for part in self.phases))

    @property
    def start(self) -> Float[Array, " j"]:
        """Start position, at which the robot must be."""
        first: Float[Array, " j"] = self.motion.at(np.zeros(1))[0][0]
        return first

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Int[Array, " n"], Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Phase, position, velocity, acceleration; APPROACH before 0, FINISHED at the end."""
        time = np.asarray(time, float)
        parts = self.phases
        edges = np.cumsum([0.0, *(part.seconds for part in parts)])
        number = np.searchsorted(edges, time, side="right") - 1
        phase = np.full(len(time), FINISHED)
        phase[number < 0] = APPROACH
        # Outside its duration the motion stands at its ends.
        q, v, a = self.motion.at(np.where(number < 0, -1.0, self.motion.duration + 1.0))
        for k, part in enumerate(parts):
            in_part = number == k
            if not in_part.any():
                continue
            phase[in_part] = part.phase
            part_time = time[in_part] - edges[k]
            if part.segment == "back":
                q[in_part], v[in_part], a[in_part] = self._path_to_start.motion_states(part_time)
                continue
            inner = {"start": 0.0 * part_time - 1.0, "end": part_time + self.motion.duration}
            motion_state = self.motion.at(inner.get(part.segment, part.pace * part_time))
            q[in_part] = motion_state[0]
            v[in_part], a[in_part] = part.pace * motion_state[1], part.pace**2 * motion_state[2]
        return phase, q, v, a


@runtime_checkable
class Player(Protocol):
    """Plays a motion and monitors it by the received samples."""

    @property
    def notices(self) -> PlaybackNotices: ...

    def prepare(self) -> None:
        """Connect to the controller; nothing moves."""
        ...

    def start(self) -> None:
        """Start the motion."""
        ...

    def check_progress(self, block: SampleBlock) -> str | None:
        """Reason to end the recording ("" when the motion is over), or None to continue."""
        ...

    def rows_to_record(self, block: SampleBlock) -> SampleBlock | None:
        """Rows of a block that belong to the recording."""
        ...

    def stop(self) -> None:
        """Stop the robot."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PlaybackGuard:
    """Limits that the robot must keep during playback.

    Attributes:
        names: Joint names.
        lower, upper: Position range of the playback [rad].
        velocity: Largest speeds [rad/s].
        margin: Tolerance beyond the range [rad].
        allowed_lag: Largest delay of a servo behind its command [s], and error at standstill [rad].
    """

    names: tuple[str, ...]
    lower: Float[Array, " j"]
    upper: Float[Array, " j"]
    velocity: Float[Array, " j"]
    margin: float = 0.1
    allowed_lag: tuple[float, float] = (0.06, 0.1)

    def find_violation(self, block: SampleBlock) -> str | None:
        """Description of the first limit that samples violate; None if there is none."""
        q = block.values["position"]
        range_excess = np.maximum(q - self.upper, self.lower - q).max(axis=0) - self.margin
        if range_excess.max() > 0.0:
            return f"{self.names[int(range_excess.argmax())]} left the range of the motion"
        v = block.values.get("velocity")
        if v is not None:
            speed_excess = np.abs(v).max(axis=0) - (1.1 * self.velocity + 0.05)
            if speed_excess.max() > 0.0:
                return f"{self.names[int(speed_excess.argmax())]} moved faster than its limit"
        command, speed = (block.values.get(f"commanded_{x}") for x in ("position", "velocity"))
        if command is not None and speed is not None:
            seconds, static_error = self.allowed_lag
            tracking_excess = (
                np.abs(command - q) - static_error - seconds * np.abs(speed).max(axis=0)
            )
            if tracking_excess.max() > 0.0:
                joint = int(tracking_excess.max(axis=0).argmax())
                return f"{self.names[joint]} does not follow its command"
        return None


@dataclass(slots=True)
class PlaybackNotices:
    """Notices during a playback, each once."""

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if text not in self.texts and len(self.texts) < 100:
            self.texts.append(text)


def select_rows(block: SampleBlock, keep: Array) -> SampleBlock | None:
    """Rows of a block; None if there are none."""
    if not keep.any():
        return None
    return SampleBlock(
        block.time[keep],
        {name: values[keep] for name, values in block.values.items()},
        {name: values[keep] for name, values in block.status.items()},
    )
