"""Logs with layouts drawn at random: names, units, clocks, files and blocks beside the torque.

A layout is drawn from a seed; its truth is known, so a draft is right, marked (refused, or with
questions for a person) or silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taufit.robot import Robot, read_robot

ARMS = ("ur5e", "panda", "iiwa14", "kr5", "ur3")
RATE_HZ = 125.0
# Stems of numbered names: position, velocity, torque, acceleration, computed torque.
STEMS = (
    ("q", "qd", "tau", "qdd", "tau_model"),
    ("position_", "velocity_", "torque_", "acceleration_", "torque_cmd_"),
    ("actual_q_", "actual_qd_", "actual_torque_", "actual_qdd_", "target_moment_"),
    ("pos_j", "vel_j", "eff_j", "acc_j", "eff_des_j"),
    ("JointAngle", "JointVel", "JointTorque", "JointAcc", "JointTorqueComputed"),
)
CLOCKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True)
class Truth:
    """A run of a robot: what a reader must give back.

    Attributes:
        robot: The robot.
        time, position, velocity, torque: In SI units, in the robot's joint order.
    """

    robot: Robot
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    torque: np.ndarray


@dataclass(frozen=True)
class Layout:
    """Choices of one log.

    Attributes:
        stems: Names of the blocks; without a header None.
        named_joints: Whether columns carry the joints' own names.
        permuted: Whether joints come in another order (with their names).
        missing: Whether the last joint was not recorded: right is only to say so.
        gripper: Whether a joint that the robot does not have is there too.
        degrees, velocity_degrees: Whether position and velocity are in degrees.
        clock: Unit of the time column; "" for none.
        velocity, acceleration, computed: Whether these blocks are there.
        several_files: Whether every quantity has its own file.
        title: Whether a title line comes before the header.
        text: Whether there is a column of text.
        delimiter, decimal: Of the numbers.
        order: Order of the blocks position, velocity, acceleration, computed, torque.
    """

    stems: tuple[str, ...] | None
    named_joints: bool
    permuted: bool
    missing: bool
    gripper: bool
    degrees: bool
    velocity_degrees: bool
    clock: str
    velocity: bool
    acceleration: bool
    computed: bool
    several_files: bool
    title: bool
    text: bool
    delimiter: str
    decimal: str
    order: tuple[str, ...]


def draw_truth(rng: np.random.Generator, seconds: float = 16.0) -> tuple[Truth, np.ndarray]:
    """A run of a random arm, and its acceleration."""
    from taufit.dynamics import inverse_dynamics

    robot = read_robot(str(rng.choice(ARMS)))
    n = robot.joints
    time = np.arange(0.0, seconds, 1.0 / RATE_HZ)
    w = 2 * np.pi * np.array([0.13, 0.27, 0.43])
    amplitude = rng.uniform(0.08, 0.35, (3, n))
    angle = w[:, None, None] * time[None, :, None] + rng.uniform(0, 6.28, (3, 1, n))
    middle = 0.5 * (np.maximum(robot.limits.lower, -2.5) + np.minimum(robot.limits.upper, 2.5))
    q = middle + np.sum(amplitude[:, None] * np.sin(angle), axis=0)
    v = np.sum((amplitude * w[:, None])[:, None] * np.cos(angle), axis=0)
    a = -np.sum((amplitude * w[:, None] ** 2)[:, None] * np.sin(angle), axis=0)
    rigid = inverse_dynamics(robot, q, v, a)
    size = 0.08 * np.abs(rigid).max(axis=0) + 0.2
    torque = rigid + size * np.tanh(v / 0.02) + size * v
    torque += rng.normal(0.0, 0.03, torque.shape) * size
    q, v = q + rng.normal(0.0, 1e-5, q.shape), v + rng.normal(0.0, 2e-3, v.shape)
    return Truth(robot, time, q, v, torque), a


def draw_layout(rng: np.random.Generator) -> Layout:
    """Choices of a log that a person could describe."""
    has_header = rng.random() < 0.8
    several = rng.random() < 0.25
    named = has_header and rng.random() < 0.35
    blocks = ["position", "velocity", "acceleration", "computed", "torque"]
    rng.shuffle(blocks)
    degrees = rng.random() < 0.3
    delimiter, decimal = ((",", "."), (";", "."), ("\t", "."), (";", ","))[rng.integers(4)]
    return Layout(
        stems=STEMS[rng.integers(len(STEMS))] if has_header else None,
        named_joints=named,
        permuted=named and rng.random() < 0.5,
        missing=named and rng.random() < 0.15,
        gripper=named and rng.random() < 0.3,
        degrees=degrees,
        velocity_degrees=degrees != (rng.random() < 0.25),
        clock=str(rng.choice(["s", "s", "ms", "us", "ns", ""])),
        velocity=rng.random() < 0.75,
        acceleration=rng.random() < 0.3,
        # Without names nobody can tell a computed torque from a measured one.
        computed=has_header and rng.random() < 0.3,
        several_files=several,
        title=has_header and rng.random() < 0.3,
        text=has_header and rng.random() < 0.3,
        delimiter=delimiter,
        decimal=decimal,
        order=tuple(blocks),
    )


def write_layout(
    folder: Path, layout: Layout, truth: Truth, acceleration: np.ndarray
) -> list[Path]:
    """Write the log; returns its files."""
    from taufit.dynamics import inverse_dynamics

    robot = truth.robot
    scale, rate_scale = (
        180.0 / np.pi if degrees else 1.0 for degrees in (layout.degrees, layout.velocity_degrees)
    )
    values = {
        "position": scale * truth.position,
        "velocity": rate_scale * truth.velocity,
        "acceleration": rate_scale * acceleration,
        "computed": inverse_dynamics(robot, truth.position, truth.velocity, acceleration),
        "torque": truth.torque,
    }
    is_there = {
        "velocity": layout.velocity,
        "acceleration": layout.acceleration,
        "computed": layout.computed,
    }
    blocks = [name for name in layout.order if is_there.get(name, True)]
    order = np.arange(robot.joints)
    if layout.permuted:
        order = np.random.default_rng(len(truth.time) + robot.joints).permutation(robot.joints)
    clock = {} if not layout.clock else {_clock_name(layout): truth.time * CLOCKS[layout.clock]}
    if layout.several_files:
        files = []
        for name in blocks:
            columns = {**clock, **_block(layout, robot, name, values[name], order)}
            files.append(_write(folder / f"{_file_stem(name)}.csv", layout, columns))
        return files
    columns = dict(clock)
    for name in blocks:
        columns |= _block(layout, robot, name, values[name], order)
    return [_write(folder / "log.csv", layout, columns)]


def _file_stem(name: str) -> str:
    return {"position": "q", "velocity": "qd", "acceleration": "qdd", "computed": "tau_model",
            "torque": "tau"}[name]  # fmt: skip


def _clock_name(layout: Layout) -> str:
    return {"s": "time", "ms": "time_ms", "us": "time_us", "ns": "timestamp_ns"}[layout.clock]


def _block(
    layout: Layout, robot: Robot, name: str, values: np.ndarray, order: np.ndarray
) -> dict[str, np.ndarray]:
    index = ("position", "velocity", "torque", "acceleration", "computed").index(name)
    stem = (layout.stems or STEMS[0])[index]
    if layout.named_joints:
        word = ("position", "velocity", "effort", "acceleration", "effort_model")[index]
        columns = {
            f"{robot.joint_names[j]}_{word}": values[:, j]
            for j in order
            if not layout.missing or j < robot.joints - 1
        }
        gripper = np.where(np.arange(len(values)) % 900 < 450, 0.02, 0.04)
        return columns | ({f"gripper_finger_{word}": gripper} if layout.gripper else {})
    return {f"{stem}{j + 1}": values[:, j] for j in range(robot.joints)}


def _write(path: Path, layout: Layout, columns: dict[str, np.ndarray]) -> Path:
    names = list(columns)
    rows = [
        layout.delimiter.join(f"{x:.9g}".replace(".", layout.decimal) for x in row)
        for row in np.column_stack([*columns.values()])
    ]
    if layout.text:
        names, rows = [*names, "mode"], [f"{row}{layout.delimiter}AUTO" for row in rows]
    head = [layout.delimiter.join(names)] if layout.stems is not None else []
    title = ["Recording of cell 3, test bench"] if layout.title else []
    path.write_text("\n".join([*title, *head, *rows]) + "\n")
    return path


def judge(paths: list[Path], truth: Truth, layout: Layout) -> tuple[str, str]:
    """Outcome of a draft with its reason: right, marked or wrong.

    Right: exactly what no reader can know is marked, and all else is read as it was recorded. For a
    log without one of the robot's joints: an error that names this joint and no other. Marked: the
    draft is refused or asks for more than is unknown, but nothing is wrong unasked. Wrong: a value
    differs although its key is not marked; a remark beside it does not help.
    """
    from taufit.core.errors import TaufitError
    from taufit.recording import read_map, read_recordings, reorder_joints
    from taufit.workflow.draft import draft_files

    unknown = set() if layout.clock or layout.velocity else {"rate_hz"}
    try:
        result = draft_files(paths, robot=truth.robot)
        assert result.draft is not None
        marked = dict(result.draft.unknowns)
        page = {**result.draft.page, **({"rate_hz": RATE_HZ} if "rate_hz" in marked else {})}
        (recording,) = read_recordings(result.paths[0], column_map=read_map(page))
        recording = reorder_joints(recording, truth.robot.joint_names, robot=truth.robot.name)
    except TaufitError as error:
        text = str(error)
        names = {name for name in truth.robot.joint_names if name in text}
        is_right = layout.missing and names == {truth.robot.joint_names[-1]}
        return "right" if is_right else "marked", text.splitlines()[0]
    if wrong := _differences(recording, truth):
        return "wrong", ", ".join(wrong)
    if marked.keys() != unknown:
        return "marked", f"marked {sorted(marked)}, unknown are {sorted(unknown)}"
    return "right", ""


def _differences(recording: object, truth: Truth) -> list[str]:
    """Quantities that differ from the truth."""
    values: dict[str, Callable[[], bool]] = {
        "time": lambda: np.allclose(recording.time - recording.time[0], truth.time, atol=1e-5),
        "position": lambda: np.allclose(recording.position, truth.position, atol=1e-6),
        "torque": lambda: np.allclose(recording.signal, truth.torque, atol=1e-5),
        "torque unit": lambda: recording.signal_unit == "N m",
        "velocity": lambda: (
            recording.velocity is None or np.allclose(recording.velocity, truth.velocity, atol=1e-6)
        ),
    }
    return [name for name, is_equal in values.items() if not is_equal()]


def outcome(seed: int, folder: Path) -> tuple[str, str, Layout]:
    """Outcome of the layout of a seed."""
    rng = np.random.default_rng(seed)
    truth, acceleration = draw_truth(rng)
    layout = draw_layout(rng)
    result, reason = judge(write_layout(folder, layout, truth, acceleration), truth, layout)
    return result, reason, layout
