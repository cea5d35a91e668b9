"""`taufit weigh` on virtual controllers: it stops by itself, sets the payload and reads it back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.output_json import parse_output

import taufit
from taufit.cli import main
from taufit.core.errors import WireError
from taufit.excitation import plan
from taufit.live.weighing import PayloadWatch, controller_payload, set_controller_payload
from taufit.payload import PayloadSettings
from taufit.payload.controller_commands import FlangePayload
from taufit.robot import read_robot
from taufit.sim import CarriedPayload, Twin, random_fourier, read_preset, typical_rotor
from taufit.virtual.controllers import RepeatingRobot, UrController, VirtualFranka, VirtualUr
from taufit.virtual.controllers.franka import motor_minus_link
from taufit.wire.franka import FrankaState, load_request, read_load_request
from taufit.wire.source import SampleBlock, SourceDescription, newest_block
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


def test_a_franka_robot_reports_links_and_motors_apart():
    twin = read_preset("franka").twin
    motion = random_fourier(twin.robot, seed=1, speed=0.3, reach=0.3)
    sample, _ = RepeatingRobot(twin, motion, 1000.0).step()
    stiffness = twin.effects.elasticity.stiffness
    np.testing.assert_allclose(motor_minus_link(twin, sample) * stiffness, sample.signal)
    rigid = replace(twin, effects=replace(twin.effects, elasticity=None))
    assert not motor_minus_link(rigid, sample).any()


def test_a_motion_is_not_ended_before_the_gains_are_apart_from_the_mass():
    twin = Twin(typical_rotor(read_robot("ur10e")))
    model = taufit.identify(
        twin.robot, twin.run(random_fourier(twin.robot, seed=1)).recording
    ).model
    description = SourceDescription(6, ("signal",), "torque", "", 500.0)
    watch = PayloadWatch(model, description, PayloadSettings(mass_accuracy=0.005))
    watch.reader.stopped_at, watch.first_time = 3.0, 0.0
    for second, is_accurate in ((0.0, False), (14.0, False), (15.1, True)):
        watch.last_time = second
        assert watch.is_accurate is is_accurate


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


def test_the_command_weighs_sets_the_load_and_prints_json_of_the_schema(tmp_path, capsys):
    twin = read_preset("franka").twin
    runs = [
        twin.run(read_preset("franka").motion(seed, periods=1), seed=5, rate_hz=200.0).recording
        for seed in (5, 6)
    ]
    model = tmp_path / "panda.json"
    taufit.write_model(taufit.identify(twin.robot, runs).model, model)
    part = CarriedPayload.lump(6.0, (0.0, 0.0, 0.15))
    moving = RepeatingRobot(twin, plan("payload", twin.robot).motion, 1000.0, payload=(part,))
    with VirtualFranka(moving, port=0, pace=3.0) as robot:
        words = ["--yes", "--json", "--accuracy", "0.2", "-o", str(tmp_path / "run.parquet")]
        with pytest.raises(SystemExit) as stop:
            main(["weigh", f"franka:127.0.0.1:{robot.port}", str(model), *words])
        assert not stop.value.code
        held = robot.load["m_load"][0]
    result = parse_output("weigh", capsys.readouterr().out)
    assert result["accurate"] and result["set"]
    assert result["mass"]["low"] < 6.0 < result["mass"]["high"]
    assert result["read_back"]["mass"] == pytest.approx(held, abs=1e-3)
    assert len(taufit.read_recording(tmp_path / "run.parquet")) > 1000
