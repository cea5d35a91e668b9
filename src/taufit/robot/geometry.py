"""Changes of a robot's geometry: joint zeros and named lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.robot.pose import screw_motion
from taufit.robot.robot import Robot


def change_joint_zeros(robot: Robot, zeros: Sequence[float] | Float[Array, " j"]) -> Robot:
    """Copy with other joint zero offsets: joint position = recorded + zero.

    M exp([S] (q + zero)) = (M exp([S] zero)) exp([S] q), so only placements change, and recorded
    positions can be used unchanged.
    """
    zeros = tuple(float(zero) for zero in zeros)
    if len(zeros) not in (0, robot.joints) or not np.all(np.isfinite(zeros)):
        raise RobotError(
            f"{robot.name} has {robot.joints} joints; joint zeros are as many numbers, or none."
        )
    offsets = np.zeros(robot.joints) if not zeros else np.array(zeros)
    change = offsets - (np.array(robot.joint_zeros) if robot.joint_zeros else 0.0)
    links = tuple(
        replace(link, placement=link.placement @ screw_motion(link.screw, float(step)))
        if step
        else link
        for link, step in zip(robot.links, robot.bind(change), strict=True)
    )
    compensators = tuple(
        replace(compensator, angle=compensator.angle + float(change[compensator.joint]))
        for compensator in robot.compensators
    )
    zeros = zeros if np.any(offsets) else ()
    return replace(robot, links=links, joint_zeros=zeros, compensators=compensators)


def change_lengths(robot: Robot, values: Mapping[str, float]) -> Robot:
    """Copy with some of its named lengths changed [m].

    Rotations do not depend on lengths and positions do so linearly, hence
    geometry(l + dl) = geometry(l) + slopes dl.
    """
    if robot.joint_zeros:
        return robot.with_joint_zeros(()).with_lengths(values).with_joint_zeros(robot.joint_zeros)
    length_names = [name for name, _ in robot.lengths]
    unknown = [name for name in values if name not in length_names]
    if unknown or len(robot.length_slopes) != len(length_names):
        available = (
            ", ".join(length_names) if len(robot.length_slopes) == len(length_names) else "none"
        )
        raise RobotError(
            f"{robot.name} has no length {unknown[0] if unknown else length_names[0]!r} that can "
            f"be changed; it has {available}."
        )
    if not length_names:
        return robot
    change = np.array([values.get(name, value) - value for name, value in robot.lengths])
    links = []
    for link, step in zip(
        robot.links, np.einsum("l,ljk->jk", change, robot.length_slopes), strict=True
    ):
        placement = link.placement.copy()
        placement[:3, 3] += step[:3]
        links.append(replace(link, placement=placement, screw=link.screw + step[3:]))
    lengths = tuple((name, float(values.get(name, value))) for name, value in robot.lengths)
    return replace(robot, links=tuple(links), lengths=lengths)
