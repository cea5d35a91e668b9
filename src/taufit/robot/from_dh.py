"""A robot from Denavit-Hartenberg tables, standard or modified."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import RobotError
from taufit.robot.pose import adjoint, inverse_pose, rotation, shift
from taufit.robot.robot import Drives, Limits, Link, Robot

_Z_ROTATION = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
_Z_TRANSLATION = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def from_dh(
    rows: Float[Array, "j 4"],
    *,
    convention: str = "standard",
    name: str = "arm",
    prismatic: tuple[bool, ...] | None = None,
    parameters: Float[Array, "j 10"] | None = None,
    limits: Limits | None = None,
    tip: Float[Array, "4 4"] | None = None,
    source: str = "",
) -> Robot:
    """An arm from rows [theta offset, d, a, alpha], in metres and radians.

    standard: T = Rz(theta+q) Tz(d) Tx(a) Rx(alpha), so M is that at q = 0 and the screw is the
    previous frame's z axis carried into the link frame.
    modified: T = Rx(alpha) Tx(a) Rz(theta+q) Tz(d), a and alpha of the preceding link; the screw
    is the frame's own z axis.

    Link frames are the convention's frames: inertial parameters refer to them. Angles within
    1e-5 of a multiple of 45 degrees are taken as that multiple, since tables print 1.5708.
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
    slides = prismatic or (False,) * joints
    inertial = np.zeros((joints, 10)) if parameters is None else np.asarray(parameters, float)

    links = []
    for i, (theta, d, a, alpha) in enumerate(table):
        turn, twist = rotation(2, _snap(theta)), rotation(0, _snap(alpha))
        axis = _Z_TRANSLATION if slides[i] else _Z_ROTATION
        if convention == "modified":
            placement = twist @ shift(0, a) @ turn @ shift(2, d)
            screw = axis.copy()
        else:
            placement = turn @ shift(2, d) @ shift(0, a) @ twist
            screw = adjoint(inverse_pose(placement)) @ axis
        links.append(Link(f"link_{i + 1}", f"joint_{i + 1}", placement, screw, inertial[i].copy()))

    lengths = tuple(
        (f"{letter}{i + 1}", float(table[i, column]))
        for i in range(joints)
        for letter, column in (("a", 2), ("d", 1))
        if table[i, column] != 0.0
    )
    return Robot(
        name,
        tuple(links),
        limits or Limits.none(joints),
        Drives.direct(joints),
        tip=np.eye(4) if tip is None else np.asarray(tip, float),
        lengths=lengths,
        source=source,
    )


def _snap(angle: float) -> float:
    nearest = np.round(angle / (np.pi / 4)) * (np.pi / 4)
    return float(nearest) if abs(angle - nearest) < 1e-5 else float(angle)
