"""Controllers are told the payload as it sits on the flange, whatever the last link's frame is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from taufit.dynamics import forward_kinematics
from taufit.payload.controller_commands import FlangePayload
from taufit.robot import read_robot

# Distance from the last joint's frame to the flange along its axis, by the makers' drawings [m];
# the frames of the UR and KR5 descriptions end on the flange.
FLANGES = {"ur10": 0.0, "panda": 0.107, "fr3": 0.107, "iiwa14": 0.126, "kr5": 0.0}
CENTRE = np.array([0.021, -0.034, 0.085])
TENSOR = np.array([[0.02, 0.003, -0.001], [0.003, 0.015, 0.002], [-0.001, 0.002, 0.01]])


def in_last_link(robot, centre, tensor):
    """A body on the flange, carried through the base to the last link's frame."""
    q = np.random.default_rng(3).uniform(-1.0, 1.0, (1, robot.joints))
    poses = forward_kinematics(robot, q)[0]
    link, flange = poses[-2], poses[-1]
    world = flange @ np.append(centre, 1.0)
    turn = link[:3, :3].T @ flange[:3, :3]
    return (np.linalg.inv(link) @ world)[:3], turn @ tensor @ turn.T


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def rotation_zyx(a, b, c):
    ca, sa, cb, sb, cc, sc = (f(np.radians(x)) for x in (a, b, c) for f in (np.cos, np.sin))
    z = np.array([[ca, -sa, 0], [sa, ca, 0], [0, 0, 1]])
    y = np.array([[cb, 0, sb], [0, 1, 0], [-sb, 0, cb]])
    x = np.array([[1, 0, 0], [0, cc, -sc], [0, sc, cc]])
    return z @ y @ x


def rotation_of(w, x, y, z):
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize("name", FLANGES)
def test_every_line_says_the_centre_from_the_flange(name):
    robot = read_robot(name)
    assert robot.tip[2, 3] == pytest.approx(FLANGES[name], abs=1e-6)
    centre, tensor = in_last_link(robot, CENTRE, TENSOR)
    told = FlangePayload.from_last_link(2.5, centre, tensor, robot.tip)
    np.testing.assert_allclose(told.centre, CENTRE, atol=1e-12)
    np.testing.assert_allclose(told.inertia, TENSOR, atol=1e-12)
    lines = told.lines()

    ur = numbers(lines["ur"])
    assert ur[0] == 2.5 and lines["ur"].startswith("set_target_payload(")
    np.testing.assert_allclose(ur[1:4], CENTRE, atol=1e-4)
    entries = TENSOR[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    np.testing.assert_allclose(ur[4:], entries, rtol=1e-4)

    franka = numbers(lines["franka"])
    np.testing.assert_allclose(franka[1:4], CENTRE, atol=1e-4)
    np.testing.assert_allclose(np.reshape(franka[4:], (3, 3)).T, TENSOR, rtol=1e-4)

    kuka = numbers(lines["kuka"].removeprefix("LOAD_DATA[1]="))
    np.testing.assert_allclose(np.array(kuka[1:4]) / 1e3, CENTRE, atol=1e-4)
    axes = rotation_zyx(*kuka[4:7])
    np.testing.assert_allclose(axes @ np.diag(kuka[7:]) @ axes.T, TENSOR, atol=1e-6)

    abb = numbers(lines["abb"])
    np.testing.assert_allclose(np.array(abb[1:4]) / 1e3, CENTRE, atol=1e-4)
    axes = rotation_of(*abb[4:8])
    np.testing.assert_allclose(axes @ np.diag(abb[8:]) @ axes.T, TENSOR, atol=1e-6)


def test_a_turned_flange_turns_the_inertia():
    flange = np.eye(4)
    flange[:3, :3], flange[:3, 3] = rotation_zyx(30.0, -40.0, 75.0), (0.1, -0.2, 0.3)
    link = flange[:3, :3] @ TENSOR @ flange[:3, :3].T
    centre = flange[:3, :3] @ CENTRE + flange[:3, 3]
    told = FlangePayload.from_last_link(1.0, centre, link, flange)
    np.testing.assert_allclose(told.centre, CENTRE, atol=1e-12)
    np.testing.assert_allclose(told.inertia, TENSOR, atol=1e-12)
