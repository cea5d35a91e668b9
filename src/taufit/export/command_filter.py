"""Command filter of a servo: what MJCF has no element for. Its source is written beside a model."""

from __future__ import annotations

import inspect

import numpy as np

from taufit.servo.model import ServoModel

# Values of the written file; here those of a servo without delay, offset and limit.
DELAY, OFFSET, LIMIT = 0.0, np.zeros(1), 0.0


class CommandFilter:
    """Call once per simulation step with the command; returns the actuators' control.

    An internal reference r with |r''| <= limit approaches the command u at
    min(sqrt(2 limit |u - r|), |u - r|/step).
    """

    def __init__(
        self,
        start: np.ndarray,
        step: float,
        delay: float = DELAY,
        offset: np.ndarray = OFFSET,
        limit: float = LIMIT,
    ) -> None:
        self.step, self.offset, self.limit = step, offset, limit
        self.queue = [np.array(start, float)] * (max(0, round(delay / step)) + 1)
        self.at, self.speed = np.array(start, float), np.zeros(len(start))

    def __call__(self, command: np.ndarray) -> np.ndarray:
        self.queue = [*self.queue[1:], np.array(command, float)]
        error = self.queue[0] - self.at
        if self.limit > 0:
            far = np.abs(error)
            goal = np.sign(error) * np.minimum(np.sqrt(2 * self.limit * far), far / self.step)
            change = self.limit * self.step
            self.speed = self.speed + np.clip(goal - self.speed, -change, change)
            self.at = self.at + self.step * self.speed
        else:
            self.at = self.queue[0]
        return np.asarray(self.at + self.offset)


def filter_source(model: ServoModel) -> str:
    """Python source of the command filter, for use in a simulation loop."""
    servo = model.servo
    title = (
        f"Command filter of {model.robot.name}: delay, offset and acceleration limit of its servos."
    )
    return "\n".join(
        [
            *(f'"""{title}"""', "", "import numpy as np", ""),
            f"DELAY = {max(float(servo.delay.mean()), 0.0)!r}  # s",
            f"OFFSET = np.array({servo.offset.tolist()!r})  # rad",
            f"LIMIT = {servo.acceleration_limit!r}  # rad/s^2; 0 for none",
            *("", "", inspect.getsource(CommandFilter)),
        ]
    )
