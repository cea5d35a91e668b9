"""The way to the start: proved legs, judged by bodies that are not our capsules."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.accuracy.clearance import ways
from benchmarks.flat_bodies import FlatArm

from taufit.clearance import ClearanceCheck, read_motion_file
from taufit.clearance.playback import STREAM, shift_by_turns, turns_towards
from taufit.excitation.motion_file import motion_from_dict
from taufit.robot import read_robot
from taufit.wire.player import Approach

ROBOT = read_robot("ur5e")


@pytest.fixture(scope="module")
def check(fourier, tmp_path_factory):
    path = tmp_path_factory.mktemp("motion") / "m.json"
    path.write_text(json.dumps(fourier))
    return ClearanceCheck(read_motion_file(path), ROBOT, mode=STREAM)


@pytest.mark.parametrize("arm", ["ur3e", "ur5e", "ur10", "panda", "kr5"])
def test_starts_reached_by_clear_walks_are_left_by_clear_ways(arm):
    count, seconds, least = ways(arm, 6, 6, effort=0.1)
    assert count["walked refused"] == 0 and count["legs that touch"] == 0 and least > 0.0
    assert count["refusals without a pair or a way out"] == 0
    assert np.median(seconds) < 0.05


def test_a_way_through_the_table_goes_by_a_via_pose(check):
    # From one side of the table to the other with the arm stretched: straight means through it.
    goal = check.motion.at(np.zeros(1))[0][0]
    rng = np.random.default_rng(8)
    low, high = np.maximum(check.limits.lower, -np.pi), np.minimum(check.limits.upper, np.pi)
    found = []
    while len(found) < 3:
        pose = rng.uniform(low, high)
        straight = np.stack([pose, goal])
        if check.approaches.is_free(pose) and not check.approaches.is_clear(straight):
            way = check.approaches.find(pose, goal)
            if way is not None:
                found.append((straight, way))
    for straight, way in found:
        assert len(way.poses) > 2 and way.kind != "straight"
        assert FlatArm("ur5e").gaps(way.poses).min() > 0.0
        pair, apart = check.approaches.blocking(*straight)
        assert " and " in pair and apart < 0.01


def test_a_pose_that_touches_or_leaves_the_limits_is_refused_by_name(check):
    folded = np.array([0.0, -1.5, 2.9, 0.0, 0.0, 0.0])
    found = check.clear(folded)
    assert len(found.reasons) == 1 and "Jog them apart" in found.reasons[0]
    assert "link" in found.reasons[0] and found.approach is None
    outside = np.array([7.0, -1.5, 1.0, 0.0, 0.0, 0.0])
    assert "outside its limits" in check.clear(outside).reasons[0]


def test_what_cannot_be_reached_names_a_pose_from_which_it_can(check, monkeypatch):
    goal = check.motion.at(np.zeros(1))[0][0]
    monkeypatch.setattr(type(check.approaches), "find", lambda *a, **k: None)
    text = check.clear(np.array([1.0, -1.2, 1.0, 0.5, 0.5, 0.0])).reasons[0]
    assert "no clear way" in text and "Jog the arm to [" in text
    named = [float(x) for x in text.split("Jog the arm to [")[1].split("]")[0].split(",")]
    homes = check.approaches.homes_with_leg_to(goal)
    assert min(np.abs(np.degrees(h) - named).max() for h in homes) < 1.0


def test_a_full_turn_on_is_the_same_motion(fourier):
    motion = motion_from_dict(fourier)
    start = motion.at(np.zeros(1))[0][0]
    here = start + np.array([0, 0, 0, 0, 0, 2 * np.pi])
    turns = turns_towards(motion, here, ROBOT.limits, np.ones(6, bool))
    moved = shift_by_turns(motion, turns)
    gap = moved.at(np.zeros(1))[0][0] - start
    assert set(np.round(gap / (2 * np.pi), 9)) <= {-1.0, 0.0, 1.0}
    q = moved.at(np.linspace(0, 10, 500))[0]
    assert np.all(q <= ROBOT.limits.upper) and np.all(q >= ROBOT.limits.lower)


def test_legs_keep_their_speed_and_acceleration():
    poses = np.array([[0.0, 0.0], [1.0, -0.5], [1.001, -0.5], [4.0, 0.0]])
    way = Approach(poses, 0.3, 0.5)
    time = np.linspace(0.0, way.seconds, 400_001)
    q = way.states(time)[0]
    h = time[1]
    v = np.diff(q, axis=0) / h
    a = np.diff(v, axis=0) / h
    assert np.abs(v).max() == pytest.approx(0.3, rel=1e-3) and np.abs(a).max() < 0.5 + 1e-2
    np.testing.assert_allclose(q[[0, -1]], poses[[0, -1]])
