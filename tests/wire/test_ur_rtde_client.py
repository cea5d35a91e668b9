"""The unmodified ur-rtde client against the virtual controller: where the arm went."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from taufit.dynamics import forward_kinematics
from taufit.robot import read_robot

pytest.importorskip("rtde_control", reason="ur-rtde is not installed")

START = [0.1, -1.4, 1.4, -1.5, -1.5, 0.1]
# Standstill of a servo with friction and no noise filter.
CLOSE = 3e-3

# The client runs in a process of its own: its calls hold the interpreter while they wait, and it
# knows the standard ports only, so the server has a loopback address of its own.
CLIENT = """
import json, sys, time
from rtde_control import RTDEControlInterface
from rtde_receive import RTDEReceiveInterface
host, rate, start = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3])
receive = RTDEReceiveInterface(host, rate)
control = RTDEControlInterface(host, rate)
out = {}

def settle():
    last = None
    for _ in range(100):
        time.sleep(0.1)
        q = receive.getActualQ()
        if last is not None and max(abs(a - b) for a, b in zip(q, last)) < 2e-4:
            break
        last = q
    return q

def until(holds):
    # The client reads the latest packet that came; on a busy computer that may take a while.
    for _ in range(200):
        if holds():
            return True
        time.sleep(0.05)
    return False

out["connected"] = control.isConnected() and receive.isConnected()
out["moveJ"] = control.moveJ(start, 1.0, 1.4)
out["after moveJ"] = settle()

far = [start[0] + 1.0, *start[1:]]
out["async"] = control.moveJ(far, 0.5, 0.5, True)
out["on the way"] = until(lambda: receive.getActualQ()[0] > start[0] + 0.2)
control.stopJ(2.0)
out["after stopJ"] = settle()

control.moveJ(start, 1.0, 1.4)
settle()
goal = [q + 0.05 for q in start]
for k in range(200):
    period = control.initPeriod()
    share = min(1.0, k / 100)
    ok = control.servoJ([q + share * 0.05 for q in start], 0, 0, 1.0 / rate, 0.1, 300)
    control.waitPeriod(period)
out["servoJ"] = ok
time.sleep(1.0)
out["servoStop"] = control.servoStop()
out["after servoJ"] = settle()

begin = receive.getActualQ()
out["speedJ"] = control.speedJ([0.0, 0.0, 0.0, 0.0, 0.0, 0.2], 0.5, 1.0)
out["was moving"] = until(lambda: receive.getActualQd()[5] > 0.15)
time.sleep(0.5)
control.speedStop()
out["after speedJ"] = settle()
out["before speedJ"] = begin

out["setPayload"] = control.setPayload(1.5, [0.0, 0.0, 0.1])
out["payload"] = until(lambda: abs(receive.getPayload() - 1.5) < 1e-9)
# Not with a tool offset of zeros: for that 1.6.5 sends twelve values under a recipe of six.
out["forward"] = control.getForwardKinematics(start, [0, 0, 0.1, 0, 0, 0])
out["tcp"] = control.getTCPOffset()
out["steady"] = control.isSteady()
control.stopScript()
out["stopped"] = until(lambda: receive.getRuntimeState() == 1)
out["reupload"] = control.reuploadScript()
out["playing"] = until(lambda: receive.getRuntimeState() == 2)
time.sleep(0.5)
out["again"] = control.moveJ(goal, 1.0, 1.4)
out["after again"] = settle()
control.stopScript()
control.disconnect()
receive.disconnect()
print(json.dumps(out))
"""


@pytest.fixture(scope="module", params=["3.15.4.0", "5.23.0.0"])
def session(request, tmp_path_factory):
    """What the client saw."""
    pid = os.getpid()
    host = f"127.{1 + pid // 62500 % 250}.{pid // 250 % 250}.{1 + pid % 250}"
    command = [sys.executable, "-m", "taufit", "simulate", "ur10", "--serve", "--json"]
    command += ["--bind", host, "--software", request.param, "--seconds", "300"]
    errors = tmp_path_factory.mktemp("client") / "errors.txt"
    with (
        errors.open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            page = json.loads(server.stdout.readline())
            assert page["host"] == host
            client = [sys.executable, "-c", CLIENT, host, str(page["rate_hz"]), json.dumps(START)]
            ran = subprocess.run(client, capture_output=True, text=True, timeout=400)
            assert ran.returncode == 0, ran.stderr[-2000:] + errors.read_text()[-2000:]
            yield json.loads(ran.stdout.splitlines()[-1])
        finally:
            server.terminate()
            server.wait(20)


def test_every_call_succeeds(session):
    names = ("connected", "moveJ", "async", "servoJ", "servoStop", "speedJ", "setPayload")
    names += ("reupload", "playing", "again", "steady", "stopped")
    assert {name: session[name] for name in names} == dict.fromkeys(names, True)


def test_the_arm_went_where_it_was_sent(session):
    np.testing.assert_allclose(session["after moveJ"], START, atol=CLOSE)
    goal = np.array(START) + 0.05
    np.testing.assert_allclose(session["after servoJ"], goal, atol=CLOSE)
    np.testing.assert_allclose(session["after again"], goal, atol=CLOSE)


def test_a_stopped_move_ends_on_the_way(session):
    moved = np.array(session["after stopJ"]) - START
    assert session["on the way"] and 0.2 < moved[0] < 0.95
    np.testing.assert_allclose(moved[1:], 0.0, atol=CLOSE)


def test_speed_moves_one_joint(session):
    moved = np.array(session["after speedJ"]) - session["before speedJ"]
    assert session["was moving"] and 0.05 < moved[5] < 1.0
    np.testing.assert_allclose(moved[:5], 0.0, atol=CLOSE)


def test_what_the_controller_calculates_is_what_we_do(session):
    assert session["payload"]
    np.testing.assert_allclose(session["tcp"], np.zeros(6), atol=1e-12)
    tip = forward_kinematics(read_robot("ur10"), np.array([START]))[0, -1]
    point = tip[:3, 3] + 0.1 * tip[:3, 2]
    np.testing.assert_allclose(session["forward"][:3], point, atol=1e-9)
    vector = np.array(session["forward"][3:])
    angle = np.linalg.norm(vector)
    # The rotation vector turns the base's axes into the flange's.
    np.testing.assert_allclose(tip[:3, :3] @ vector, vector, atol=1e-9)
    assert np.cos(angle) == pytest.approx((np.trace(tip[:3, :3]) - 1) / 2, abs=1e-9)
