"""Commanded motion: what a servo arm was told and where it went, on a uniform grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.joint_order import reorder_joints
from taufit.robot import Robot

_GRID_S = 1e-3  # grid of the integral of the command [s]
LEAD_S = 0.3  # time before the first row for which the integral is defined [s]
_MAX_RATE_HZ = 250.0


@dataclass(frozen=True, slots=True, eq=False)
class CommandedMotion:
    """One run of a servo arm.

    Attributes:
        name: Name of the recording.
        step: Time between rows [s].
        position: Measured positions on the grid [rad].
        command: Command that holds at each row [rad].
        integral: Integral of the held command over time, every millisecond [rad s].
        encoder_step: Smallest change of the measured position [rad].
        command_jump: Largest change of the command from one time stamp to the next, joint by
            joint [rad]; the uniform grid may skip a stamp and must not double it.
    """

    name: str
    step: float
    position: Float[Array, "n j"]
    command: Float[Array, "n j"]
    integral: Float[Array, "m j"]
    encoder_step: float
    command_jump: Float[Array, " j"]

    @classmethod
    def from_arrays(
        cls,
        time: Float[Array, " n"],
        command: Float[Array, "n j"],
        position: Float[Array, "n j"],
        name: str = "motion",
    ) -> CommandedMotion:
        """Motion from time stamps; a command holds from its time stamp to the next."""
        time = np.asarray(time, float) - time[0]
        step = max(float(np.median(np.diff(time))), 1.0 / _MAX_RATE_HZ)
        rows = np.arange(0.0, time[-1] + 1e-9, step)
        measured = np.column_stack([np.interp(rows, time, column) for column in position.T])
        held = command[np.clip(np.searchsorted(time, rows + 1e-9, "right") - 1, 0, None)]
        integral = _command_integral(time, command)
        jump = np.abs(np.diff(command, axis=0)).max(axis=0)
        return cls(name, step, measured, held, integral, _encoder_step(position), jump)

    @property
    def grid_step(self) -> float:
        """Time between rows of `integral` [s]."""
        return _GRID_S

    @property
    def seconds(self) -> float:
        return len(self.position) * self.step

    def blocks(self, seconds: float) -> int:
        """Number of parts of about `seconds` [s] each."""
        return max(1, round(self.seconds / seconds))

    def part(self, start: int, stop: int) -> CommandedMotion:
        """Rows start to stop as a motion of its own."""
        first = round(start * self.step / _GRID_S)
        last = first + round(((stop - start) * self.step + 2 * LEAD_S) / _GRID_S) + 2
        rows = slice(start, stop)
        return replace(
            self,
            position=self.position[rows],
            command=self.command[rows],
            integral=self.integral[first:last],
        )

    def split(self, count: int) -> list[CommandedMotion]:
        """Consecutive parts of equal length."""
        edges = np.linspace(0, len(self.position), count + 1).astype(int)
        return [self.part(a, b) for a, b in pairwise(edges)]


def _command_integral(
    time: Float[Array, " n"], command: Float[Array, "n j"]
) -> Float[Array, "m j"]:
    grid = np.arange(-LEAD_S, time[-1] + LEAD_S, _GRID_S)
    index = np.clip(np.searchsorted(time, grid, "right") - 1, 0, None)
    steps = command[:-1] * np.diff(time)[:, None]
    base = np.vstack([np.zeros(command.shape[1]), np.cumsum(steps, axis=0)])
    return np.asarray(base[index] + command[index] * (grid - time[index])[:, None])


def _encoder_step(position: Float[Array, "n j"]) -> float:
    """Median over the joints of the smallest change of position [rad]; 0 without quantisation."""
    smallest = []
    for column in position.T:
        changes = np.diff(np.unique(column))
        changes = changes[changes > 1e-7]
        if len(changes):
            smallest.append(float(np.quantile(changes, 0.05)))
    step = float(np.median(smallest)) if smallest else 0.0
    return step if step > 1e-4 else 0.0


def commanded_motions(robot: Robot, recordings: Sequence[Recording]) -> list[CommandedMotion]:
    """Commanded motion of every recording, with the robot's joints only."""
    return [_commanded_motion(robot, recording) for recording in recordings]


def _commanded_motion(robot: Robot, recording: Recording) -> CommandedMotion:
    recording = arm_joints(robot, recording)
    if recording.commanded_position is None:
        raise RecordingError(
            f"{recording.name} has no position command. Name its columns in the column map: "
            '`commanded_position: "cmd{joint}"`.'
        )
    if recording.time[-1] - recording.time[0] < 2.0:
        raise RecordingError(
            f"{recording.name} lasts {recording.time[-1] - recording.time[0]:.2g} s: a servo model "
            "needs runs of at least 2 s."
        )
    name = recording.name
    if "run" in recording.meta:
        name = f"{name} run {recording.meta['run']}"
    return CommandedMotion.from_arrays(
        recording.time, recording.commanded_position, recording.position, name
    )


def arm_joints(robot: Robot, recording: Recording) -> Recording:
    """Joints of the robot; further columns, such as a gripper's, come last and are left out."""
    names = recording.meta.get("joint_names")
    if isinstance(names, list) and set(robot.joint_names) <= set(names):
        return reorder_joints(recording, robot.joint_names, robot=robot.name)
    if recording.joints > robot.joints:
        return recording.map(lambda values: values[:, : robot.joints])
    return reorder_joints(recording, robot.joint_names, robot=robot.name)
