"""Sketch of an arm as capsules in space, with a force to scale, as SVG."""

from __future__ import annotations

import html

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.number_text import fixed
from taufit.dynamics import forward_kinematics
from taufit.dynamics.recursion import link_poses
from taufit.report.palette import css
from taufit.robot import Robot
from taufit.robot.mounting import rotation_rpy
from taufit.robot.tree import TreeRobot

_WIDTH, _HEIGHT, _MARGIN = 320.0, 300.0, 26.0
_YAW, _PITCH = -0.7, 0.35


def arm_sketch(
    robot: Robot,
    position: Float[Array, " j"],
    *,
    label: str,
    force: Float[Array, " 3"] | None = None,
    point: Float[Array, " 3"] | None = None,
) -> str:
    """SVG of the arm at a joint position; everything fits into the picture.

    Args:
        robot: Robot; its mounting turns the picture.
        position: Joint positions.
        label: Description for readers without the picture.
        force: Force in base axes [N], drawn as an arrow that ends at `point`.
        point: Point in base axes [m].
    """
    base = rotation_rpy(*robot.mounting)
    chains = [points @ base.T for points in _branches(robot, position[None])]
    joints = np.concatenate(chains)
    steps = [np.linalg.norm(np.diff(chain, axis=0), axis=1).sum() for chain in chains]
    reach = max(float(max(steps)), 0.1)
    size = 0.0 if force is None else float(np.linalg.norm(force))
    arrow = None
    if force is not None and point is not None and size > 0.0:
        end = base @ point
        arrow = np.stack([end - 0.32 * reach * (base @ force) / size, end])
    corners = [joints] if arrow is None else [joints, arrow]
    flat = _project(np.concatenate(corners))
    floor = _project(0.4 * reach * np.array([[x, y, 0] for x in (-1, 1) for y in (-1, 1)], float))
    all_points = np.concatenate([flat, floor])
    low, high = all_points.min(axis=0), all_points.max(axis=0)
    scale = min(
        (_WIDTH - 2 * _MARGIN) / np.ptp(all_points[:, 0]), (_HEIGHT - 70) / np.ptp(all_points[:, 1])
    )
    middle = 0.5 * (low + high)

    def pixels(points: Float[Array, "k 3"]) -> Float[Array, "k 2"]:
        flat_points = (_project(points) - middle) * scale
        return np.column_stack(
            [_WIDTH / 2 + flat_points[:, 0], (_HEIGHT - 24) / 2 - flat_points[:, 1]]
        )

    parts = [_floor(pixels, reach), *(_capsules(pixels(chain)) for chain in chains)]
    if arrow is not None:
        parts.append(_arrow(pixels(arrow), size))
    bar = _round_length(0.35 * reach)
    parts.append(_scale_bar(_WIDTH - 16, bar * scale, f"{bar:g} m", css("soft"), "end"))
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'aria-label="{html.escape(label, quote=True)}" style="width:100%;max-width:360px;'
        f'display:block;background:{css("card")};border-radius:8px">{"".join(parts)}</svg>'
    )


def _branches(robot: Robot, position: Float[Array, "1 j"]) -> list[Float[Array, "k 3"]]:
    """Points from the base to the tip, or to every end of a tree, in base axes."""
    if not isinstance(robot, TreeRobot):
        return [np.vstack([np.zeros(3), forward_kinematics(robot, position)[0, :, :3, 3]])]
    origins = link_poses(robot, position)[0, :, :3, 3]
    ends = [b for b in range(robot.bodies) if b not in robot.parents]
    return [np.vstack([np.zeros(3), origins[robot.path(b)]]) for b in ends]


def _project(points: Float[Array, "k 3"]) -> Float[Array, "k 2"]:
    """Parallel projection, seen from above the side."""
    x, y, z = points.T
    across = np.cos(_YAW) * x - np.sin(_YAW) * y
    depth = np.sin(_YAW) * x + np.cos(_YAW) * y
    return np.column_stack([across, np.cos(_PITCH) * z + np.sin(_PITCH) * depth])


def _floor(pixels: object, reach: float) -> str:
    side = 0.4 * reach
    ticks = np.linspace(-side, side, 5)
    lines = [[[x, -side, 0], [x, side, 0]] for x in ticks] + [
        [[-side, y, 0], [side, y, 0]] for y in ticks
    ]
    path = "".join(_path(pixels(np.array(line, float))) for line in lines)  # type: ignore[operator]
    return f'<path d="{path}" fill="none" stroke="{css("line")}"/>'


def _capsules(points: Float[Array, "k 2"]) -> str:
    out = []
    widths = np.linspace(20.0, 9.0, len(points) - 1)
    for a, b, width in zip(points[:-1], points[1:], widths, strict=True):
        if np.linalg.norm(b - a) < 0.5:
            continue
        path = _path(np.stack([a, b]))
        out += [
            f'<path d="{path}" stroke="{css(colour)}" stroke-width="{size:.1f}" '
            'stroke-linecap="round"/>'
            for colour, size in (("rim", width + 2), ("body", width))
        ]
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{css("rim")}"/>' for x, y in points[1:]
    )
    return "".join(out) + dots


def _arrow(ends: Float[Array, "2 2"], size: float) -> str:
    start, end = ends
    along = end - start
    length = float(np.linalg.norm(along))
    unit = along / length if length > 1.0 else np.array([0.0, 1.0])
    side = np.array([-unit[1], unit[0]])
    head = np.stack([end, end - 11 * unit + 5 * side, end - 11 * unit - 5 * side])
    x = min(max(start[0], 30.0), _WIDTH - 30.0)
    return (
        f'<path d="{_path(np.stack([start, end - 9 * unit]))}" stroke="{css("residual")}" '
        f'stroke-width="3.5"/><path d="{_path(head)}Z" fill="{css("residual")}"/>'
        f'<text x="{x:.1f}" y="{max(start[1] - 7, 14):.1f}" text-anchor="middle" font-size="13" '
        f'font-weight="650" fill="{css("residual")}">{fixed(size, 0)} N</text>'
    )


def _scale_bar(x: float, length: float, text: str, colour: str, anchor: str) -> str:
    left_edge = x - length
    y = _HEIGHT - 10
    return (
        f'<path d="M{left_edge:.1f} {y - 3}v6M{left_edge:.1f} {y}H{x:.1f}M{x:.1f} {y - 3}v6" '
        f'stroke="{colour}" fill="none" stroke-width="1.5"/><text x="{left_edge - 6:.1f}" '
        f'y="{y + 4}" text-anchor="{anchor}" font-size="12" fill="{colour}">{text}</text>'
    )


def _round_length(length: float) -> float:
    """Largest of 1, 2, 5 times a power of ten up to a length."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(max(k * power for k in (1, 2, 5) if k * power <= length))


def _path(points: Float[Array, "k 2"]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
