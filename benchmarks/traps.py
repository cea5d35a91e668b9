"""Recordings with one thing wrong: every mistake a user makes sooner or later.

A trap changes the numbers of a good recording (`Log`), or the robot it is fitted with, and says by
which kinds of finding, or by which words of a refusal, it must be named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Log:
    """The numbers of a recording, to be spoilt.

    Attributes:
        t, q, v, s: Time, position, velocity (None for none), torque signal.
        more: Further columns of the map, e.g. target_current.
        page: What the column map says besides its columns.
        robot: Name it is fitted with.
        mounting: That the user declares.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray | None
    s: np.ndarray
    quantity: str = "torque"
    more: dict[str, np.ndarray] = field(default_factory=dict)
    page: dict[str, Any] = field(default_factory=dict)
    robot: str = ""
    mounting: str | None = None
    nominal: Any = None

    def copy(self) -> Log:
        return Log(
            self.t.copy(),
            self.q.copy(),
            None if self.v is None else self.v.copy(),
            self.s.copy(),
            self.quantity,
            {key: value.copy() for key, value in self.more.items()},
            dict(self.page),
            self.robot,
            self.mounting,
            self.nominal,
        )


@dataclass(frozen=True)
class Trap:
    """Attributes:
    name: Of the mistake.
    spoil: Changes a log in place.
    kinds: Of findings that name it rightly.
    words: Of a refusal that names it rightly, as a regular expression.
    harmless: Whether a fit may pass without a word if its error stays low.
    """

    name: str
    spoil: Callable[[Log], None]
    kinds: frozenset[str] = frozenset()
    words: str = r"(?!)"
    harmless: bool = False


TRAPS: list[Trap] = []


def trap(name: str, *kinds: str, words: str = r"(?!)", harmless: bool = False) -> Any:
    def add(spoil: Callable[[Log], None]) -> Callable[[Log], None]:
        TRAPS.append(Trap(name, spoil, frozenset(kinds), words, harmless))
        return spoil

    return add


def _rows(log: Log, keep: Any) -> None:
    log.t, log.q, log.s = log.t[keep], log.q[keep], log.s[keep]
    log.v = None if log.v is None else log.v[keep]
    log.more = {key: value[keep] for key, value in log.more.items()}


def _moving(log: Log) -> np.ndarray:
    speed = np.abs(np.gradient(log.q, log.t, axis=0)).max(axis=1)
    return np.flatnonzero(speed > 0.05)


DEG = 180.0 / np.pi


@trap("degrees", "unit", words="deg")
def _(log):
    log.q *= DEG
    log.v = None if log.v is None else log.v * DEG


@trap("degrees, no velocity", "unit", words="deg")
def _(log):
    log.q *= DEG
    log.v = None


@trap("velocity in deg/s", "unit", words="deg")
def _(log):
    log.v *= DEG


@trap("velocity in rpm", "unit", words="rpm")
def _(log):
    log.v *= 60 / (2 * np.pi)


@trap("velocity of the motor", "unit", words="motor")
def _(log):
    log.v *= 101.0


@trap("velocity 1.6 times too large", "unit", "clock_scale")
def _(log):
    log.v *= 1.6


@trap("motor angles and speeds", "unit", words="motor|turns")
def _(log):
    log.q *= 101.0
    log.v *= 101.0


@trap("motor angles, no velocity", "unit", words="motor|turns")
def _(log):
    log.q *= 101.0
    log.v = None


def _as_torque(log: Log) -> None:
    """Drop what would allow `gains: auto`."""
    log.quantity = "torque"
    log.more = {}
    log.page.pop("gains", None)
    log.page["gains"] = 1.0


@trap("amperes as N m", "unit", words="gain|ampere|unit")
def _(log):
    if log.quantity == "torque":
        log.s *= 0.09
    _as_torque(log)


@trap("torque in mN m", "unit", words="gain|unit")
def _(log):
    _in_torque(log)
    log.s *= 1e3


@trap("torque of the motor", "unit", words="gain|unit|motor")
def _(log):
    _in_torque(log)
    log.s /= 101.0


@trap("torque in lbf in", "unit", words="gain|unit")
def _(log):
    _in_torque(log)
    log.s *= 8.85


def _in_torque(log: Log) -> None:
    """Torque in N m instead of current."""
    if log.quantity == "current":
        log.s = log.s * np.array([11.976, 11.976, 9.839, 10.763, 10.763, 10.763])
        _as_torque(log)


@trap("gravity subtracted", "gravity_removed")
def _(log):
    from taufit.dynamics import gravity_torque

    _in_torque(log)
    log.s = log.s - gravity_torque(log.nominal, log.q)


@trap("time in ms", "unit", words="ms|milli")
def _(log):
    log.t *= 1e3


@trap("time in us", "unit", words=r"us\b|micro")
def _(log):
    log.t *= 1e6


@trap("time in ns", "unit", words="ns|nano")
def _(log):
    log.t *= 1e9


@trap("time in ms, no velocity", "unit", words="ms|milli")
def _(log):
    log.t *= 1e3
    log.v = None


@trap("time constant", "unit", words="repeat the time stamp|stands still")
def _(log):
    log.t[:] = log.t[0]


@trap("time reversed", "time_order", words="time goes back")
def _(log):
    log.t = log.t[::-1].copy()


@trap("rows shuffled", "time_order", words="time goes back")
def _(log):
    order = np.random.default_rng(0).permutation(len(log.t))
    _rows(log, order)


@trap("log twice, time restarts", "repeated_log", words="time goes back")
def _(log):
    _rows(log, np.r_[0 : len(log.t), 0 : len(log.t)])


@trap("log twice, time goes on", "repeated_log")
def _(log):
    n, last = len(log.t), log.t[-1] - log.t[0] + np.median(np.diff(log.t))
    _rows(log, np.r_[0:n, 0:n])
    log.t[n:] += last


@trap("clock 0.8 times", "clock_scale", words="clock|rate_hz|time")
def _(log):
    log.t *= 0.8


@trap("clock 2 times", "clock_scale", words="clock|rate_hz|time")
def _(log):
    log.t *= 2.0


@trap("clock 0.8 times, no velocity", "clock_scale")
def _(log):
    log.t *= 0.8
    log.v = None


@trap("clock 0.5 times, no velocity", "clock_scale")
def _(log):
    log.t *= 0.5
    log.v = None


@trap("clock 2 times, no velocity", "clock_scale")
def _(log):
    log.t *= 2.0
    log.v = None


@trap("10 Hz", "too_slow", words="cut-off")
def _(log):
    step = max(1, round(0.1 / float(np.median(np.diff(log.t)))))
    _rows(log, slice(None, None, step))


@trap("1 row", "too_short", words="at least two|too short|rows")
def _(log):
    _rows(log, slice(0, 1))


@trap("2 rows", "too_short", words="at least|too short|too few")
def _(log):
    _rows(log, slice(0, 2))


@trap("20 rows", "too_short", words="too short|nothing moves|at least|not move")
def _(log):
    _rows(log, slice(500, 520))


@trap("islands of nan", "gap", "corrupt_rows", words="nan|no possible number")
def _(log):
    rng = np.random.default_rng(1)
    for start in rng.integers(0, len(log.t) - 60, 15):
        log.q[start : start + 40, 1] = np.nan


@trap("a channel of nan", "corrupt_rows", words="nan|no usable")
def _(log):
    log.s[:, 2] = np.nan


@trap("a gap of 3 s", "gap", "gaps")
def _(log):
    middle = 0.5 * (log.t[0] + log.t[-1])
    _rows(log, np.abs(log.t - middle) > 1.5)


def _torque_sign(j: int) -> None:
    @trap(f"torque sign of joint {j + 1}", "torque_sign")
    def _(log):
        log.s[:, j] *= -1.0


for _j in range(5):
    _torque_sign(_j)


@trap("torque sign of all joints", "torque_sign")
def _(log):
    log.s *= -1.0


@trap("velocity sign of all joints", "velocity_sign")
def _(log):
    log.v *= -1.0


@trap("velocity sign of joint 2", "velocity_sign")
def _(log):
    log.v[:, 1] *= -1.0


@trap("position and velocity sign of joint 2", "torque_sign", "joint_direction")
def _(log):
    log.q[:, 1] *= -1.0
    log.v[:, 1] *= -1.0


@trap("joint 3 counted the other way", "torque_sign", "joint_direction")
def _(log):
    log.q[:, 2] *= -1.0
    log.v[:, 2] *= -1.0
    log.s[:, 2] *= -1.0


@trap("zero of joint 2 off by 90 deg", "zero_offset", words="beyond|outside")
def _(log):
    log.q[:, 1] += np.pi / 2


@trap("zero of joint 3 off by -40 deg", "zero_offset", words="beyond|outside")
def _(log):
    log.q[:, 2] -= np.radians(40)


@trap("zero of joint 4 off by 90 deg", "zero_offset", words="beyond|outside")
def _(log):
    log.q[:, 3] += np.pi / 2


def _swap(log: Log, i: int, k: int, torque_only: bool) -> None:
    log.s[:, [i, k]] = log.s[:, [k, i]]
    for key in log.more:
        log.more[key][:, [i, k]] = log.more[key][:, [k, i]]
    if not torque_only:
        log.q[:, [i, k]] = log.q[:, [k, i]]
        if log.v is not None:
            log.v[:, [i, k]] = log.v[:, [k, i]]


@trap("joints 1 and 3 swapped (alphabet)", "swapped_joints")
def _(log):
    _swap(log, 0, 2, False)


@trap("joints 2 and 3 swapped", "swapped_joints")
def _(log):
    _swap(log, 1, 2, False)


@trap("joints 4 and 6 swapped", "swapped_joints")
def _(log):
    _swap(log, 3, 5, False)


@trap("torque of 2 and 3 swapped", "swapped_torque")
def _(log):
    _swap(log, 1, 2, True)


@trap("torque of 5 and 6 swapped", "swapped_torque")
def _(log):
    _swap(log, 4, 5, True)


@trap("torque of 1 and 2 swapped", "swapped_torque")
def _(log):
    _swap(log, 0, 1, True)


def _late(log: Log, seconds: float) -> None:
    for j in range(log.s.shape[1]):
        log.s[:, j] = np.interp(log.t - seconds, log.t, log.s[:, j])


@trap("torque 50 ms late", "delay")
def _(log):
    _late(log, 0.05)


@trap("torque 100 ms late", "delay")
def _(log):
    _late(log, 0.1)


@trap("torque 50 ms early", "delay")
def _(log):
    _late(log, -0.05)


@trap("torque clipped at 60 %", "clipping")
def _(log):
    top = 0.6 * np.abs(log.s[_moving(log)]).max(axis=0)
    log.s = np.clip(log.s, -top, top)


@trap("torque clipped at 80 %, one joint", "clipping")
def _(log):
    top = 0.8 * np.abs(log.s[_moving(log), 1]).max()
    log.s[:, 1] = np.clip(log.s[:, 1], -top, top)


@trap("encoder 3 sticks half way", "stuck_encoder")
def _(log):
    half = _middle(log, 2)
    log.q[half:, 2] = log.q[half, 2]


@trap("encoder 3 sticks half way, speed too", "stuck_encoder")
def _(log):
    half = _middle(log, 2)
    log.q[half:, 2] = log.q[half, 2]
    log.v[half:, 2] = 0.0


@trap("encoder 2 sticks for 2 s", "stuck_encoder", "jump")
def _(log):
    half = _middle(log, 1)
    end = int(np.searchsorted(log.t, log.t[half] + 2.0))
    log.q[half:end, 1] = log.q[half, 1]


def _middle(log: Log, j: int) -> int:
    """A row half way through, in which joint j moves."""
    moving = _moving(log)
    middle = moving[len(moving) // 2]
    speed = np.abs(np.gradient(log.q[:, j], log.t))
    return int(middle + np.argmax(speed[middle : middle + len(moving) // 4]))


@trap("encoder 4 stuck throughout", "stuck_encoder", "standing_joint", words="does not move")
def _(log):
    log.q[:, 3] = log.q[0, 3]
    if log.v is not None:
        log.v[:, 3] = 0.0


@trap("torque of joint 3 zero", "dead_torque")
def _(log):
    log.s[:, 2] = 0.0


@trap("torque of joint 2 constant", "dead_torque")
def _(log):
    log.s[:, 1] = float(np.mean(log.s[:, 1]))


@trap("torque quantised coarsely", "quantised", "no_variation", "dead_torque")
def _(log):
    step = 0.25 * np.ptp(log.s, axis=0).max()
    log.s = np.round(log.s / step) * step


@trap("mounted on the ceiling", "mounting")
def _(log):
    log.mounting = "ceiling"


@trap("mounted on a wall", "mounting")
def _(log):
    log.mounting = "wall"


@trap("tilted by 10 deg", "mounting")
def _(log):
    log.mounting = "10,0,0"


@trap("torque is noise", "unexplained", words="does not explain")
def _(log):
    rng = np.random.default_rng(2)
    log.s = rng.normal(0.0, 1.0, log.s.shape) * log.s.std(axis=0)


@trap("magnitudes only", "torque_sign", words="magnitude")
def _(log):
    log.s = np.abs(log.s)


@trap("wrong arm: smaller", "wrong_arm")
def _(log):
    arms = {"ur10e": "ur5e", "ur5e": "ur3e", "ur3e": "kr5", "kr5": "ur5e", "panda": "iiwa7"}
    log.robot = arms[log.robot]


@trap("wrong arm: larger", "wrong_arm")
def _(log):
    arms = {"ur10e": "kr5", "ur5e": "ur10e", "ur3e": "ur10e", "kr5": "ur10e", "panda": "iiwa14"}
    log.robot = arms[log.robot]


@trap("commanded for measured positions", harmless=True)
def _(log):
    log.q += 5e-4 * np.sin(3.0 * log.t)[:, None]
    log.v = None


def log_of(recording: Any, robot: str) -> Log:
    """A recording as numbers."""
    quantity = "current" if recording.signal_unit == "A" else "torque"
    more = {}
    page: dict[str, Any] = {"torque_side": recording.meta.get("torque_side") or "motor"}
    if quantity == "current":
        more = {
            "target_current": recording.target_current,
            "target_torque": recording.target_torque,
        }
        page["gains"] = "auto"
    if recording.torque_source == "joint_torque_sensor":
        page["torque_side"] = "link"
    from taufit.robot import read_robot

    signal = recording.signal
    if quantity == "current" and recording.gain is not None:
        page["gains"] = recording.gain.tolist()
        more = {}
    return Log(
        np.array(recording.time),
        np.array(recording.position),
        None if recording.velocity is None else np.array(recording.velocity),
        np.array(signal),
        quantity,
        {key: np.array(value) for key, value in more.items() if value is not None},
        page,
        robot,
        None,
        read_robot(robot),
    )


def page_of(log: Log) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The columns of a file by name, and its column map."""
    columns: dict[str, np.ndarray] = {"t": log.t}
    spec: dict[str, Any] = {"time": "t"}
    named = {"position": log.q, "velocity": log.v, log.quantity: log.s, **log.more}
    for quantity, values in named.items():
        if values is None:
            continue
        spec[quantity] = f"{quantity}{{joint}}"
        columns |= {f"{quantity}{j + 1}": values[:, j] for j in range(values.shape[1])}
    return columns, {"columns": spec, **log.page}


def recordings_of(log: Log, edits: Sequence[Any] = ()) -> list[Any]:
    """What a reader makes of the numbers, with the column map or with a changed one."""
    from taufit.recording import read_map
    from taufit.recording.assemble import assemble_recordings
    from taufit.recording.map.edited_map import apply_edits
    from taufit.recording.table import Table

    columns, page = page_of(log)
    table = Table.from_columns("log.csv", columns)
    return assemble_recordings(table, read_map(apply_edits(page, edits)))
