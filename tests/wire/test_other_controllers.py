"""Franka, ABB and old UR controllers: our readers and the unmodified clients read the same arm."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from taufit.core.errors import WireError
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, typical_effects, typical_rotor
from taufit.virtual.controllers import (
    RepeatingRobot,
    UrController,
    VirtualEgm,
    VirtualFranka,
    VirtualUr,
)
from taufit.wire import egm, franka
from taufit.wire.recorder import record
from taufit.wire.source_address import host_and_port, open_source, parse_address
from taufit.wire.ur_realtime import UrRealtime

PANDA = typical_rotor(read_robot("panda"))


def arm(robot, rate_hz, effects=None):
    twin = Twin(robot, effects) if effects is not None else Twin(robot)
    return RepeatingRobot(twin, random_fourier(robot, seed=1, frequency_hz=0.25), rate_hz)


def own_address():
    """A loopback address for this process: some clients know fixed ports only."""
    pid = os.getpid()
    return f"127.{1 + pid // 62500 % 250}.{pid // 250 % 250}.{1 + pid % 250}"


# Franka


def test_our_reader_records_every_state(tmp_path):
    with VirtualFranka(arm(PANDA, 1000.0), port=0, pace=0.5) as robot:
        source = franka.FrankaState(robot.host, port=robot.port)
        done = record(source, tmp_path / "r.parquet", seconds=2.0)
    assert (done.lost, done.duplicated, done.ended) == (0, 0, "")
    recording = done.recording
    np.testing.assert_allclose(np.diff(recording.time), 1e-3, atol=1e-9)
    assert recording.joints == 7 and recording.torque_source == "joint_torque_sensor"
    assert recording.signal_unit == "N m" and np.ptp(recording.signal, axis=0).min() > 0.01


def test_the_official_client_reads_the_virtual_robot():
    pytest.importorskip("pylibfranka", reason="pylibfranka is not installed")
    client = """
import json, sys, time
import pylibfranka
robot = pylibfranka.Robot(sys.argv[1], pylibfranka.RealtimeConfig.kIgnore)
rows = []
end = time.time() + 3.0
while time.time() < end:
    state = robot.read_once()
    rows.append([state.time.to_sec(), *state.q, *state.tau_J])
print(json.dumps(rows))
"""
    played = arm(PANDA, 1000.0)
    truth = {}
    step = played.step

    def noted():
        sample, command = step()
        truth[played.steps] = (sample.position.copy(), sample.signal.copy())
        return sample, command

    played.step = noted
    with VirtualFranka(played, host=own_address(), pace=0.5) as robot:
        ran = subprocess.run(
            [sys.executable, "-c", client, robot.host], capture_output=True, text=True, timeout=60
        )
    assert ran.returncode == 0, ran.stderr[-2000:]
    rows = np.array(json.loads(ran.stdout))
    assert len(rows) > 300
    for row in rows[:: max(1, len(rows) // 50)]:
        position, torque = truth[round(row[0] * 1000)]
        # Single precision on the wire.
        np.testing.assert_allclose(row[1:8], position, atol=1e-6)
        np.testing.assert_allclose(row[8:], torque, atol=1e-4)


def test_another_version_is_refused_in_words():
    with (
        VirtualFranka(arm(PANDA, 1000.0), port=0, pace=0.1) as robot,
        socket.create_connection((robot.host, robot.port)) as client,
    ):
        client.sendall(franka.connect_request(1, version=9))
        answer = client.recv(64)
    status, version = franka._ANSWER.unpack_from(answer, franka.HEADER.size)
    assert (status, version) == (1, franka.VERSION)


def test_a_state_comes_back_from_its_bytes():
    data = franka.pack_state(7, {"q": [0.1 * i for i in range(7)], "tau_J": [1.0] * 7})
    assert len(data) == franka.STATE_BYTES
    (row,) = franka.read_states([data])
    assert row["number"] == 7
    np.testing.assert_allclose(row["q"], 0.1 * np.arange(7), atol=1e-7)
    with pytest.raises(WireError, match="bytes"):
        franka.read_states([data[:-1]])


# ABB

ANGLES = st.lists(st.floats(-10, 10), min_size=1, max_size=7).map(tuple)


@given(st.integers(0, 2**32 - 1), st.floats(0, 4e6), ANGLES, st.booleans())
def test_an_egm_message_comes_back_from_its_bytes(number, stamp, values, on):
    state = egm.EgmState(number, stamp, values, values, values, on, not on)
    back = egm.decode_state(egm.encode_state(state))
    assert (back.number, back.motors_on, back.running) == (number, on, not on)
    assert back.time == pytest.approx(stamp, abs=1e-6)
    np.testing.assert_allclose(back.position, values, atol=1e-12)
    np.testing.assert_array_equal(back.torque, values)


def test_our_reader_records_every_datagram(tmp_path):
    robot = typical_rotor(read_robot("kr5"))
    source = egm.AbbEgm(port=0)
    # The robot is told where to send once the port is known.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        source.port = free.getsockname()[1]
    played = arm(robot, 250.0, typical_effects(robot))
    with VirtualEgm(played, "127.0.0.1", source.port):
        done = record(source, tmp_path / "r.parquet", seconds=2.0)
    assert (done.lost, done.duplicated, done.ended) == (0, 0, "")
    assert done.samples >= 500 and done.recording.joints == 6
    assert "not a measurement" in done.recording.meta["torque"]


def test_the_abb_client_decodes_the_virtual_robot():
    pytest.importorskip("ABBRobotEGM", reason="ABBRobotEGM is not installed")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"]).returncode:
        pytest.skip("this client listens on all interfaces; no network namespace can be made here")
    both = """
import json
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, typical_rotor
from taufit.virtual.controllers import RepeatingRobot, VirtualEgm
from ABBRobotEGM import EGM
robot = typical_rotor(read_robot("kr5"))
arm = RepeatingRobot(Twin(robot), random_fourier(robot, seed=1, frequency_hz=0.25), 250.0)
sent, step = {}, arm.step
def noted():
    sample, command = step()
    gain = robot.drives.gain
    sent[arm.steps] = [list(sample.position), list(command[0]), list(sample.signal * gain)]
    return sample, command
arm.step = noted
rows = []
with EGM() as client, VirtualEgm(arm, "127.0.0.1", 6510):
    while len(rows) < 300:
        ok, state = client.receive_from_robot(timeout=5.0)
        assert ok
        message = state.robot_message
        rows.append([message.header.seqno, list(state.joint_angles),
                     list(state.joint_angles_planned), list(message.torqueRef.joints),
                     bool(state.motors_on), bool(state.rapid_running)])
print(json.dumps([rows, sent], default=float))
"""
    script = f"ip link set lo up && exec {sys.executable} -c '{both}'"
    ran = subprocess.run(
        ["unshare", "-n", "sh", "-c", script], capture_output=True, text=True, timeout=90
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    rows, sent = json.loads(ran.stdout)
    numbers = [row[0] for row in rows]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    for number, joints, planned, torque, motors, rapid in rows:
        position, command, force = sent[str(number)]
        np.testing.assert_allclose(np.radians(joints), position, atol=1e-9)
        np.testing.assert_allclose(np.radians(planned), command, atol=1e-9)
        np.testing.assert_allclose(torque, force, atol=1e-9)
        assert motors and rapid


# Port 30003


@pytest.mark.parametrize("version", [(3, 2, 0, 0), (5, 11, 0, 0)])
def test_the_real_time_port_is_read_without_loss(quiet_twin, tmp_path, version):
    with VirtualUr(UrController(quiet_twin, version=version)) as robot:
        source = UrRealtime(robot.host, ports=robot.ports)
        done = record(source, tmp_path / "r.parquet", seconds=1.0)
    assert (done.lost, done.duplicated, done.ended) == (0, 0, "")
    assert done.recording.temperature is not None and done.recording.signal_unit == "A"


# Addresses


def test_sources_are_found_by_their_text():
    assert parse_address("192.168.0.5").kind == "ur"
    assert (parse_address("ros2:/js").kind, parse_address("ros2:/js").location) == ("ros2", "/js")
    assert host_and_port("6510", 1) == ("127.0.0.1", 6510)
    assert host_and_port("10.0.0.2:7000", 1) == ("10.0.0.2", 7000)
    assert host_and_port("robot", 1337) == ("robot", 1337)
    assert isinstance(open_source(parse_address("franka:10.0.0.9")), franka.FrankaState)
    assert isinstance(open_source(parse_address("egm:6510")), egm.AbbEgm)
    assert isinstance(open_source(parse_address("realtime:10.0.0.9")), UrRealtime)
    for text in ("", "a b", "ros2:", "/dev/null", "-x"):
        with pytest.raises(WireError):
            parse_address(text)
    with pytest.raises(WireError, match="effort"):
        open_source(parse_address("ros2:/joint_states"))
