"""One thing that may be wrong with a recording, as the change that would put it right.

A `Change` is hypothesis and remedy at once: applied to conditioned rows it says how well the arm
would explain them; its `remedy` is the same for the column map or the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import EVERY, SIGNAL, MapEdit, Remedy
from taufit.recording.quantity import MOTIONS, QUANTITIES
from taufit.robot import Robot

# Smaller zero offsets, tilts and clock errors are nobody's mistake [rad, rad, logarithm].
_LEAST_ANGLE, _LEAST_TILT, _LEAST_CLOCK = np.radians(5.0), np.radians(1.5), 0.05
# A tilt must be larger where the arm leaves more than this share of the torque unexplained, in
# proportion, up to this many times [1].
_WELL, _MOST_TIMES = 0.08, 3.0


@dataclass(frozen=True, slots=True, eq=False)
class DiagnosisRows:
    """Conditioned rows that hypotheses are tried on.

    Attributes:
        robot: The arm with its mounting.
        position, velocity, acceleration: Filtered.
        slip: Direction of motion, -1 to 1, filtered as the torque was.
        slow: The same building up over two displacements after each reversal.
        torque: Filtered; 0 where it does not count.
        keep: Rows that count, per joint: it moves, and its torque is no outlier.
        gain: Of each joint's channel where the user gave it; ones where it belongs to the signal.
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

    def at(self, which: slice | Array) -> DiagnosisRows:
        """Some of them."""
        per_row = ("position", "velocity", "acceleration", "slip", "slow", "torque", "keep")
        return replace(self, **{name: getattr(self, name)[which] for name in per_row})


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """A hypothesis.

    Attributes:
        kind: Of the finding it leads to.
        message: What is wrong and what to do, in a sentence each.
        joint: Counted from 1, or None for all or several.
        rows: The rows as they would be without the fault.
        remedy: What the user is advised to do.
        rank: Prior complexity: among equals the smaller one is named.
        shown: The rows by which the change and the recording as it is can both be judged.
        concerns: Joints, counted from 0, that must move for this to show; none for all.
        small: Whether it is too small a change to be anyone's mistake.
        scale: What it multiplies torque by.
    """

    kind: str
    message: str
    joint: int | None = None
    rows: Callable[[DiagnosisRows], DiagnosisRows] = field(default=lambda rows: rows)
    remedy: Remedy | None = None
    rank: float = 1.0
    shown: Callable[[DiagnosisRows], DiagnosisRows] = field(default=lambda rows: rows)
    concerns: tuple[int, ...] = ()
    small: bool = False
    scale: float = 1.0


# The torque channel and what gains are read from.
_DRIVE = (SIGNAL, "target_current", "target_torque")


def _drive_edits(key: str, value: tuple[float, ...]) -> tuple[MapEdit, ...]:
    return tuple(MapEdit(name, key, value) for name in _DRIVE)


def _flipped(values: Array, j: int) -> Array:
    out = np.array(values)
    out[:, j] = -out[:, j]
    return out


def _signs(joints: list[int], total: int) -> tuple[float, ...]:
    return tuple(-1.0 if j in joints else 1.0 for j in range(total))


def _motion_sign(j: int, total: int, *more: str) -> Remedy:
    """Positions, velocities and accelerations of a joint with the other sign."""
    value = _signs([j], total)
    motions = (name for name in QUANTITIES if name in MOTIONS)
    return Remedy(edits=tuple(MapEdit(name, "sign", value) for name in (*motions, *more)))


def torque_sign(joints: list[int], total: int) -> Correction:
    """Torque of some joints with the other sign."""
    signs = np.array(_signs(joints, total))
    listed = ", ".join(str(j + 1) for j in joints)
    line = ", ".join(f"{s:.0f}" for s in signs)
    which = f"joint {listed}" if len(joints) == 1 else "every joint"
    return Correction(
        "torque_sign",
        f"the torque of {which} has the other sign: with `sign: [{line}]` at the torque (or "
        "current) in the column map it agrees with the arm",
        joints[0] + 1 if len(joints) == 1 else None,
        rows=lambda rows: replace(rows, torque=rows.torque * signs),
        remedy=Remedy(edits=_drive_edits("sign", tuple(signs.tolist()))),
        concerns=tuple(joints) if len(joints) == 1 else (),
    )


def position_sign(j: int, total: int) -> Correction:
    """A joint whose positive direction is the other one."""
    return Correction(
        "torque_sign",
        f"joint {j + 1} turns the other way than the robot's description says: give `sign: -1` for "
        "it at position and velocity in the column map (its torque then agrees), or at the torque "
        "as well if that is counted in the same direction",
        j + 1,
        rows=lambda rows: replace(
            rows,
            position=_flipped(rows.position, j),
            velocity=_flipped(rows.velocity, j),
            acceleration=_flipped(rows.acceleration, j),
            slip=_flipped(rows.slip, j),
            slow=_flipped(rows.slow, j),
        ),
        remedy=_motion_sign(j, total),
        rank=2.0,
        concerns=(j,),
    )


def joint_direction(j: int, total: int) -> Correction:
    """A joint counted the other way throughout: position, velocity and torque."""
    base = position_sign(j, total)
    return replace(
        base,
        message=f"joint {j + 1} is counted the other way throughout: give `sign: -1` for it at "
        "position, velocity and torque in the column map",
        rows=lambda rows: replace(base.rows(rows), torque=_flipped(rows.torque, j)),
        remedy=_motion_sign(j, total, *_DRIVE),
        rank=2.5,
    )


def swapped_torque(i: int, k: int, total: int) -> Correction:
    """Torque columns of two joints exchanged."""
    order = list(range(total))
    order[i], order[k] = k, i

    def exchanged(values: Array) -> Array:
        return values[:, order]

    def both_move(rows: DiagnosisRows) -> DiagnosisRows:
        # A joint that stands is held by stiction; its torque says nothing about another's motion.
        keep = rows.keep.copy()
        keep[:, i] = keep[:, k] = rows.keep[:, i] & rows.keep[:, k]
        return replace(rows, keep=keep)

    return Correction(
        "swapped_torque",
        f"the torque columns of joints {i + 1} and {k + 1} are exchanged: with those two swapped "
        "in the column map the arm explains them",
        i + 1,
        rows=lambda rows: replace(rows, torque=exchanged(rows.torque / rows.gain) * rows.gain),
        remedy=Remedy(edits=_drive_edits("order", tuple(j + 1.0 for j in order))),
        rank=2.0,
        shown=both_move,
        concerns=(i, k),
    )


def reordered_joints(order: list[int], words: str) -> Correction:
    """All channels of the joints in another order; `order[i]` is where joint i's channels are."""
    listed = ", ".join(str(i + 1) for i in order)
    changed = [i for i, k in enumerate(order) if i != k]
    return Correction(
        "swapped_joints",
        f"{words}: the joints come in another order than the robot's. With the file's joints taken "
        f"in the order {listed} for every quantity of the column map (or `joint_names`) the arm "
        "explains the torque",
        changed[0] + 1,
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
        remedy=Remedy(edits=(MapEdit(EVERY, "order", tuple(j + 1.0 for j in order)),)),
        rank=2.0 if len(changed) == 2 else 1.5,
        concerns=tuple(changed),
    )


def zero_offset(j: int, offset: float, total: int) -> Correction:
    """A joint whose zero is elsewhere: q = recorded + offset."""

    zeros = np.zeros((1, total))

    def moved(values: Array) -> Array:
        out = np.array(values)
        out[:, j] += offset
        return out

    return Correction(
        "zero_offset",
        f"the zero of joint {j + 1} is {np.degrees(-offset):.0f} deg off: with `offset` "
        f"{offset:.4f} rad for it at the position in the column map the arm explains the torque",
        j + 1,
        rows=lambda rows: replace(rows, position=moved(rows.position)),
        remedy=Remedy(
            edits=(MapEdit("position", "offset", tuple(round(x, 4) for x in moved(zeros)[0])),)
        ),
        rank=3.0,
        concerns=(j,),
        small=abs((offset + np.pi) % (2 * np.pi) - np.pi) < _LEAST_ANGLE,
    )


def remounted(
    mounting: tuple[float, float, float], angle: float, message: str, option: str, share: float
) -> Correction:
    """Gravity from another direction, this far from the declared one [rad]; the arm as declared
    leaves a share of the torque unexplained.
    """
    least = _LEAST_TILT * min(max(share / _WELL, 1.0), _MOST_TIMES)
    return Correction(
        "mounting",
        message,
        rows=lambda rows: replace(rows, robot=rows.robot.with_mounting(mounting)),
        remedy=Remedy(("--mounting", option)),
        rank=2.0,
        small=angle < least,
    )


def clock_scale(factor: float) -> Correction:
    """Time stamps that run too fast or too slow: true time = factor x recorded."""
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
        small=abs(np.log(factor)) < _LEAST_CLOCK,
    )


def restore_gravity(gravity: Callable[[Robot, Array], Array]) -> Correction:
    """Torque from which the controller subtracted gravity."""
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
    """Torque in another unit: true torque = factor x recorded; by the unit's name if it has one."""
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
    """Another arm of the same number of joints."""
    return Correction(
        "wrong_arm",
        f"the torque is that of another arm: {robot.name} explains it. Fit with `{robot.name}`",
        rows=lambda rows: replace(rows, robot=replace(robot, mounting=rows.robot.mounting)),
        remedy=Remedy(robot=robot.name),
        rank=2.0,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Fault of a recording, and the change that corrects it; None where none was found."""

    finding: Finding
    change: Correction | None = None
