"""Rounded angles do not add base parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from arm_texts import ur10_urdf

from taufit.dynamics import base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.robot import from_urdf, read_robot
from taufit.robot.pose import rotation_about_axis, snap_angle
from taufit.terms.friction import Linear


@pytest.mark.parametrize("digits", [5, 6, 7, 9, 10, 15])
@pytest.mark.parametrize("rule", ["qr", "leftmost"])
def test_the_rank_of_the_ur10_survives_rounded_angles(digits, rule):
    robot = from_urdf(ur10_urdf(digits))

    assert base_parameters(robot, rule=rule).rank == 36
    assert base_parameters(TorqueModel(robot, Linear()), rule=rule).rank == 58


@pytest.mark.parametrize("size", [1e-10, 1e-8, 1e-7])
@pytest.mark.parametrize("rule", ["qr", "leftmost"])
def test_the_rank_survives_errors_that_no_snapping_catches(size, rule):
    """Every placement turned a little about a random axis: what rounding of odd angles does."""
    rng = np.random.default_rng(3)
    robot = read_robot("ur10")
    links = []
    for link in robot.links:
        wobble = rotation_about_axis(0, size * rng.normal()) @ rotation_about_axis(
            1, size * rng.normal()
        )
        links.append(replace(link, placement=link.placement @ wobble))
    found = base_parameters(replace(robot, links=tuple(links)), rule=rule)

    assert found.rank == 36


def test_angles_near_multiples_of_45_degrees_are_taken_as_them():
    assert snap_angle(1.5708) == np.pi / 2
    assert snap_angle(-0.785398) == -np.pi / 4
    assert snap_angle(1.571) == 1.571
    assert snap_angle(3.14159) == np.pi
