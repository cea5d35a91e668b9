"""`taufit weigh` on virtual controllers: it stops by itself, sets the payload and reads it back."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.core.errors import WireError
from taufit.live.weighing import controller_payload, set_controller_payload
from taufit.payload.controller_commands import FlangePayload
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, read_preset, typical_rotor
from taufit.virtual.controllers import RepeatingRobot, UrController, VirtualFranka, VirtualUr
from taufit.wire.franka import FrankaState, load_request, read_load_request
from taufit.wire.source import SampleBlock, newest_block
from taufit.wire.ur import UrRtde

PART = FlangePayload(1.234, np.array([0.01, -0.02, 0.05]), np.diag([0.01, 0.02, 0.03]))


def test_a_load_request_is_read_as_it_was_written():
    fields = read_load_request(load_request(1, PART.mass, PART.centre, PART.inertia)[12:])
    assert fields["m_load"] == [PART.mass]
    np.testing.assert_allclose(fields["F_x_Cload"], PART.centre)
    np.testing.assert_allclose(np.reshape(fields["I_load"], (3, 3)).T, PART.inertia)


def test_a_ur_controller_holds_the_payload_that_was_set():
    twin = Twin(typical_rotor(read_robot("ur10e")))
    with VirtualUr(UrController(twin)) as robot:
        source = UrRtde(robot.host, ports=robot.ports)
        source.connect()
        held = set_controller_payload(source, PART, robot.ports)
        source.close()
        assert robot.controller.mass == pytest.approx(PART.mass, abs=1e-4)
    assert held.equals(PART)


def test_a_franka_robot_holds_the_load_that_was_set():
    preset = read_preset("franka")
    motion = random_fourier(preset.twin.robot, seed=1, speed=0.3, reach=0.3)
    with VirtualFranka(RepeatingRobot(preset.twin, motion, 1000.0), port=0) as robot:
        source = FrankaState(robot.host, port=robot.port)
        source.connect()
        assert controller_payload(newest_block(source)).mass == 0.0
        held = set_controller_payload(source, PART)
        source.close()
        assert robot.load["m_load"] == [PART.mass]
    assert held.equals(PART)


def test_a_controller_that_keeps_another_payload_is_an_error(monkeypatch):
    class Deaf(FrankaState):
        def set_load(self, *values):
            """Accept without effect."""

        def read(self, seconds):
            status = {"m_load": np.zeros(1), "F_x_Cload": np.zeros((1, 3))}
            return SampleBlock(np.zeros(1), {}, status)

    monkeypatch.setattr("taufit.live.weighing._READ_BACK_S", 0.05)
    with pytest.raises(WireError, match=r"holds 0\.000 kg"):
        set_controller_payload(Deaf("nowhere"), PART)
