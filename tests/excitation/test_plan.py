"""One call plans every kind of motion, within limits and clear of everything."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taufit.cli.app import main
from taufit.core.errors import InfeasibleError
from taufit.excitation import (
    KINDS,
    InertiaGoal,
    SearchEffort,
    default_limits,
    mounting_plane as surface,
    plan,
    scene_for,
)
from taufit.excitation.scene import Clearances
from taufit.excitation.strokes import plan_speeds
from taufit.robot import read_robot


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_limits_and_clearances(kind):
    robot = read_robot("ur5")
    found = plan(kind, robot, effort=SearchEffort(iterations=60, seed=5), minutes=0.5)
    limits = default_limits(robot)
    q, v, a = found.motion.at(np.linspace(0.0, found.motion.duration, 20001))
    assert np.all(q >= limits.lower - 1e-9) and np.all(q <= limits.upper + 1e-9)
    assert np.all(np.abs(v) <= limits.velocity + 1e-9)
    assert np.all(np.abs(a) <= limits.acceleration + 1e-9)
    scene = scene_for(robot, planes=(surface(robot),), clearance=0.02)
    # Between the moments of the certificate and these a link moves less than a millimetre.
    assert Clearances(robot, scene).values(q).min() > -1e-3
    if found.design is not None:
        assert found.design.condition_number_scaled < 30.0 and found.design.shrunk_to >= 0.9


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(InfeasibleError, match="friction-test"):
        plan("dance", read_robot("ur5"))


def test_faster_joints_show_more_terms_of_their_friction():
    slow, fast = plan_speeds(1, 0.3), plan_speeds(1, 3.0)
    assert "viscous3" in slow.missing
    assert fast.deviation["viscous"] < 0.2 < slow.deviation["viscous3"]
    assert fast.deviation["viscous3"] < slow.deviation["viscous3"]
    for one in (slow, fast):
        assert all(one.deviation[name] < 0.2 for name in one.deviation if name not in one.missing)
        assert np.all(np.diff(one.speeds) > 0)


def test_strokes_are_made_twice_where_torque_is_measured_behind_the_gear():
    for arm, times in (("panda", 2.0), ("ur5", 1.0)):
        robot = read_robot(arm)
        usual = plan("friction-test", robot, joints=(2,)).motion.duration
        once = plan("friction-test", robot, joints=(2,), passes=1).motion.duration
        assert usual == pytest.approx(times * once, rel=0.1)


def test_a_friction_test_no_command_would_read_is_refused():
    with pytest.raises(InfeasibleError, match="--joint, repeatable"):
        plan("friction-test", read_robot("ur5"), passes=20)


def test_a_friction_test_passes_every_speed_both_ways():
    found = plan("friction-test", read_robot("ur5"), joints=(2, 6))
    assert found.friction_test is not None
    time = np.arange(0.0, found.motion.duration, 0.01)
    _, v, _ = found.motion.at(time)
    for one in found.friction_test.plans:
        others = np.delete(v, one.joint - 1, axis=1)
        for speed in one.speeds:
            for direction in (1.0, -1.0):
                steady = np.abs(v[:, one.joint - 1] - direction * speed) < 0.03 * speed
                steady &= np.abs(others).max(axis=1) < 0.02 * speed
                assert steady.sum() * 0.01 > 0.2


def test_smaller_parts_take_longer():
    robot = read_robot("ur5")
    effort = SearchEffort(iterations=300)
    large = plan("payload-inertia", robot, effort=effort, inertia=InertiaGoal(3.0, 0.2, 0.05))
    small = plan("payload-inertia", robot, effort=effort, inertia=InertiaGoal(1.0, 0.15, 0.05))
    assert large.inertia is not None and small.inertia is not None
    assert large.inertia.is_reached and small.inertia.seconds > large.inertia.seconds
    assert large.motion.duration == pytest.approx(large.inertia.seconds)


def test_the_same_seed_writes_the_same_file(tmp_path, capsys):
    texts = []
    for name in ("one.json", "two.json"):
        words = ["design", "ur3", "--iterations", "40", "--seed", "4"]
        with pytest.raises(SystemExit) as ended:
            main([*words, "-o", str(tmp_path / name), "--json"])
        assert ended.value.code == 0
        data = json.loads(capsys.readouterr().out)
        assert data["shrunk_to"] >= 0.9 and data["iterations"] >= 40
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
