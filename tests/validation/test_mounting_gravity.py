"""Gravity comes from where the torques say; a model moves, and says what it does not know."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import simulated_arm

from taufit.calibration import estimate_gravity, mounting_findings, move_model
from taufit.calibration.mounting import mounting_name
from taufit.core.errors import RecordingError, TaufitError
from taufit.dynamics import inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.robot.mounting import gravity_in_base, parse_mounting
from taufit.signals import condition
from taufit.workflow import identify


@pytest.fixture(scope="module")
def bolted(arm):
    """Recordings of one arm, bolted in four ways."""

    def made(mounting: str, seed: int = 0):
        truth = simulated_arm.true_model(arm.with_mounting(mounting))
        return simulated_arm.recording(truth, 15.0, seed, name=f"{mounting}.csv")

    return {m: made(m) for m in ("ground", "ceiling", "wall", "10,0,0", "-6,8,0")}


@pytest.mark.parametrize("true", ["ground", "ceiling", "wall", "10,0,0", "-6,8,0"])
def test_direction_is_found_and_only_wrong_declarations_are_told(arm, bolted, true):
    samples = condition([bolted[true]], cutoff_hz=8.0)
    direction = gravity_in_base(parse_mounting(true)) / 9.81
    for said in ("ground", "ceiling", "wall", "10,0,0"):
        declared = arm.with_mounting(said)
        found = estimate_gravity(declared, samples)
        # The nominal links are 15 % off; the direction is not.
        off = np.degrees(np.arccos(np.clip(found.direction @ direction, -1, 1)))
        assert off < 2.0
        away = np.degrees(np.arccos(np.clip(direction @ declared.gravity / 9.81, -1, 1)))
        assert found.contradicts_declared == (away > 9.0)
        told = mounting_findings(declared, samples)
        assert bool(told) == found.contradicts_declared
        json.dumps(found.to_dict(), allow_nan=False)


def test_a_fit_names_the_mounting_that_fits(arm, bolted):
    with pytest.raises(RecordingError, match="gravity fits ceiling, you said ground"):
        identify(arm, [bolted["ceiling"]], cutoff_hz=8.0)
    with pytest.raises(RecordingError, match="gravity fits ground, you said wall"):
        identify(arm.with_mounting("wall"), [bolted["ground"]], cutoff_hz=8.0)


def test_arms_without_masses_say_nothing(arm, bolted):
    bare = arm.with_parameters(np.zeros(60))
    assert estimate_gravity(bare, condition([bolted["ceiling"]], cutoff_hz=8.0)) is None


def test_torque_without_signs_says_nothing(arm, bolted):
    samples = condition([bolted["ground"]], cutoff_hz=8.0)
    assert estimate_gravity(arm, replace(samples, signed=np.zeros(6, bool))) is None


@pytest.mark.parametrize(
    ("mounting", "name"),
    [
        ("ground", "ground"),
        ("ceiling", "ceiling"),
        ("wall", "wall"),
        ("3,2,0", "ground"),
        ("0,90,0", r"a wall (180,90,0)"),
        ("10,0,0", "a tilt (10,0,0)"),
        ("-20,30,0", "a tilt (-20,30,0)"),
    ],
)
def test_mountings_have_names(mounting, name):
    found = mounting_name(gravity_in_base(parse_mounting(mounting)))
    if "90" in mounting:
        # Pitched by 90 degrees, roll has no effect.
        assert found.startswith("a wall (") and ",90,0)" in found
    else:
        assert found == name


@pytest.mark.parametrize("robot", ["ur3", "ur5", "panda"])
def test_two_parameters_are_unknown_where_axis_1_was_vertical(robot):
    arm = read_robot(robot)
    model = TorqueModel(arm)
    model = model.with_values(model.nominal)
    assert move_model(model, "ceiling").unknown == ()
    for mounting in ("wall", "0,10,0"):
        moved = move_model(model, mounting)
        assert len(moved.unknown) == len(moved.values) == 2
        assert "2 base parameters" in moved.statement and moved.names[0] in moved.statement
        # They act on the first joint by gravity alone.
        assert np.all(np.argmax(moved.torque_per_unit, axis=1) == 0)
    there = move_model(model, "wall").model
    assert move_model(there, "ground").unknown == ()


def test_unknown_parameters_move_no_torque_on_the_ground_and_all_of_it_on_the_wall():
    arm = read_robot("ur5")
    model = TorqueModel(arm, None, offset=False)
    model = model.with_values(model.nominal)
    moved = move_model(model, "wall")
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-2, 2, (50, 6)) for _ in range(3))
    other = arm.parameters.copy()
    other[arm.parameter_names.index("link_1.hx")] += 0.1
    changed = arm.with_parameters(other)
    same = inverse_dynamics(changed, q, v, a) - inverse_dynamics(arm, q, v, a)
    np.testing.assert_allclose(same, 0.0, atol=1e-9)
    on_wall = [r.with_mounting("wall") for r in (changed, arm)]
    apart = inverse_dynamics(on_wall[0], q, v, a) - inverse_dynamics(on_wall[1], q, v, a)
    row = moved.names.index("link_1.hx")
    assert np.abs(apart).max() <= 0.1 * moved.torque_per_unit[row].max() * (1 + 1e-9)
    assert np.abs(apart).max() > 0.09 * moved.torque_per_unit[row].max()


def test_moved_models_predict_the_new_torque(arm):
    truth = simulated_arm.true_model(arm)
    there = simulated_arm.true_model(arm.with_mounting("ceiling"))
    rng = np.random.default_rng(1)
    q, v, a = (rng.uniform(-2, 2, (50, 6)) for _ in range(3))
    moved = move_model(truth, "ceiling").model
    np.testing.assert_allclose(moved.torque(q, v, a), there.torque(q, v, a), atol=1e-9)
    assert any("from ground to ceiling" in text for text in moved.training.warnings)


@pytest.mark.unchecked
def test_only_fitted_models_move(arm):
    with pytest.raises(TaufitError, match="no parameters yet"):
        move_model(TorqueModel(arm), "wall")
