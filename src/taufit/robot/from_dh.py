"""Robots from Denavit-Hartenberg tables, standard or modified."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.core.parameters import PER_LINK, joint_name, link_name
from taufit.robot.pose import (
    adjoint,
    inverse_pose,
    rotation_about_axis,
    snap_angle,
    translation_along_axis,
)
from taufit.robot.robot import Drives, JointLimits, Link, Robot

_Z_ROTATION = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
_Z_TRANSLATION = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def from_dh(  # noqa: PLR0913 - the public call has one keyword per choice
    rows: Float[Array, "j 4"],
    *,
    convention: str = "standard",
    name: str = "arm",
    prismatic: tuple[bool, ...] | None = None,
    parameters: Float[Array, "j 10"] | None = None,
    limits: JointLimits | None = None,
    tip: Float[Array, "4 4"] | None = None,
    names: Sequence[tuple[str, str]] | None = None,
    rotor_inertias: Float[Array, " j"] | None = None,
    source: str = "",
) -> Robot:
    """Create a robot from rows [theta offset, d, a, alpha], in metres and radians.

    standard: T = Rz(theta+q) Tz(d) Tx(a) Rx(alpha); M is T at q = 0 and the screw is the previous
    frame's z axis in the link frame.
    modified: T = Rx(alpha) Tx(a) Rz(theta+q) Tz(d), a and alpha of the preceding link; the screw
    is the frame's z axis.

    Inertial parameters refer to the convention's link frames. `names` are (link, joint) pairs.
    Angles within 1e-5 of a multiple of 45 degrees are rounded to it, since tables print 1.5708.
    """
    table = np.asarray(rows, float)
    if table.ndim != 2 or table.shape[1] != 4 or len(table) == 0:
        raise RobotError("a DH table has one row [theta, d, a, alpha] per joint.")
    if not np.all(np.isfinite(table)):
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise RobotError(
            f"DH row {row + 1} has no finite number for {('theta', 'd', 'a', 'alpha')[column]}."
        )
    if convention not in ("standard", "modified"):
        raise RobotError(f"DH convention {convention!r} is not known: use standard or modified.")
    joints = len(table)
    default_names = [(link_name(i), joint_name(i)) for i in range(joints)]
    is_prismatic = prismatic or (False,) * joints
    link_parameters = (
        np.zeros((joints, PER_LINK)) if parameters is None else np.asarray(parameters, float)
    )

    links = []
    for i, row in enumerate(table):
        placement, screw = _row(row, convention, is_prismatic[i])
        link, joint = (names or default_names)[i]
        rotor_inertia = 0.0 if rotor_inertias is None else float(rotor_inertias[i])
        links.append(Link(link, joint, placement, screw, link_parameters[i].copy(), rotor_inertia))

    lengths, slopes = _lengths(table, convention, is_prismatic)
    return Robot(
        name,
        tuple(links),
        limits or JointLimits.unlimited(joints),
        Drives.joint_torque(joints),
        tip=np.eye(4) if tip is None else np.asarray(tip, float),
        lengths=lengths,
        length_slopes=np.array(slopes).reshape(-1, joints, 9),
        source=source,
    )


def _lengths(
    table: Float[Array, "j 4"], convention: str, is_prismatic: tuple[bool, ...]
) -> tuple[tuple[tuple[str, float], ...], list[Float[Array, "j 9"]]]:
    """Nonzero lengths a and d, and the derivatives of placements and screws by each."""
    lengths: list[tuple[str, float]] = []
    slopes: list[Float[Array, "j 9"]] = []
    for i, (letter, column) in product(range(len(table)), (("a", 2), ("d", 1))):
        value = float(table[i, column])
        if value == 0.0:
            continue
        unit = np.zeros(4)
        unit[[0, 3]] = table[i, [0, 3]]
        # Positions are linear in the lengths: the derivative is the change from 0 to 1.
        at_zero = _row(unit, convention, is_prismatic[i])
        unit[column] = 1.0
        at_one = _row(unit, convention, is_prismatic[i])
        slope = np.zeros((len(table), 9))
        slope[i, :3] = (at_one[0] - at_zero[0])[:3, 3]
        slope[i, 3:] = at_one[1] - at_zero[1]
        # Opposite offsets (a5 = -a4) are one length.
        opposite = next((k for k, pair in enumerate(lengths) if pair == (pair[0], -value)), None)
        if opposite is not None and lengths[opposite][0].startswith(letter):
            slopes[opposite] -= slope
            continue
        lengths.append((f"{letter}{i + 1}", value))
        slopes.append(slope)
    return tuple(lengths), slopes


def _row(
    row: Float[Array, " 4"], convention: str, is_prismatic: bool
) -> tuple[Float[Array, "4 4"], Float[Array, " 6"]]:
    """Placement and screw of one joint."""
    theta, d, a, alpha = row
    rotation_z, rotation_x = (
        rotation_about_axis(2, snap_angle(theta)),
        rotation_about_axis(0, snap_angle(alpha)),
    )
    axis = _Z_TRANSLATION if is_prismatic else _Z_ROTATION
    if convention == "modified":
        return rotation_x @ translation_along_axis(0, a) @ rotation_z @ translation_along_axis(
            2, d
        ), axis.copy()
    placement = (
        rotation_z @ translation_along_axis(2, d) @ translation_along_axis(0, a) @ rotation_x
    )
    return placement, adjoint(inverse_pose(placement)) @ axis
