"""Motion commands of URScript: generators that move the target, one control step per yield."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.values import Value, format_value, number

if TYPE_CHECKING:
    from taufit.virtual.controllers.ur_controller import UrController

Steps = Generator[None, None, None]


def joint_values(value: Value, count: int = 6) -> Float[Array, " j"]:
    """Convert a list to joint values; raises if invalid."""
    if not isinstance(value, list) or len(value) != count:
        raise ScriptError(f"a list of {count} numbers expected, found {format_value(value)}.")
    out = np.array([number(x) for x in value], float)
    if not np.all(np.isfinite(out)):
        raise ScriptError(f"numbers that are not finite: {format_value(value)}.")
    return out


def positive_number(value: Value, name: str) -> float:
    """Convert to a positive number; raises if invalid."""
    out = float(number(value))
    if not (math.isfinite(out) and out > 0.0):
        raise ScriptError(f"{name} = {format_value(value)}; a positive number is expected.")
    return out


def waiting_time(value: Value, name: str = "t") -> float:
    """Convert to a waiting time [s]; raises if invalid."""
    out = float(number(value))
    if not 0.0 <= out <= 1e6:
        raise ScriptError(f"{name} = {format_value(value)}; a time in seconds is expected.")
    return out


def movej(
    robot: UrController, q: Value, a: Value = 1.4, v: Value = 1.05, t: Value = 0, r: Value = 0
) -> Steps:
    """Move to a joint position with trapezoidal speed; the joint with the longest travel sets the
    duration.

    With b the fraction of the duration spent accelerating, the travel fraction at time fraction s
    is
    s^2 / (2 b (1 - b)), then (s - b / 2) / (1 - b), and the mirror image at the end.
    """
    goal, speed, acceleration = joint_values(q), positive_number(v, "v"), positive_number(a, "a")
    duration = waiting_time(t)
    start = robot.target.copy()
    travel = float(np.abs(goal - start).max())
    if travel == 0.0:
        yield
        return
    if duration > 0.0:
        total, ramp_fraction = duration, 0.25
    elif travel * acceleration > speed**2:
        total = travel / speed + speed / acceleration
        ramp_fraction = speed / acceleration / total
    else:
        total, ramp_fraction = 2.0 * math.sqrt(travel / acceleration), 0.5
    elapsed = 0.0
    while elapsed < total:
        elapsed = min(total, elapsed + robot.step * robot.speed_scaling)
        s = elapsed / total
        if s < ramp_fraction:
            travel_fraction = s * s / (2.0 * ramp_fraction * (1.0 - ramp_fraction))
        elif s <= 1.0 - ramp_fraction:
            travel_fraction = (s - 0.5 * ramp_fraction) / (1.0 - ramp_fraction)
        else:
            travel_fraction = 1.0 - (1.0 - s) ** 2 / (2.0 * ramp_fraction * (1.0 - ramp_fraction))
        robot.command(start + travel_fraction * (goal - start))
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
    """Hold a set point for t; the robot follows it by `UrController.servo_output`."""
    goal = joint_values(q)
    lookahead, stiffness = (
        positive_number(lookahead_time, "lookahead_time"),
        positive_number(gain, "gain"),
    )
    if not 0.03 <= lookahead <= 0.2 or not 100 <= stiffness <= 2000:
        raise ScriptError(
            f"lookahead_time {lookahead:g} and gain {stiffness:g}; 0.03 to 0.2 s and 100 to 2000 "
            "are "
            "possible."
        )
    for _ in range(max(1, round(waiting_time(t) / robot.step))):
        robot.command(goal, servo=(stiffness, lookahead))
        yield


def speedj(robot: UrController, qd: Value, a: Value = 1.4, t: Value = 0) -> Steps:
    """Accelerate to joint speeds, for t seconds or until they are reached."""
    goal, change = joint_values(qd), positive_number(a, "a") * robot.step
    remaining_steps = round(waiting_time(t) / robot.step)
    while True:
        target = goal * robot.speed_scaling
        robot.accelerate(np.clip(target - robot.target_speed, -change, change))
        yield
        remaining_steps -= 1
        is_reached = float(np.abs(goal * robot.speed_scaling - robot.target_speed).max()) < 1e-9
        if remaining_steps <= 0 and (t or is_reached):
            return


def stopj(robot: UrController, a: Value = 2.0) -> Steps:
    """Decelerate to standstill; all joints arrive together."""
    deceleration = positive_number(a, "a")
    while float(np.abs(robot.target_speed).max()) > 1e-12:
        max_speed = float(np.abs(robot.target_speed).max())
        robot.accelerate(-robot.target_speed * min(1.0, deceleration * robot.step / max_speed))
        yield
    robot.command(robot.target)


def wait(robot: UrController, t: Value) -> Steps:
    """Function sleep(t)."""
    for _ in range(max(1, round(waiting_time(t) / robot.step))):
        yield


def sync(robot: UrController) -> Steps:
    """Wait for the end of this control step."""
    yield


MOTIONS: dict[str, Any] = {
    "movej": movej,
    "servoj": servoj,
    "speedj": speedj,
    "stopj": stopj,
    # Tool paths are not simulated, so stopl stops the joints.
    "stopl": lambda robot, a=2.0, aRot=2.0: stopj(robot, a),
    "sleep": wait,
    "sync": sync,
}
