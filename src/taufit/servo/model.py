"""Servo model: a robot, its servo parameters, the floor, and what they were fitted to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.files import write_json
from taufit.core.plain_data import read_json, to_plain_data
from taufit.robot import Robot
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay

FORMAT = "taufit-servo"
VERSION = 1
TAKEN = "taken from the other joints"  # note of a value that the joint itself does not show


@dataclass(frozen=True, slots=True)
class ServoValue:
    """Value of a servo parameter with its 95 % interval.

    Attributes:
        name: For example "shoulder_lift.damping_ratio".
        value, low, high: Value and interval, in `unit`.
        unit: SI unit.
        note: Remark, for example that kp is taken from the other joints.
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ServoModel:
    """Position-controlled arm: commands in, positions out.

    Attributes:
        robot: Robot with the link masses that kp refers to.
        servo: Servo parameters of all joints.
        floor: Floor under the arm, or None.
        point: Contact point in the last link's frame [m].
        values: Parameters with intervals, mass-free ratios first.
        covariance: Covariance of the unknowns of the second stage.
        command_jump: Largest command jump of the training data, joint by joint [rad].
        record: Provenance: files, stage, scores, warnings.
    """

    robot: Robot
    servo: ServoParameters
    floor: Floor | None
    point: Float[Array, " 3"]
    values: tuple[ServoValue, ...]
    covariance: Float[Array, "p p"]
    command_jump: Float[Array, " j"]
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def axes(self) -> JointAxes:
        """Robot in joint axes."""
        return JointAxes.of_robot(self.robot, self.point)

    def replay(self, motion: CommandedMotion) -> Float[Array, "n j"]:
        """Positions of an open-loop replay from the first measured pose."""
        return replay(self.axes, self.servo, motion, self.floor)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; inverse of `servo_model_from_dict`."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "robot": self.robot.to_dict(),
            "servo": self.servo.to_dict(),
            "floor": None if self.floor is None else asdict(self.floor),
            "point": self.point.tolist(),
            "parameters": [asdict(value) for value in self.values],
            "covariance": self.covariance.tolist(),
            "command_jump": self.command_jump.tolist(),
            "record": self.record,
        }
        return dict(to_plain_data(data))


def write_servo_model(model: ServoModel, path: str | os.PathLike[str]) -> None:
    """Write a servo model as JSON; the file is replaced atomically."""
    write_json(path, model.to_dict())


def read_servo_model(path: str | os.PathLike[str]) -> ServoModel:
    """Read a servo model."""
    if not Path(path).exists():
        raise TaufitError(f"there is no model {path}. `taufit servo` writes one.")
    return servo_model_from_dict(read_json(path, "a servo model"), str(path))


def is_servo_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a servo model; False if it cannot be read."""
    try:
        data = read_json(path, "a taufit model")
    except (TaufitError, OSError):
        return False
    return isinstance(data, Mapping) and data.get("format") == FORMAT


def servo_model_from_dict(data: Any, source: str = "this model") -> ServoModel:
    """Inverse of `ServoModel.to_dict`; damaged files are named."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise TaufitError(f"{source} is not a servo model. `taufit servo ... -o MODEL` writes one.")
    if data.get("version") != VERSION:
        raise TaufitError(
            f"{source} has servo model version {data.get('version')!r}; this taufit reads version "
            f"{VERSION}. Fit again."
        )
    try:
        robot = Robot.from_dict(data["robot"])
        model = ServoModel(
            robot,
            ServoParameters.from_dict(data["servo"]),
            None if data["floor"] is None else Floor(**data["floor"]),
            np.array(data["point"], float),
            tuple(ServoValue(**entry) for entry in data["parameters"]),
            np.array(data["covariance"], float),
            np.array(data["command_jump"], float),
            dict(data["record"]),
        )
        _require_valid(model, source)
    except (KeyError, TypeError, ValueError) as error:
        raise TaufitError(f"{source} is damaged ({error}). Fit again.") from None
    return model


def _require_valid(model: ServoModel, source: str) -> None:
    """Require one positive, finite entry per joint."""
    matrix = model.servo.matrix()
    if len(matrix) != model.robot.joints or not np.all(np.isfinite(matrix)):
        raise TaufitError(f"{source} is damaged: its servo parameters are not one per joint.")
    if np.any(matrix[:, :4] <= 0):
        raise TaufitError(f"{source} is damaged: kp, damping and friction must be positive.")
