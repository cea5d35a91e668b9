"""Motions played step by step: what is sent when, streamed to a controller or through ROS 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import WireError
from taufit.excitation import SampledMotion
from taufit.excitation.motion_file import write_motion
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, typical_rotor
from taufit.virtual.controllers import UrController, VirtualUr
from taufit.virtual.urscript.machine import Machine
from taufit.wire import UrRtde
from taufit.wire.player import APPROACH, FINISHED, PREPARATION, RECORDED, Approach, Playback
from taufit.wire.recorder import record
from taufit.wire.ros import JointState, Ros2JointStates, Ros2Player
from taufit.wire.rtde_connection import RtdeConnection
from taufit.wire.ur_stream import UrStreamPlayer, stream_program

ARM = typical_rotor(read_robot("ur10"))
CENTRE = np.array([0.0, -1.57, 1.2, -1.57, -1.57, 0.0])
MOTION = random_fourier(ARM, seed=3, frequency_hz=0.25, centre=CENTRE, reach=0.5)
SHORT = random_fourier(ARM, seed=4, frequency_hz=0.8, centre=CENTRE, reach=0.1)


def open_motion():
    """One that does not end where it begins."""
    t = np.linspace(0.0, 2.0, 201)
    s = (3 * (t / 2) ** 2 - 2 * (t / 2) ** 3)[:, None]
    return SampledMotion(t, CENTRE + 0.4 * s * np.ones(6))


@pytest.mark.parametrize(
    "playback",
    [
        Playback(MOTION),
        Playback(MOTION, 0.3, 9.0, MOTION.period),
        Playback(open_motion(), 0.5, 3.0),
    ],
    ids=["bare", "periodic", "open"],
)
def test_what_is_played_has_no_jumps_and_its_phases_come_in_order(playback):
    step = 0.002
    time = np.arange(-0.5, playback.duration + 0.5, step)
    phase, q, v, _ = playback.at(time)
    assert np.all(np.diff(phase) >= 0) and phase[0] == APPROACH and phase[-1] == FINISHED
    assert (PREPARATION in phase) == (playback.slow > 0.0)
    # Along every step the joints go as far as their velocity says.
    travelled = 0.5 * step * (v[1:] + v[:-1])
    np.testing.assert_allclose(np.diff(q, axis=0), travelled, atol=2e-3 * step)
    np.testing.assert_allclose(q[0], playback.start, atol=1e-12)
    # What counts is the motion, with half a second of rest before and after.
    counted = phase == RECORDED
    own = time[counted] - time[counted][0] - 0.5
    np.testing.assert_allclose(q[counted], playback.motion.at(own)[0], atol=2e-2)
    assert counted.sum() * step == pytest.approx(playback.motion.duration + 1.0, abs=2 * step)


def test_a_warm_up_lasts_as_long_as_asked():
    playback = Playback(MOTION, 0.0, 9.0, MOTION.period)
    time = np.arange(0.0, playback.duration, 0.01)
    preparing = playback.at(time)[0] == PREPARATION
    assert preparing.sum() * 0.01 == pytest.approx(3 * MOTION.period, abs=0.02)


@pytest.fixture(params=[(3, 15, 0, 0), (5, 23, 0, 0)], ids=["CB3", "e-Series"])
def robot(request):
    # Slower than real time: set points must reach it in time on a busy computer, too.
    pace = 0.6 if request.param[0] < 5 else 0.3
    with VirtualUr(UrController(Twin(ARM), version=request.param), pace=pace) as served:
        yield served


def source(robot):
    return UrRtde(robot.host, ports=robot.ports)


def streamed(robot, playback):
    approach = Approach(np.stack([robot.controller.target.copy(), playback.start]))
    return UrStreamPlayer(robot.host, playback, approach, ports=robot.ports)


def start_at(robot, position):
    """Nearly where the motion begins: the approach takes no time."""
    goal = position - 0.02
    row = ", ".join(f"{x:.6f}" for x in goal)
    robot.call_between_steps(
        lambda controller: controller.play(f"def go():\n movej([{row}], a=8, v=3)\nend\n")
    )
    for _ in range(600):
        # The call returns before the controller has begun.
        if np.abs(robot.controller.target - goal).max() < 1e-4:
            break
        time.sleep(0.05)
    assert still(robot)


def still(robot):
    for _ in range(100):
        if np.abs(robot.controller.target_speed).max() == 0.0 and robot.controller.program is None:
            return True
        time.sleep(0.05)
    return False


def test_a_streamed_motion_is_where_the_design_says(robot, tmp_path):
    playback = Playback(SHORT, period=SHORT.period)
    start_at(robot, playback.start)
    done = record(source(robot), tmp_path / "r.parquet", player=streamed(robot, playback))
    assert done.ended == "" and (done.lost, done.duplicated) == (0, 0)
    # The controller may hold a set point where this computer is late: the path is the design's.
    dense = SHORT.at(np.linspace(0.0, SHORT.duration, 20_000))[0]
    target = done.recording.commanded_position
    away = np.array(
        [np.abs(dense - row).max(axis=1).min() for row in target[:: len(target) // 200]]
    )
    assert away.max() < 2e-3
    covered = np.abs(target.max(0) - dense.max(0)), np.abs(target.min(0) - dense.min(0))
    assert max(part.max() for part in covered) < 2e-3
    assert SHORT.duration + 0.9 < done.seconds < 2.0 * (SHORT.duration + 1.0)
    assert still(robot)


def test_without_set_points_the_controller_stops_the_arm(robot, tmp_path):
    playback = Playback(MOTION, period=MOTION.period)
    start_at(robot, playback.start)
    player = streamed(robot, playback)

    class Dying:
        """Ends the stream in the middle, as a computer that hangs would."""

        notices = player.notices

        def prepare(self):
            player.prepare()

        def start(self):
            player.start()

        def check_progress(self, block):
            if block.last("output_int_register_24", 0) == RECORDED:
                player._ended.set()
            return player.check_progress(block)

        def rows_to_record(self, block):
            return player.rows_to_record(block)

        def stop(self):
            player.stop()

    done = record(source(robot), tmp_path / "r.parquet", player=Dying())
    assert "no set points reached the controller" in done.ended
    assert done.samples > 10 and still(robot)


def test_registers_of_another_client_are_not_taken(robot):
    other = RtdeConnection(robot.host, robot.ports.rtde, print)
    other.inputs(("input_int_register_24",))
    player = streamed(robot, Playback(MOTION, period=MOTION.period))
    with pytest.raises(WireError, match="another client writes input_int_register_24"):
        player.prepare()
    player.stop()
    other.close()
    assert robot.controller.program is None


def test_the_program_stops_by_itself_when_no_set_point_ever_comes():
    controller = UrController(Twin(ARM), version=(3, 15, 0, 0))
    text = stream_program(Approach(np.stack([controller.target, CENTRE])), 0.008)
    assert Machine is not None and controller.play(text) is None
    for _ in range(round(60.0 / 0.008)):
        controller.tick()
        if controller.program is None:
            break
    assert controller.program is None and controller.integers[24] == 5
    assert np.abs(controller.target_speed).max() == 0.0


def test_record_streams_when_asked(robot, tmp_path):
    path = tmp_path / "m.json"
    write_motion(SHORT, path, robot="ur10")
    start_at(robot, SHORT.at(np.zeros(1))[0][0])
    names = ("rtde", "secondary", "dashboard")
    ports = ",".join(f"{name}={getattr(robot.ports, name)}" for name in names)
    command = [sys.executable, "-m", "taufit", "record", robot.host, str(path), "--stream"]
    command += ["--ports", ports, "--slow", "0", "--yes", "--json"]
    ran = subprocess.run(
        [*command, "-o", str(tmp_path / "r.parquet")], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr[-1000:]
    page = json.loads(ran.stdout)
    assert (page["lost"], page["ended"]) == (0, "")
    dry = subprocess.run([*command[:-1], "--dry-run"], capture_output=True, text=True, timeout=120)
    assert dry.returncode == 0 and "read_input_float_register" in dry.stdout


class Arm:
    """A trajectory controller and its joint states, both ends of a ROS 2 robot, in memory."""

    name = "a robot of paper"

    def __init__(self, names, at, *, listens=True, follows=1.0, rate=250.0):
        self.names, self.at = names, np.asarray(at, float)
        self.listens, self.follows, self.rate = listens, follows, rate
        self.sent, self.k, self.began = [], 0, None

    # What a player sees.

    def wait_for_subscriber(self, seconds):
        return self.listens

    def send(self, trajectory):
        self.sent.append(trajectory)
        self.began, self.origin = self.k, self.at.copy()

    # What a source sees.

    def take(self, seconds):
        out = []
        for _ in range(20):
            self.k += 1
            if self.began is not None:
                t = self.follows * (self.k - self.began) / self.rate
                goal = self.sent[-1]
                time = np.concatenate([[0.0], goal.time])
                path = np.vstack([self.origin, goal.position])
                self.at = np.array([np.interp(t, time, column) for column in path.T])
            row = tuple(self.at)
            # Published in an order of its own.
            names, row = self.names[::-1], row[::-1]
            out.append(JointState(10.0 + self.k / self.rate, names, row, row, row))
        return out

    def close(self):
        pass


NAMES = tuple(f"axis_{i}" for i in range(6))


def ros2(arm, playback, tmp_path, here):
    states = Ros2JointStates("/js", "torque", joints=NAMES, subscriber=arm)
    approach = Approach(np.stack([here, playback.start]))
    player = Ros2Player("/c/joint_trajectory", playback, NAMES, approach, publisher=arm)
    return record(states, tmp_path / "r.parquet", player=player)


def test_a_trajectory_controller_plays_what_was_designed(tmp_path):
    arm = Arm(NAMES, CENTRE + 0.3)
    playback = Playback(MOTION, 0.5, 0.0, MOTION.period)
    done = ros2(arm, playback, tmp_path, arm.at)
    assert done.ended == "" and len(arm.sent) == 1
    sent = arm.sent[0]
    assert sent.names == NAMES and np.all(np.diff(sent.time) > 0.0)
    # The way to the start is no faster than 0.3 rad/s.
    assert 1.5 * np.abs(sent.position[0] - CENTRE - 0.3).max() / sent.time[0] < 0.3 + 1e-9
    recording = done.recording
    assert done.seconds == pytest.approx(MOTION.duration + 1.0, abs=0.02)
    # Messages on their way when the trajectory was sent: the arm is up to 0.1 s behind.
    behind = [
        np.abs(
            recording.position - MOTION.at(recording.time - recording.time[0] - 0.5 - late)[0]
        ).max()
        for late in np.arange(-0.02, 0.1, 0.004)
    ]
    assert min(behind) < 2e-3
    ends = recording.position[:50], recording.position[-50:]
    assert max(np.ptp(end, axis=0).max() for end in ends) < 1e-9


@pytest.mark.parametrize(
    ("change", "says"),
    [({"follows": 0.0}, "does not follow"), ({"follows": 0.6}, "does not follow")],
)
def test_an_arm_that_does_not_follow_is_stopped_where_it_is(tmp_path, change, says):
    arm = Arm(NAMES, CENTRE, **change)
    done = ros2(arm, Playback(replace(MOTION, periods=3.0), period=MOTION.period), tmp_path, arm.at)
    assert says in done.ended
    hold = arm.sent[-1]
    assert len(arm.sent) == 2 and len(hold.time) == 1 and not hold.velocity.any()
    np.testing.assert_allclose(hold.position[0], arm.at, atol=0.05)


def test_a_topic_nobody_listens_to_is_said_before_anything_moves(tmp_path):
    arm = Arm(NAMES, CENTRE, listens=False)
    with pytest.raises(WireError, match="nobody listens on /c/joint_trajectory"):
        ros2(arm, Playback(MOTION), tmp_path, arm.at)
    assert arm.sent == []


NODE = """
import sys, time, bisect, rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory
rclpy.init()
node = rclpy.create_node("arm")
states = node.create_publisher(JointState, "/joint_states", QoSProfile(depth=1000))
got = []
node.create_subscription(
    JointTrajectory, "/arm_controller/joint_trajectory", lambda m: got.append((m, tick[0])), 10
)
names = sys.argv[1].split(",")
here, tick, rate = [float(x) for x in sys.argv[2].split(",")], [0], 250
begun = time.perf_counter()
while tick[0] < 60 * rate:
    tick[0] += 1
    if got:
        plan, since = got[-1]
        t = (tick[0] - since) / rate
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in plan.points]
        k = bisect.bisect(times, t)
        if k == 0:
            s, a, b = t / times[0], start, list(plan.points[0].positions)
        elif k < len(times):
            s = (t - times[k - 1]) / (times[k] - times[k - 1])
            a, b = plan.points[k - 1].positions, plan.points[k].positions
        else:
            s, a, b = 1.0, plan.points[-1].positions, plan.points[-1].positions
        here = [x + s * (y - x) for x, y in zip(a, b)]
    else:
        start = here
    message = JointState()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(4000000 * tick[0], 10**9)
    message.name = names
    message.position = message.velocity = message.effort = here
    states.publish(message)
    rclpy.spin_once(node, timeout_sec=0.0)
    time.sleep(max(0.0, begun + tick[0] / rate - time.perf_counter()))
"""


@pytest.mark.parametrize("way", ["cyclonedds", "rclpy"])
def test_a_real_node_receives_and_plays_the_trajectory(tmp_path, way, ros2_namespace):
    path = tmp_path / "m.json"
    write_motion(MOTION, path, robot="ur10")
    (tmp_path / "node.py").write_text(NODE)
    names = ",".join(ARM.joint_names)
    here = ",".join(str(x) for x in CENTRE + 0.1)
    python, reader, run = ros2_namespace(way)
    script = (
        f"{python} node.py {names} {here} >node.log 2>&1 & node=$!; {reader} -m taufit record "
        "ros2:/joint_states m.json --torque-kind torque --controller "
        "/arm_controller/joint_trajectory "
        "--robot ur10 --slow 0 --yes -o r.parquet --json; code=$?; kill $node; exit $code"
    )
    ran = run(script, tmp_path)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    page = json.loads(ran.stdout)
    assert (page["lost"], page["duplicated"], page["ended"]) == (0, 0, "")
    from taufit.recording import read_recording

    recording = read_recording(tmp_path / "r.parquet")
    dense = MOTION.at(np.linspace(0.0, MOTION.duration, 20_000))[0]
    rows = recording.position[::10]
    away = np.array([np.abs(dense - row).max(axis=1).min() for row in rows])
    assert away.max() < 0.02
    assert os.path.getsize(tmp_path / "r.parquet") > 1000
