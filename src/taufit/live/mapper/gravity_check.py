"""Comparison of recorded torque with gravity on the nominal robot.

Per joint, over the samples,

    signal = a gravity(q) + b + c sign(v) + d v + e v' + f inertia(q, v, v'),

and gravity explains the signal if it removes most of the residual of the other terms. For torque in
N m, a is close to one; for a current it is positive, of a size given by the drive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import gravity_torque, inverse_dynamics
from taufit.recording import Recording
from taufit.robot import Robot

_MAX_ROWS = 3000
# Smoothing time of velocity before differentiation [s].
_SMOOTHING_S = 0.02
# Fraction of the residual variance of the other terms above which gravity explains a joint, and
# below which it does not.
_MIN_EXPLAINED, _MAX_UNEXPLAINED = 0.5, 0.3
# Range of the ratio of torque in N m to gravity on the nominal robot.
_TORQUE_RATIO = (0.4, 2.5)
# Smallest change of gravity torque that is informative, relative to the most loaded joint and to
# the largest possible at the joint.
_MIN_RELATIVE_LOAD, _MIN_LOAD_CHANGE = 0.15, 0.03
# Smallest cosine between signal levels and gravity at standstill.
_MIN_COSINE = 0.9


@dataclass(frozen=True, slots=True)
class JointCheck:
    """Comparison of one joint.

    Attributes:
        joint: Joint number, from 1.
        slope: a, in the signal's unit per N m; None if gravity hardly changes.
        explained: Fraction of the residual variance of the other terms explained by gravity.
    """

    joint: int
    slope: float | None
    explained: float


@dataclass(frozen=True, slots=True)
class GravityCheck:
    """Result of the comparison.

    Attributes:
        verdict: "yes", "no", or "open" if the recording does not decide.
        text: Description.
        joints: Comparison of each joint.
    """

    verdict: str
    text: str
    joints: tuple[JointCheck, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "verdict": self.verdict,
            "text": self.text,
            "joints": [
                {"joint": j.joint, "slope": j.slope, "explained": j.explained} for j in self.joints
            ],
        }


def gravity_check(robot: Robot, recording: Recording) -> GravityCheck:
    """Compare torque or current of a recording with gravity on a nominal robot."""
    if robot.joints != recording.joints:
        return GravityCheck(
            "no", f"{robot.name} has {robot.joints} joints, the map says {recording.joints}."
        )
    if not robot.parameters.any():
        return GravityCheck("open", f"the description of {robot.name} has no masses to compare.")
    q, v, a, signal = _sample_rows(recording)
    signed = recording.signed
    if (signed is not None and not signed.any()) or (len(q) and signal.min() >= 0.0):
        return GravityCheck("open", "only magnitudes were recorded: their sign cannot be compared.")
    if len(q) < 20:
        return GravityCheck("open", "there are too few samples to compare.")
    gravity = gravity_torque(robot, q)
    is_torque = recording.gain is not None
    if recording.gain is not None:
        signal = signal * recording.gain
    gravity_std, level = gravity.std(axis=0), np.abs(gravity.mean(axis=0))
    largest = _max_gravity(robot)
    is_loaded = (gravity_std > _MIN_LOAD_CHANGE * largest) & (
        gravity_std > _MIN_RELATIVE_LOAD * gravity_std.max()
    )
    is_loaded &= gravity_std > 0.1 * _MIN_LOAD_CHANGE * largest.max()
    if not is_loaded.any():
        if level.max() < _MIN_LOAD_CHANGE * largest.max():
            return GravityCheck("open", "gravity loads no joint in this recording.")
        return _check_single_pose(robot, gravity.mean(axis=0), np.median(signal, axis=0), is_torque)
    inertia = inverse_dynamics(robot, q, v, a) - gravity
    joints = tuple(
        _check_joint(j, gravity[:, j], (v[:, j], a[:, j], inertia[:, j]), signal[:, j])
        if is_loaded[j]
        else JointCheck(j + 1, None, 0.0)
        for j in range(robot.joints)
    )
    return _decide(robot, joints, is_torque)


def _max_gravity(robot: Robot) -> Float[Array, " j"]:
    """Approximate largest gravity torque of each joint [N m]."""
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, robot.joints))
    return np.maximum(np.abs(gravity_torque(robot, q)).max(axis=0), 1e-6)


def _sample_rows(recording: Recording) -> tuple[Array, Array, Array, Array]:
    """Position, velocity, acceleration and signal of a few thousand rows."""
    time, q = recording.time, recording.position
    v = np.gradient(q, time, axis=0) if recording.velocity is None else recording.velocity
    width = max(
        1, len(time) // _MAX_ROWS, round(_SMOOTHING_S / max(float(np.median(np.diff(time))), 1e-6))
    )
    a = np.gradient(_smooth(v, width), time, axis=0)
    parts = (q, _smooth(v, width) if recording.velocity is None else v, a, recording.signal)
    step = max(1, len(time) // _MAX_ROWS)
    rows = [part[::step] for part in parts]
    is_finite = np.logical_and.reduce([np.isfinite(part).all(axis=1) for part in rows])
    return rows[0][is_finite], rows[1][is_finite], rows[2][is_finite], rows[3][is_finite]


def _smooth(values: Float[Array, "n j"], width: int) -> Float[Array, "n j"]:
    """Mean over `width` rows to either side."""
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(np.nan_to_num(values), axis=0)])
    rows = np.arange(len(values))
    low, high = np.maximum(rows - width, 0), np.minimum(rows + width + 1, len(values))
    return (total[high] - total[low]) / (high - low)[:, None]


def _check_joint(
    j: int,
    g: Float[Array, " n"],
    motion: tuple[Array, Array, Array],
    signal: Float[Array, " n"],
) -> JointCheck:
    v, a, inertia = motion
    max_speed = max(float(np.abs(v).max()), 1e-9)
    other_columns = np.column_stack([np.ones_like(v), np.tanh(50.0 * v / max_speed), v, a, inertia])
    size = np.linalg.norm(other_columns, axis=0)
    left_vectors, values, _ = np.linalg.svd(
        other_columns[:, size > 0] / size[size > 0], full_matrices=False
    )
    basis = left_vectors[:, values > 1e-8 * values[0]]
    g = g - basis @ (basis.T @ g)
    signal = signal - basis @ (basis.T @ signal)
    power, residual_power = float(g @ g), float(signal @ signal)
    if power == 0.0 or residual_power == 0.0:
        return JointCheck(j + 1, None, 0.0)
    return JointCheck(
        j + 1, float(signal @ g) / power, float(signal @ g) ** 2 / (power * residual_power)
    )


def _decide(robot: Robot, joints: tuple[JointCheck, ...], is_torque: bool) -> GravityCheck:
    loaded = [j for j in joints if j.slope is not None]
    if not loaded:
        return GravityCheck("open", "gravity changes too little in this recording to tell.", joints)
    contradiction = _find_contradiction(robot, loaded, is_torque)
    if contradiction is not None:
        return GravityCheck(*contradiction, joints)
    loaded = [j for j in loaded if j.explained > _MIN_EXPLAINED]
    ratio = _median_slope(loaded)
    ratio_text = f"{ratio:.2f} times it" if is_torque else f"{ratio:.3g} A per N m"
    share = 100.0 * float(np.median([j.explained for j in loaded]))
    text = (
        f"gravity on {robot.name} explains {share:.0f} % at {_joint_list(loaded)} ({ratio_text})."
    )
    return GravityCheck("yes", text, joints)


def _find_contradiction(
    robot: Robot, loaded: list[JointCheck], is_torque: bool
) -> tuple[str, str] | None:
    """Verdict and reason if the torque contradicts gravity; None if it agrees."""
    inverted = [j for j in loaded if (j.slope or 0.0) < 0.0 and j.explained > _MIN_EXPLAINED]
    poorly_explained = [j for j in loaded if j.explained <= _MIN_EXPLAINED]
    unexplained = [j for j in loaded if j.explained <= _MAX_UNEXPLAINED]
    wrong_size = [
        j
        for j in loaded
        if is_torque and not _TORQUE_RATIO[0] < abs(j.slope or 0.0) < _TORQUE_RATIO[1]
    ]
    if inverted:
        return "no", (
            f"the torque of {_joint_list(inverted)} falls where gravity rises: its sign is "
            f"turned, or "
            "its positions belong to another joint."
        )
    if 2 * len(unexplained) > len(loaded):
        return "no", (
            f"gravity on {robot.name} does not explain {_joint_list(unexplained)}: another "
            f"robot, another "
            "order of the joints, or other columns."
        )
    if 2 * len(poorly_explained) >= len(loaded):
        return "open", (
            f"gravity on {robot.name} explains little of {_joint_list(poorly_explained)}: the "
            f"motion is fast, or "
            "it is another robot. A fit tells."
        )
    if len(wrong_size) > len(loaded) // 2:
        return "no", (
            f"it follows gravity on {robot.name}, but is {_median_slope(loaded):.2g} times as "
            f"large: a "
            "current, or another unit."
        )
    return None


def _median_slope(joints: list[JointCheck]) -> float:
    return float(np.median([j.slope or 0.0 for j in joints]))


def _check_single_pose(
    robot: Robot, gravity: Float[Array, " j"], level: Float[Array, " j"], is_torque: bool
) -> GravityCheck:
    """Compare the levels of the joints with each other in a single pose."""
    size = float(np.linalg.norm(gravity) * np.linalg.norm(level))
    cosine = 0.0 if size == 0.0 else float(gravity @ level) / size
    ratio = float(gravity @ level) / float(gravity @ gravity)
    if cosine < _MIN_COSINE:
        return GravityCheck(
            "no", f"the arm stands still and its torques are not those of {robot.name} there."
        )
    if is_torque and not _TORQUE_RATIO[0] < ratio < _TORQUE_RATIO[1]:
        return GravityCheck(
            "no",
            f"the arm stands still; its torques are {ratio:.2g} times gravity on {robot.name}: a "
            "current, or another unit.",
        )
    return GravityCheck(
        "yes", f"the arm stands still, and its torques are in proportion to {robot.name}'s gravity."
    )


def _joint_list(joints: list[JointCheck]) -> str:
    numbers = ", ".join(str(j.joint) for j in joints)
    return f"joint {numbers}" if len(joints) == 1 else f"joints {numbers}"
