"""The virtual controller's sockets: what each port says, and what it does to bad clients."""

from __future__ import annotations

import socket
import time

import numpy as np
import pytest

from taufit.virtual.controllers import UrController, VirtualUr
from taufit.wire import UrRtde, rtde, ur_state
from taufit.wire.tcp_connection import exchange_lines
from taufit.wire.ur_player import controller_info


class Client:
    """A bare RTDE client."""

    def __init__(self, robot):
        self.socket = socket.create_connection((robot.host, robot.ports.rtde), 10)
        self.frames = rtde.FrameParser()
        self.waiting = []

    def ask(self, frame):
        self.socket.sendall(frame)
        kind = frame[2]
        while True:
            while self.waiting:
                got, body = self.waiting.pop(0)
                if got == kind:
                    return body
            data = self.socket.recv(65536)
            assert data, "the controller hung up"
            self.waiting += self.frames.feed(data)

    def close(self):
        self.socket.close()


@pytest.fixture
def client(virtual_ur):
    made = []

    def make():
        made.append(Client(virtual_ur))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_inputs_belong_to_one_client_until_it_leaves(client):
    names = ["input_double_register_3", "speed_slider_mask"]
    first, second = client(), client()
    number, types = rtde.read_types_reply(first.ask(rtde.inputs_request(names)))
    assert number == 1 and types == ["DOUBLE", "UINT32"]
    number, types = rtde.read_types_reply(second.ask(rtde.inputs_request(names)))
    assert number == 0 and types == ["IN_USE", "IN_USE"]
    first.close()
    for _ in range(100):
        number, _ = rtde.read_types_reply(second.ask(rtde.inputs_request(names)))
        if number:
            break
        time.sleep(0.05)
    assert number


@pytest.mark.parametrize(
    ("version", "unknown"),
    [
        ((3, 3, 0, 0), {"payload", "payload_inertia", "ft_raw_wrench", "control_step"}),
        ((3, 15, 0, 0), {"ft_raw_wrench", "control_step"}),
        ((5, 9, 0, 0), {"payload_inertia", "control_step"}),
        ((5, 23, 0, 0), set()),
    ],
)
def test_fields_depend_on_the_software(quiet_twin, version, unknown):
    names = ["timestamp", "payload", "payload_inertia", "ft_raw_wrench", "control_step"]
    with VirtualUr(UrController(quiet_twin, version=version)) as robot:
        client = Client(robot)
        number, types = rtde.read_types_reply(client.ask(rtde.outputs_request(125.0, names)))
        assert rtde.read_version_reply(client.ask(rtde.frame(rtde.URCONTROL))) == version
        client.close()
    assert {n for n, kind in zip(names, types, strict=True) if kind == "NOT_FOUND"} == unknown
    assert bool(number) == (not unknown)


def test_a_rate_beyond_the_controllers_is_refused_in_words(client):
    one = client()
    number, _ = rtde.read_types_reply(one.ask(rtde.outputs_request(1000.0, ["timestamp"])))
    assert number == 0


def test_protocol_one_is_not_spoken(client):
    assert client().ask(rtde.frame(rtde.PROTOCOL, b"\x00\x01")) == b"\x00"


def test_the_slider_moves_by_its_input(virtual_ur, client):
    one = client()
    names = ["speed_slider_mask", "speed_slider_fraction"]
    number, types = rtde.read_types_reply(one.ask(rtde.inputs_request(names)))
    recipe = rtde.Recipe(number, tuple(names), tuple(types))
    values = {"speed_slider_mask": 1, "speed_slider_fraction": 0.25}
    one.socket.sendall(rtde.frame(rtde.DATA, recipe.pack(values)))
    for _ in range(100):
        if virtual_ur.controller.slider == 0.25:
            break
        time.sleep(0.05)
    assert virtual_ur.controller.slider == 0.25


def test_a_client_that_sends_garbage_is_dropped_alone(virtual_ur, client):
    good, bad = client(), client()
    bad.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    bad.socket.settimeout(10)
    assert bad.socket.recv(100) == b""
    assert good.ask(rtde.frame(rtde.PROTOCOL, b"\x00\x02")) == b"\x01"


def test_two_recorders_see_the_same_samples(virtual_ur):
    sources = [UrRtde(virtual_ur.host, ports=virtual_ur.ports) for _ in range(2)]
    rows = []
    for source in sources:
        source.connect()
    for source in sources:
        found = {}
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            block = source.read(0.2)
            if block is not None:
                found.update(
                    zip(np.round(block.time * 500), block.values["position"][:, 1], strict=True)
                )
        rows.append(found)
        source.close()
    common = set(rows[0]) & set(rows[1])
    assert len(common) > 50 and all(rows[0][k] == rows[1][k] for k in common)


def test_the_dashboard_answers_line_by_line(virtual_ur):
    def ask(*lines):
        return exchange_lines(virtual_ur.host, virtual_ur.ports.dashboard, list(lines))

    assert ask("robotmode", "safetystatus", "running") == [
        "Robotmode: RUNNING",
        "Safetystatus: NORMAL",
        "Program running: false",
    ]
    assert ask("PolyscopeVersion") == ["URSoftware 5.23.0.0"]
    virtual_ur.call_between_steps(lambda c: c.protective_stop("test"))
    time.sleep(0.3)
    assert ask("safetymode", "unlock protective stop")[0] == "Safetymode: PROTECTIVE_STOP"
    time.sleep(0.3)
    assert ask("safetymode", "dance")[1] == "could not understand: 'dance'"
    assert virtual_ur.controller.safety_mode == 1
    assert ask("power off", "robotmode")[1] == "Robotmode: POWER_OFF"
    assert ask("power on", "brake release", "robotmode")[2] == "Robotmode: RUNNING"
    assert controller_info(virtual_ur.host, virtual_ur.ports)["robot_model"] == "UR10"


def test_the_state_port_tells_modes_joints_and_kinematics(virtual_ur):
    with socket.create_connection((virtual_ur.host, virtual_ur.ports.primary), 10) as line:
        packages, states, messages = ur_state.PackageParser(), [], []
        while len(states) < 3:
            for data in packages.feed(line.recv(65536)):
                kind, parts = ur_state.read_package(data)
                (states if kind == ur_state.ROBOT_STATE else messages).append(parts)
    assert messages
    table = ur_state.read_kinematics(states[-1][ur_state.KINEMATICS])
    assert np.isfinite(table.d).all() and len(states[-1][ur_state.JOINTS]) == 246


@pytest.mark.parametrize("port", ["primary", "secondary", "realtime"])
def test_programs_arrive_in_pieces_on_every_script_port(virtual_ur, port):
    text = "def f():\n  write_output_integer_register(5, 42)\n  sleep(0.2)\nend\n"
    with socket.create_connection((virtual_ur.host, getattr(virtual_ur.ports, port)), 10) as line:
        for k in range(0, len(text), 7):
            line.sendall(text[k : k + 7].encode())
            time.sleep(0.005)
        for _ in range(200):
            if virtual_ur.controller.integers[5] == 42:
                break
            time.sleep(0.02)
    assert virtual_ur.controller.integers[5] == 42


def test_a_port_in_use_is_named(quiet_twin, virtual_ur):
    from taufit.core.errors import TaufitError

    other = VirtualUr(UrController(quiet_twin), ports=virtual_ur.ports)
    with pytest.raises(TaufitError, match="cannot be opened"), other:
        pass
