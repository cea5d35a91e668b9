"""A twin with a gravity compensator: its controller knows it, its drives are spared, none heats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import InfeasibleError
from taufit.model.torque_model import TorqueModel
from taufit.robot import Compensator, read_robot
from taufit.sim import CarriedPayload, Controller, Thermal, Twin, random_fourier
from taufit.terms import GravityCompensator
from taufit.terms.friction import Linear

SPRING = Compensator(1, "spring", base_arm=0.45, link_arm=0.16, angle=1.9)


def sprung(coulomb=4.0, viscous=3.0):
    """A KR5 with a strong spring at its second joint, as a model."""
    robot = replace(read_robot("kr5"), compensators=(SPRING,))
    model = TorqueModel(
        robot,
        Linear(),
        offset=False,
        rotor_inertia=False,
        terms=(GravityCompensator(robot.compensators),),
    )
    values = model.nominal
    for what, value in (("coulomb", coulomb), ("viscous", viscous)):
        values[[model.layout.index(f"joint_{k + 1}.{what}") for k in range(6)]] = value
    for what, value in (("rate", 9000.0), ("force", 1500.0)):
        values[model.layout.index(f"joint_2.balance_{what}")] = value
    return model.with_values(values)


def spring_torque(model, angle):
    position = np.zeros((len(angle), 6))
    position[:, 1] = angle
    return model.conservative_torque(position)[:, 1]


@pytest.fixture(scope="module")
def model():
    return sprung()


def test_the_feed_forward_holds_the_spring(model):
    """Without friction the command alone moves the arm: the servo has next to nothing to add."""
    free = sprung(coulomb=0.0, viscous=0.0)
    motion = random_fourier(free.robot, seed=3)
    run = Twin.from_model(free, controller=Controller(delay=0.0)).run(motion)
    torque, target = run.trace.motor_torque[:, 1], run.recording.target_torque[:, 1]
    strength = np.abs(spring_torque(free, run.recording.commanded_position[:, 1])).max()
    assert strength > 300.0
    assert np.abs(torque - target).max() < 0.01 * strength


def test_an_arm_with_a_known_spring_follows_as_one_without(model):
    motion = random_fourier(model.robot, seed=3)

    def error(controller):
        run = Twin.from_model(model, controller=controller).run(motion)
        recording = run.recording
        return np.abs(run.trace.position - recording.commanded_position)[:, 1].max()

    known = error(Controller(delay=0.0))
    # The controller's own description lacks it: the servo has to find out.
    unknown = error(Controller(delay=0.0, model=replace(model.robot, compensators=())))
    assert unknown > 5.0 * known


def test_stepping_commands_the_same_torque_as_a_run(model):
    twin = Twin.from_model(model)
    home = np.array([0.3, -1.2, 1.0, 0.4, 0.5, 0.1])
    stepped = twin.start(home)
    still = np.zeros((stepped.ticks, 6))
    sample = stepped.step(still + home, still, still)
    weight = (
        Twin(replace(model.robot, compensators=())).start(home).step(still + home, still, still)
    )
    difference = sample.target_torque - weight.target_torque
    np.testing.assert_allclose(difference[1], spring_torque(model, home[1:2])[0], rtol=1e-9)
    np.testing.assert_allclose(np.delete(difference, 1), 0.0, atol=1e-9)


def test_what_a_drive_can_hold_counts_the_spring(model):
    """Limits between the torque with the spring and that without refuse the heavier of the two."""
    motion = random_fourier(model.robot, seed=3, reach=0.2)
    payload = CarriedPayload.lump(5.0, (0.0, 0.0, 0.1))
    twins = [Twin.from_model(model), Twin(replace(model.robot, compensators=()))]
    needed = [np.abs(t.run(motion, payload=payload).trace.motor_torque[:, 1]).max() for t in twins]
    assert max(needed) > 1.3 * min(needed)
    torque = np.full(6, 1e4)
    torque[1] = np.mean(needed)
    limits = replace(model.robot.limits, torque=torque)
    limited = [replace(twin, robot=replace(twin.robot, limits=limits)) for twin in twins]
    limited[int(np.argmin(needed))].run(motion, payload=payload)
    with pytest.raises(InfeasibleError, match="to hold"):
        limited[int(np.argmax(needed))].run(motion, payload=payload)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.unchecked
def test_a_spring_gives_back_what_it_takes_and_heats_nothing(model, compiled):
    """Heat is friction's: the same with and without a strong spring."""
    thermal = Thermal(copper=0.0, speed_up=100.0, coulomb_slope=0.0, viscous_slope=0.0)
    motion = random_fourier(model.robot, seed=3, frequency_hz=0.5)
    warmed = []
    for one in (model, without_spring(model)):
        twin = Twin.from_model(one)
        twin = replace(twin, effects=replace(twin.effects, thermal=thermal))
        warmed.append(twin.run(motion, compiled=compiled).trace.temperature[-1, 1])
    assert warmed[1] > thermal.ambient + 0.2
    assert abs(warmed[0] - warmed[1]) < 0.05 * (warmed[1] - thermal.ambient)


def without_spring(model):
    values = model.values.copy()
    for what in ("rate", "force"):
        values[model.layout.index(f"joint_2.balance_{what}")] = 0.0
    return model.structure.with_values(values)


def test_compiled_and_plain_loops_agree(model):
    motion = random_fourier(model.robot, seed=3, frequency_hz=1.0)
    twin = Twin.from_model(model)
    one, other = (twin.run(motion, compiled=how).trace for how in (True, False))
    np.testing.assert_allclose(one.motor_torque, other.motor_torque, atol=1e-3)
