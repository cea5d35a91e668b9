"""Robots from screw axes in the base frame and the flange pose at the reference position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.core.parameters import PER_LINK, joint_name, link_name
from taufit.robot.checks import normalise_axis
from taufit.robot.robot import Drives, JointLimits, Link, Robot


def from_screws(
    screws: Float[Array, "j 6"],
    *,
    tip: Float[Array, "4 4"] | None = None,
    name: str = "arm",
    parameters: Float[Array, "j 10"] | None = None,
    limits: JointLimits | None = None,
    names: Sequence[tuple[str, str]] | None = None,
    rotor_inertias: Float[Array, " j"] | None = None,
    source: str = "",
) -> Robot:
    """Create a robot with flange pose exp([xi_1] q_1) ... exp([xi_j] q_j) tip.

    Each screw is (omega; v) in the base frame at q = 0. All link frames coincide with the base
    frame at q = 0, so M = 1, S = xi, and inertial parameters refer to that frame. A row with
    omega = 0 is a prismatic joint along v. Rows are normalised.
    """
    rows = np.asarray(screws, float)
    if rows.ndim != 2 or rows.shape[1] != 6 or len(rows) == 0:
        raise RobotError("screws have one row (wx, wy, wz, vx, vy, vz) per joint.")
    if not np.all(np.isfinite(rows)):
        raise RobotError(f"screw {np.argwhere(~np.isfinite(rows))[0][0] + 1} is not finite.")
    joints = len(rows)
    link_parameters = (
        np.zeros((joints, PER_LINK)) if parameters is None else np.asarray(parameters, float)
    )
    links = []
    for i, row in enumerate(rows):
        link, joint = names[i] if names else (link_name(i), joint_name(i))
        rotor_inertia = 0.0 if rotor_inertias is None else float(rotor_inertias[i])
        screw = normalise_screw(row, f"screw {i + 1}")
        links.append(Link(link, joint, np.eye(4), screw, link_parameters[i].copy(), rotor_inertia))
    lengths, slopes = screw_lengths(np.array([link.screw for link in links]))
    return Robot(
        name,
        tuple(links),
        limits or JointLimits.unlimited(joints),
        Drives.joint_torque(joints),
        tip=np.eye(4) if tip is None else np.asarray(tip, float),
        lengths=lengths,
        length_slopes=slopes,
        source=source,
    )


def normalise_screw(row: Float[Array, " 6"], label: str) -> Float[Array, " 6"]:
    """Screw with a unit axis; raises if it has a pitch."""
    omega, v = row[:3], row[3:]
    size = float(np.linalg.norm(omega))
    if size < 1e-6:
        return np.concatenate([np.zeros(3), normalise_axis(v, label)])
    axis = normalise_axis(omega, label)
    moment = v / size
    pitch = float(axis @ moment)
    if abs(pitch) > 1e-4 * max(1.0, float(np.linalg.norm(moment))):
        raise RobotError(
            f"{label} has a pitch of {pitch:g} m: joints must turn or slide, not both "
            "(omega . v must be zero)."
        )
    moment = moment - pitch * axis
    moment[np.abs(moment) < 1e-9] = 0.0
    return np.concatenate([axis, moment])


def screw_lengths(
    screws: Float[Array, "j 6"],
) -> tuple[tuple[tuple[str, float], ...], Float[Array, "l j 9"]]:
    """Distinct moments of the axes about the base as named lengths, e.g. v4x.

    Equal values are one length, so that intersecting axes still intersect when it changes.
    """
    lengths: list[tuple[str, float]] = []
    slopes: list[Float[Array, "j 9"]] = []
    for i, screw in enumerate(screws):
        if not np.any(screw[:3]):
            continue
        for k in range(3):
            value = float(screw[3 + k])
            if value == 0.0:
                continue
            index = next(
                (n for n, (_, x) in enumerate(lengths) if abs(abs(value) - x) < 1e-9), len(lengths)
            )
            if index == len(lengths):
                lengths.append((f"v{i + 1}{'xyz'[k]}", abs(value)))
                slopes.append(np.zeros((len(screws), 9)))
            slopes[index][i, 6 + k] = np.sign(value)
    return tuple(lengths), np.array(slopes).reshape(-1, len(screws), 9)
