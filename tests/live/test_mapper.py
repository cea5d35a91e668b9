"""What the mapper makes of a file: roles and maps, the gravity check, orders that are refused."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_server import ask

from taufit.core.errors import RecordingError
from taufit.live.mapper.app import LIMITS, mapper
from taufit.live.mapper.column_roles import map_from_roles, roles_from_map, units_from_map
from taufit.live.mapper.gravity_check import gravity_check
from taufit.live.mapper.mapping_session import MappingSession
from taufit.live.server import open_server_socket, run_server
from taufit.recording import read_map, read_recording
from taufit.robot import bundled_robots, read_robot


def write_log(recording, path, header=True, degrees=False):
    """A foreign log: time, positions, velocities, torques in columns."""
    scale = 180.0 / np.pi if degrees else 1.0
    parts = [recording.time[:, None], scale * recording.position, scale * recording.velocity]
    values = np.hstack([*parts, recording.signal])[::4]
    names = ["t", *(f"{n}{j}" for n in ("q", "dq", "tau") for j in range(1, recording.joints + 1))]
    np.savetxt(path, values, delimiter=",", header=",".join(names) if header else "", comments="")
    return path


@pytest.fixture
def torques(empty):
    """The run in newton metres."""
    return in_newton_metres(empty)


def in_newton_metres(recording):
    signal = recording.signal * recording.gain
    return replace(recording, signal=signal, signal_unit="N m", gain=np.ones(recording.joints))


@pytest.fixture
def log(tmp_path, torques):
    return write_log(torques, tmp_path / "log.csv")


@pytest.fixture
def desk(tmp_path, log):
    return MappingSession(log, tmp_path / "map.yaml", tmp_path / "model.json")


@contextmanager
def opened_desk(desk):
    line, place = open_server_socket()
    with run_server(mapper(desk, place), line, place, LIMITS):
        yield SimpleNamespace(place=place, desk=desk)


def test_roles_say_what_the_map_says(desk):
    roles = roles_from_map(desk.page, desk.table)
    assert roles[0] == ("time", 0) and roles[1] == ("position", 1) and roles[18] == ("torque", 6)
    again = map_from_roles(roles, units_from_map(desk.page), desk.table, desk.page)
    assert roles_from_map(again, desk.table) == roles
    one, other = (
        read_recording(desk.path, column_map=read_map(page)) for page in (desk.page, again)
    )
    np.testing.assert_array_equal(one.position, other.position)
    np.testing.assert_array_equal(one.signal, other.signal)


def test_a_joint_said_twice_or_left_out_is_refused(desk):
    roles = roles_from_map(desk.page, desk.table)
    with pytest.raises(RecordingError, match="two columns"):
        map_from_roles({**roles, 2: ("position", 1)}, {}, desk.table, desk.page)
    with pytest.raises(RecordingError, match="number them from 1"):
        map_from_roles({**roles, 2: ("position", 9)}, {}, desk.table, desk.page)
    with pytest.raises(RecordingError, match="keep one"):
        map_from_roles({**roles, 18: ("current", 1)}, {}, desk.table, desk.page)


def test_what_the_owner_says_is_read(desk):
    roles = roles_from_map(desk.page, desk.table)
    swapped = {**roles, 1: roles[2], 2: roles[1]}
    before = desk.recordings[0].position
    desk.set_columns(swapped, {"torque": "mN m"})
    after = desk.recordings[0]
    np.testing.assert_array_equal(after.position[:, :2], before[:, 1::-1])
    assert np.abs(after.signal).max() < 1.0


def test_the_map_that_is_written_reads_the_file(desk):
    path = desk.save()
    recording = read_recording(desk.path, column_map=path)
    np.testing.assert_array_equal(recording.signal, desk.recordings[0].signal)


def test_nothing_is_written_over(desk):
    first, second = desk.save(), desk.save()
    assert first != second and first.read_text() == second.read_text()


def test_gravity_explains_the_robot_that_was_recorded(arm, torques, empty):
    for recording in (torques, empty, replace(empty, gain=None)):
        assert gravity_check(arm[1].robot, recording).verdict == "yes"


def test_gravity_does_not_explain_turned_swapped_or_scaled_torque(arm, torques):
    robot, sign = arm[1].robot, np.array([1, -1, 1, 1, 1, 1.0])
    turned = gravity_check(robot, replace(torques, signal=torques.signal * sign))
    assert turned.verdict == "no" and "sign" in turned.text and "joint 2" in turned.text
    swapped = gravity_check(robot, replace(torques, signal=torques.signal[:, [1, 0, 3, 2, 4, 5]]))
    assert swapped.verdict == "no"
    scaled = gravity_check(robot, replace(torques, signal=0.08 * torques.signal))
    assert scaled.verdict == "no" and "current" in scaled.text


def test_gravity_does_not_explain_another_arm(torques):
    assert gravity_check(read_robot("ur3"), torques).verdict == "no"
    assert gravity_check(read_robot("panda"), torques).verdict == "no"


def test_gravity_of_an_arm_that_stands_still_is_compared_in_proportion(arm, torques):
    robot = arm[1].robot
    from taufit.dynamics import gravity_torque

    q = np.tile([0.1, -1.2, 1.1, -0.4, 0.3, 0.0], (200, 1))
    torque = gravity_torque(robot, q)
    rest = {"velocity": 0 * q, "commanded_velocity": None, "commanded_position": None}
    rest = {k: v for k, v in rest.items() if getattr(torques, k) is not None}
    still = replace(torques, time=np.arange(200) / 100, position=q, signal=torque, **rest)
    assert gravity_check(robot, still).verdict == "yes"
    assert gravity_check(robot, replace(still, signal=torque[:, ::-1])).verdict == "no"


def test_magnitudes_are_not_compared_by_sign(arm, torques):
    for spoilt in (
        replace(torques, signal=np.abs(torques.signal)),
        replace(torques, signed=np.zeros(torques.joints, bool)),
    ):
        assert gravity_check(arm[1].robot, spoilt).verdict == "open"


def test_robots_that_explain_a_file_are_offered_first(desk):
    offered = desk.likely_robots()
    assert sorted(offered) == sorted(bundled_robots())
    assert offered.index("ur10") < offered.index("ur3") and offered[0].startswith("ur")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/robot", b"", 400),
        ("/robot", b"[]", 400),
        ("/robot", b'{"name": 3}', 400),
        ("/robot", b'{"name": "../../etc/passwd"}', 409),
        ("/robot", b'{"name": "/etc/passwd"}', 409),
        ("/robot", b'{"name": "x.xacro", "text": "<robot/>"}', 409),
        ("/robot", b'{"name": "x.urdf", "text": "<robot"}', 409),
        ("/robot", b'{"name": "x.urdf", "text": "<!DOCTYPE a [<!ENTITY b SYSTEM \'/x\'>]>"}', 409),
        ("/robot", b'{"name": "x.yaml", "text": "a: &a [*a]"}', 409),
        ("/map", b"{}", 400),
        ("/map", b'{"roles": {"x": ["time", 0]}, "units": {}}', 400),
        ("/map", b'{"roles": {"999": ["time", 0]}, "units": {}}', 400),
        ("/map", b'{"roles": {"0": ["nothing", 0]}, "units": {}}', 400),
        ("/map", b'{"roles": {"0": ["position", -1]}, "units": {}}', 400),
        ("/map", b'{"roles": {"0": ["position", true]}, "units": {}}', 400),
        ("/map", b'{"roles": {}, "units": {"position": "furlong"}}', 400),
        ("/rate", b'{"rate_hz": "100"}', 400),
        ("/rate", b'{"rate_hz": 0}', 400),
        ("/rate", b'{"rate_hz": true}', 400),
        ("/rate", b'{"rate_hz": 100}', 409),
        ("/fit", b"{}", 409),
        ("/save", b"[" * 5000, 400),
    ],
)
def test_orders_that_make_no_sense_are_refused(desk, path, body, status):
    with opened_desk(desk) as served:
        before = desk.page
        got, _, text = ask(served.place, path, "POST", body)
        assert got == status and b"Traceback" not in text
        assert desk.page == before and not list(desk.path.parent.glob("*.yaml"))


def test_a_map_that_cannot_be_read_with_is_told_and_not_written(desk):
    with opened_desk(desk) as served:
        body = json.dumps({"roles": {"0": ["time", 0]}, "units": {}}).encode()
        _, _, text = ask(served.place, "/map", "POST", body)
        assert json.loads(text)["problem"]
        assert ask(served.place, "/save", "POST", b"{}")[0] == 409


def test_the_rate_of_a_file_without_time_is_asked_and_written(tmp_path, torques):
    names = [f"{stem}{j}" for stem in ("q", "tau") for j in range(1, torques.joints + 1)]
    values = np.hstack([torques.position, torques.signal])[::4]
    path = tmp_path / "log.csv"
    np.savetxt(path, values, delimiter=",", header=",".join(names), comments="")
    desk = MappingSession(path, tmp_path / "map.yaml", tmp_path / "model.json")
    assert "enter its rate" in desk.problem and desk.state()["needs_rate"]
    with opened_desk(desk) as served:
        assert ask(served.place, "/save", "POST", b"{}")[0] == 409
        assert ask(served.place, "/rate", "POST", b'{"rate_hz": 125}')[0] == 200
    assert not desk.problem
    # Another robot drafts the map again; the rate stays.
    desk.set_robot(read_robot("ur10"))
    recording = read_recording(path, column_map=desk.save())
    np.testing.assert_allclose(np.diff(recording.time), 1 / 125)


def test_the_report_comes_after_the_fit_and_is_shut_in(desk):
    with opened_desk(desk) as served:
        assert ask(served.place, "/report")[0] == 404
        desk.fit.report = "<p>report</p>"
        status, heads, _ = ask(served.place, "/report")
    assert status == 200 and heads["Content-Security-Policy"].startswith("sandbox allow-scripts;")


def test_a_fit_that_fails_says_why(desk):
    desk.select_bundled_robot("ur3")
    desk.start_fit()
    while desk.fit.state == "running":
        time.sleep(0.05)
    assert desk.fit.state == "failed" and desk.fit.text and not desk.fit.report
