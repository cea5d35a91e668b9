"""Motion commands of URScript: generators that move the target, one control step per yield."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.values import Value, number, show

if TYPE_CHECKING:
    from taufit.virtual.controllers.ur_controller import UrController

Steps = Generator[None, None, None]


def joints(value: Value, count: int = 6) -> Float[Array, " j"]:
    """A list of joint values, or an error."""
    if not isinstance(value, list) or len(value) != count:
        raise ScriptError(f"a list of {count} numbers expected, found {show(value)}.")
    out = np.array([number(x) for x in value], float)
    if not np.all(np.isfinite(out)):
        raise ScriptError(f"numbers that are not finite: {show(value)}.")
    return out


def positive(value: Value, name: str) -> float:
    """A positive number, or an error."""
    out = float(number(value))
    if not (math.isfinite(out) and out > 0.0):
        raise ScriptError(f"{name} = {show(value)}; a positive number is expected.")
    return out


def seconds(value: Value, name: str = "t") -> float:
    """A time that a program may wait, or an error."""
    out = float(number(value))
    if not 0.0 <= out <= 1e6:
        raise ScriptError(f"{name} = {show(value)}; a time in seconds is expected.")
    return out


def movej(
    robot: UrController, q: Value, a: Value = 1.4, v: Value = 1.05, t: Value = 0, r: Value = 0
) -> Steps:
    """To a joint position with trapezoids of speed; the joint with the longest way sets the pace.

    With T the time and b the share of it spent speeding up, the way done after share s is
    s^2 / (2 b (1 - b)), then (s - b / 2) / (1 - b), and the mirror image at the end.
    """
    goal, speed, rate = joints(q), positive(v, "v"), positive(a, "a")
    given = seconds(t)
    start = robot.target.copy()
    way = float(np.abs(goal - start).max())
    if way == 0.0:
        yield
        return
    if given > 0.0:
        total, share = given, 0.25
    elif way * rate > speed**2:
        total = way / speed + speed / rate
        share = speed / rate / total
    else:
        total, share = 2.0 * math.sqrt(way / rate), 0.5
    done = 0.0
    while done < total:
        done = min(total, done + robot.step * robot.speed_scaling)
        s = done / total
        if s < share:
            part = s * s / (2.0 * share * (1.0 - share))
        elif s <= 1.0 - share:
            part = (s - 0.5 * share) / (1.0 - share)
        else:
            part = 1.0 - (1.0 - s) ** 2 / (2.0 * share * (1.0 - share))
        robot.command(start + part * (goal - start))
        yield


def servoj(
    robot: UrController,
    q: Value,
    a: Value = 0,
    v: Value = 0,
    t: Value = 0.002,
    lookahead_time: Value = 0.1,
    gain: Value = 300,
) -> Steps:
    """A set point, held for t; the arm follows it as `UrController.follow` says."""
    goal = joints(q)
    ahead, stiffness = positive(lookahead_time, "lookahead_time"), positive(gain, "gain")
    if not 0.03 <= ahead <= 0.2 or not 100 <= stiffness <= 2000:
        raise ScriptError(
            f"lookahead_time {ahead:g} and gain {stiffness:g}; 0.03 to 0.2 s and 100 to 2000 are "
            "possible."
        )
    for _ in range(max(1, round(seconds(t) / robot.step))):
        robot.command(goal, servo=(stiffness, ahead))
        yield


def speedj(robot: UrController, qd: Value, a: Value = 1.4, t: Value = 0) -> Steps:
    """Towards joint speeds; for t seconds, or until they are reached."""
    goal, change = joints(qd), positive(a, "a") * robot.step
    left = round(seconds(t) / robot.step)
    while True:
        wanted = goal * robot.speed_scaling
        robot.accelerate(np.clip(wanted - robot.target_speed, -change, change))
        yield
        left -= 1
        reached = float(np.abs(goal * robot.speed_scaling - robot.target_speed).max()) < 1e-9
        if left <= 0 and (t or reached):
            return


def stopj(robot: UrController, a: Value = 2.0) -> Steps:
    """To rest; all joints arrive together."""
    rate = positive(a, "a")
    while float(np.abs(robot.target_speed).max()) > 1e-12:
        fastest = float(np.abs(robot.target_speed).max())
        robot.accelerate(-robot.target_speed * min(1.0, rate * robot.step / fastest))
        yield
    robot.command(robot.target)


def wait(robot: UrController, t: Value) -> Steps:
    """sleep(t)."""
    for _ in range(max(1, round(seconds(t) / robot.step))):
        yield


def sync(robot: UrController) -> Steps:
    """To the end of this control step."""
    yield


MOTIONS: dict[str, Any] = {
    "movej": movej,
    "servoj": servoj,
    "speedj": speedj,
    "stopj": stopj,
    # No tool paths are simulated, so stopping along one is stopping the joints.
    "stopl": lambda robot, a=2.0, aRot=2.0: stopj(robot, a),
    "sleep": wait,
    "sync": sync,
}
