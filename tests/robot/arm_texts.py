"""Descriptions of arms for the tests: written here, so that no file is needed."""

from __future__ import annotations

import numpy as np

from taufit.robot import Robot
from taufit.robot.inertia import to_centre_of_mass


def ur10_urdf(digits: int = 15) -> str:
    """A UR10 in the layout of its vendor's URDF, with right angles printed to some digits."""
    right = f"{np.pi / 2:.{digits}f}"
    half = f"{np.pi:.{digits}f}"
    joints = [
        # name, parent, child, xyz, rpy, axis
        ("pan", "base_link", "shoulder", "0 0 0.1273", f"0 0 {half}", "0 0 1"),
        ("lift", "shoulder", "upper_arm", "0 0.220941 0", f"0 {right} 0", "0 1 0"),
        ("elbow", "upper_arm", "forearm", "0 -0.1719 0.612", "0 0 0", "0 1 0"),
        ("wrist_1", "forearm", "wrist_1_link", "0 0 0.5723", f"0 {right} 0", "0 1 0"),
        ("wrist_2", "wrist_1_link", "wrist_2_link", "0 0.1149 0", "0 0 0", "0 0 1"),
        ("wrist_3", "wrist_2_link", "wrist_3_link", "0 0 0.1157", "0 0 0", "0 1 0"),
    ]
    bodies = {
        "shoulder": (7.778, "0 0 0", 0.0315, 0.0219),
        "upper_arm": (12.93, "0 0 0.306", 0.4218, 0.0364),
        "forearm": (3.87, "0 0 0.28615", 0.1111, 0.0109),
        "wrist_1_link": (1.96, "0 0.1149 0", 0.0051, 0.0055),
        "wrist_2_link": (1.96, "0 0 0.1157", 0.0051, 0.0055),
        "wrist_3_link": (0.202, "0 0.0771 0", 0.0005, 0.0005),
    }
    lines = ['<robot name="ur10_test">', '  <link name="world"/>', '  <link name="base_link"/>']
    for name, (mass, centre, across, along) in bodies.items():
        lines.append(
            f'  <link name="{name}"><visual><geometry><mesh filename="package://nowhere/x.dae"/>'
            f'</geometry></visual><inertial><mass value="{mass}"/><origin xyz="{centre}" '
            f'rpy="0 0 0"/><inertia ixx="{across}" ixy="0" ixz="0" iyy="{across}" iyz="0" '
            f'izz="{along}"/></inertial></link>'
        )
    lines.append('  <link name="tool0"/>')
    lines.append(
        '  <joint name="fixed_base" type="fixed"><parent link="world"/><child link="base_link"/>'
        "</joint>"
    )
    for name, parent, child, xyz, rpy, axis in joints:
        lines.append(
            f'  <joint name="{name}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            '<limit lower="-6.28" upper="6.28" effort="100" velocity="2.1"/></joint>'
        )
    lines.append(
        '  <joint name="tool_joint" type="fixed"><parent link="wrist_3_link"/>'
        f'<child link="tool0"/><origin xyz="0 0.0922 0" rpy="-{right} 0 0"/></joint>'
    )
    lines.append("</robot>")
    return "\n".join(lines)


def urdf_of(robot: Robot) -> str:
    """A URDF of an arm whose joint axes pass through its link frames (modified DH)."""
    lines = [f'<robot name="{robot.name}">', '  <link name="base"/>']
    parent = "base"
    for link in robot.links:
        mass, centre, tensor = to_centre_of_mass(link.parameters)
        rotation = link.placement[:3, :3]
        pitch = -np.arcsin(np.clip(rotation[2, 0], -1.0, 1.0))
        if abs(rotation[2, 0]) < 1.0 - 1e-12:
            roll = np.arctan2(rotation[2, 1], rotation[2, 2])
            yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
        else:
            roll = 0.0
            yaw = np.arctan2(-rotation[0, 1], rotation[1, 1])
        kind = "prismatic" if link.is_prismatic else "continuous"
        axis = link.screw[3:] if link.is_prismatic else link.screw[:3]
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = tensor
        lines += [
            f'  <link name="{link.name}"><inertial><mass value="{mass!r}"/>'
            f'<origin xyz="{_join(centre)}"/><inertia ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" '
            f'iyy="{yy!r}" iyz="{yz!r}" izz="{zz!r}"/></inertial></link>',
            f'  <joint name="{link.joint}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{link.name}"/><origin xyz="{_join(link.placement[:3, 3])}" '
            f'rpy="{_join((roll, pitch, yaw))}"/><axis xyz="{_join(axis)}"/>'
            '<limit lower="-3" upper="3" effort="100" velocity="2"/></joint>',
        ]
        parent = link.name
    return "\n".join([*lines, "</robot>"]).replace("np.float64(", "").replace(")", "")


def _join(values: object) -> str:
    return " ".join(repr(float(x)) for x in values)  # type: ignore[attr-defined]
