"""Corrections: single faults of a recording with the change that repairs them.

A `Correction` is hypothesis and remedy at once: applied to conditioned rows it shows how well the
robot would explain them; its `remedy` is the equivalent edit of the column map or command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import ALL_QUANTITIES, SIGNAL, MapEdit, Remedy
from taufit.recording.quantity import MOTIONS, QUANTITIES
from taufit.robot import Robot

# Smallest zero offset, tilt and clock error that counts as a fault [rad, rad, logarithm].
_MIN_ANGLE, _MIN_TILT, _MIN_LOG_CLOCK_SCALE = np.radians(5.0), np.radians(1.5), 0.05
# The smallest tilt grows in proportion to nrmse above the first value, up to this factor [1].
_GOOD_NRMSE, _MAX_TILT_FACTOR = 0.08, 3.0


@dataclass(frozen=True, slots=True, eq=False)
class DiagnosisRows:
    """Conditioned rows on which hypotheses are tested.

    Attributes:
        robot: Robot with its mounting.
        position, velocity, acceleration: Filtered motion.
        slip: Direction of motion, -1 to 1, filtered like the torque.
        slow: Direction of motion with pre-sliding over two displacements after each reversal.
        torque: Filtered torque; 0 where it does not count.
        keep: Rows that count, per joint: moving, and no torque outlier.
        gain: Drive gain of each joint where the user gave it; ones where it is part of the signal.
    """

    robot: Robot
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    slip: Float[Array, "n j"]
    slow: Float[Array, "n j w"]
    torque: Float[Array, "n j"]
    keep: Bool[Array, "n j"]
    gain: Float[Array, " j"]

    def select(self, selection: slice | Array) -> DiagnosisRows:
        """Subset of the rows."""
        per_row = ("position", "velocity", "acceleration", "slip", "slow", "torque", "keep")
        return replace(self, **{name: getattr(self, name)[selection] for name in per_row})


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """Hypothesis about a fault, with the change of rows that removes it.

    Attributes:
        kind: Kind of the finding.
        message: Fault and remedy, one sentence each.
        joint: Joint number from 1, or None for several.
        rows: Function that returns the rows without the fault.
        remedy: Advice for the user.
        rank: Prior complexity: of equally likely hypotheses the smaller rank is preferred.
        judged_rows: Function that selects the rows valid both with and without the correction.
        concerns: Joints, counted from 0, that must move for the fault to be visible; empty for all.
        small: Whether the correction is too small to be a fault.
        scale: Factor on torque.
    """

    kind: str
    message: str
    joint: int | None = None
    rows: Callable[[DiagnosisRows], DiagnosisRows] = field(default=lambda rows: rows)
    remedy: Remedy | None = None
    rank: float = 1.0
    judged_rows: Callable[[DiagnosisRows], DiagnosisRows] = field(default=lambda rows: rows)
    concerns: tuple[int, ...] = ()
    small: bool = False
    scale: float = 1.0


# Channels of torque and of drive gains.
_DRIVE = (SIGNAL, "target_current", "target_torque")


def _drive_edits(key: str, value: tuple[float, ...]) -> tuple[MapEdit, ...]:
    return tuple(MapEdit(name, key, value) for name in _DRIVE)


def _flip_sign(values: Array, j: int) -> Array:
    out = np.array(values)
    out[:, j] = -out[:, j]
    return out


def _signs(joints: list[int], total: int) -> tuple[float, ...]:
    return tuple(-1.0 if j in joints else 1.0 for j in range(total))


def _motion_sign_remedy(j: int, total: int, *further_channels: str) -> Remedy:
    """Remedy that changes the sign of position, velocity and acceleration of a joint."""
    value = _signs([j], total)
    motions = (name for name in QUANTITIES if name in MOTIONS)
    return Remedy(
        edits=tuple(MapEdit(name, "sign", value) for name in (*motions, *further_channels))
    )


def torque_sign(joints: list[int], total: int) -> Correction:
    """Correction of the sign of torque of some joints."""
    signs = np.array(_signs(joints, total))
    numbers = ", ".join(str(j + 1) for j in joints)
    line = ", ".join(f"{s:.0f}" for s in signs)
    joint_text = "every joint" if 1 < len(joints) == total else f"joint {numbers}"
    return Correction(
        "torque_sign",
        f"the torque of {joint_text} has the other sign: with `sign: [{line}]` at the torque (or "
        "current) in the column map it agrees with the arm",
        joints[0] + 1 if len(joints) == 1 else None,
        rows=lambda rows: replace(rows, torque=rows.torque * signs),
        remedy=Remedy(edits=_drive_edits("sign", tuple(signs.tolist()))),
        concerns=tuple(joints) if len(joints) == 1 else (),
    )


def position_sign(j: int, total: int) -> Correction:
    """Correction of the positive direction of a joint's motion."""
    return Correction(
        "torque_sign",
        f"joint {j + 1} turns the other way than the robot's description says: give `sign: -1` for "
        "it at position and velocity in the column map (its torque then agrees), or at the torque "
        "as well if that is counted in the same direction",
        j + 1,
        rows=lambda rows: replace(
            rows,
            position=_flip_sign(rows.position, j),
            velocity=_flip_sign(rows.velocity, j),
            acceleration=_flip_sign(rows.acceleration, j),
            slip=_flip_sign(rows.slip, j),
            slow=_flip_sign(rows.slow, j),
        ),
        remedy=_motion_sign_remedy(j, total),
        rank=2.0,
        concerns=(j,),
    )


def joint_direction(j: int, total: int) -> Correction:
    """Correction of a joint's sign throughout: position, velocity and torque."""
    base = position_sign(j, total)
    return replace(
        base,
        message=f"joint {j + 1} is counted the other way throughout: give `sign: -1` for it at "
        "position, velocity and torque in the column map",
        rows=lambda rows: replace(base.rows(rows), torque=_flip_sign(rows.torque, j)),
        remedy=_motion_sign_remedy(j, total, *_DRIVE),
        rank=2.5,
    )


def swap_torque(i: int, k: int, total: int) -> Correction:
    """Correction of exchanged torque columns of two joints."""
    order = list(range(total))
    order[i], order[k] = k, i

    def exchange(values: Array) -> Array:
        return values[:, order]

    def rows_where_both_move(rows: DiagnosisRows) -> DiagnosisRows:
        # Torque of a standing joint is stiction and contains no information on another's motion.
        keep = rows.keep.copy()
        keep[:, i] = keep[:, k] = rows.keep[:, i] & rows.keep[:, k]
        return replace(rows, keep=keep)

    return Correction(
        "swapped_torque",
        f"the torque columns of joints {i + 1} and {k + 1} are exchanged: with those two swapped "
        "in the column map the arm explains them",
        i + 1,
        rows=lambda rows: replace(rows, torque=exchange(rows.torque / rows.gain) * rows.gain),
        remedy=Remedy(edits=_drive_edits("order", tuple(j + 1.0 for j in order))),
        rank=2.0,
        judged_rows=rows_where_both_move,
        concerns=(i, k),
    )


def reorder_joints(order: list[int], summary: str) -> Correction:
    """Correction of the joint order of all channels; `order[i]` is the column of joint i."""
    order_text = ", ".join(str(i + 1) for i in order)
    moved_joints = [i for i, k in enumerate(order) if i != k]
    return Correction(
        "swapped_joints",
        f"{summary}: the joints come in another order than the robot's. With the file's joints "
        "taken "
        f"in the order {order_text} for every quantity of the column map (or `joint_names`) the "
        "arm explains the torque",
        moved_joints[0] + 1,
        rows=lambda rows: replace(
            rows,
            position=rows.position[:, order],
            velocity=rows.velocity[:, order],
            acceleration=rows.acceleration[:, order],
            slip=rows.slip[:, order],
            slow=rows.slow[:, order],
            torque=(rows.torque / rows.gain)[:, order] * rows.gain,
            keep=rows.keep[:, order],
        ),
        remedy=Remedy(edits=(MapEdit(ALL_QUANTITIES, "order", tuple(j + 1.0 for j in order)),)),
        rank=2.0 if len(moved_joints) == 2 else 1.5,
        concerns=tuple(moved_joints),
    )


def zero_offset(j: int, offset: float, total: int) -> Correction:
    """Correction of a joint zero offset: q = recorded + offset."""

    zeros = np.zeros((1, total))

    def shift(values: Array) -> Array:
        out = np.array(values)
        out[:, j] += offset
        return out

    return Correction(
        "zero_offset",
        f"the zero of joint {j + 1} is {np.degrees(-offset):.0f} deg off: with `offset` "
        f"{offset:.4f} rad for it at the position in the column map the arm explains the torque",
        j + 1,
        rows=lambda rows: replace(rows, position=shift(rows.position)),
        remedy=Remedy(
            edits=(MapEdit("position", "offset", tuple(round(x, 4) for x in shift(zeros)[0])),)
        ),
        rank=3.0,
        concerns=(j,),
        small=abs((offset + np.pi) % (2 * np.pi) - np.pi) < _MIN_ANGLE,
    )


def change_mounting(
    mounting: tuple[float, float, float], angle: float, message: str, option: str, nrmse: float
) -> Correction:
    """Correction of the mounting.

    Args:
        mounting: Roll, pitch and yaw of the base [rad].
        angle: Angle between the estimated and the declared direction of gravity [rad].
        message: Text of the finding.
        option: Value of --mounting.
        nrmse: Unexplained share of torque with the declared mounting.
    """
    minimum_angle = _MIN_TILT * min(max(nrmse / _GOOD_NRMSE, 1.0), _MAX_TILT_FACTOR)
    return Correction(
        "mounting",
        message,
        rows=lambda rows: replace(rows, robot=rows.robot.with_mounting(mounting)),
        remedy=Remedy(("--mounting", option)),
        rank=2.0,
        small=angle < minimum_angle,
    )


def clock_scale(factor: float) -> Correction:
    """Correction of the time scale: true time = factor x recorded."""
    return Correction(
        "clock_scale",
        f"the time stamps run {1 / factor:.2f} times too fast for this arm's inertia: with time "
        f"multiplied by {factor:.3g} (`scale: {factor:.3g}` at time in the column map, or rate_hz "
        f"divided by it) the arm explains the torque",
        rows=lambda rows: replace(
            rows,
            velocity=rows.velocity / factor,
            acceleration=rows.acceleration / factor**2,
        ),
        remedy=Remedy(edits=(MapEdit("time", "scale", float(f"{factor:.4g}")),)),
        rank=3.0,
        small=abs(np.log(factor)) < _MIN_LOG_CLOCK_SCALE,
    )


def restore_gravity(gravity: Callable[[Robot, Array], Array]) -> Correction:
    """Correction of torque from which the controller subtracted gravity."""
    return Correction(
        "gravity_removed",
        "the torque carries no gravity: the controller has subtracted it (UR's "
        "actual_current_as_torque and newer drivers do, and external torques have none). Say so "
        "with --torque-kind torque_without_gravity, or record the torque itself",
        rows=lambda rows: replace(rows, torque=rows.torque + gravity(rows.robot, rows.position)),
        remedy=Remedy(("--torque-kind", "torque_without_gravity")),
        rank=1.0,
    )


def torque_scale(factor: float, message: str, unit: str | None = None) -> Correction:
    """Correction of the torque unit: true torque = factor x recorded; by name if the unit has
    one.
    """
    edit = (
        MapEdit(SIGNAL, "scale", float(f"{factor:.4g}"))
        if unit is None
        else MapEdit(SIGNAL, "unit", unit)
    )
    return Correction(
        "unit",
        message,
        rows=lambda rows: replace(rows, torque=rows.torque * factor),
        remedy=Remedy(edits=(edit,)),
        rank=2.0,
        scale=factor,
    )


def replace_robot(robot: Robot) -> Correction:
    """Correction to another robot with the same number of joints."""
    return Correction(
        "wrong_arm",
        f"the torque is that of another arm: {robot.name} explains it. Fit with `{robot.name}`",
        rows=lambda rows: replace(rows, robot=replace(robot, mounting=rows.robot.mounting)),
        remedy=Remedy(robot=robot.name),
        rank=2.0,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Finding on a recording and the correction that removes it; None if there is none."""

    finding: Finding
    correction: Correction | None = None
