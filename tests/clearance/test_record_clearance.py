"""The conversation of `taufit record`: which arm, motion and state, and what is refused."""

from __future__ import annotations

import copy
import json
import os
import pty
import subprocess
import sys
import time

import numpy as np
import pytest

from taufit.cli import main
from taufit.core.errors import WireError
from taufit.excitation import write_motion
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, typical_rotor
from taufit.virtual.controllers import UrController, VirtualUr
from taufit.wire.player import PlaybackGuard
from taufit.wire.source import SampleBlock, newest_block

TAUFIT = [sys.executable, "-m", "taufit"]
ARM = read_robot("ur10")
CENTRE = np.array([0.0, -1.57, 1.2, -1.57, -1.57, 0.0])


@pytest.fixture(scope="module")
def served():
    twin = Twin(typical_rotor(ARM))
    with VirtualUr(
        UrController(twin, version=(3, 15, 0, 0), home=tuple(CENTRE)), pace=6.0
    ) as robot:
        yield robot


def short(arm=ARM):
    return random_fourier(typical_rotor(arm), seed=3, frequency_hz=0.5, centre=CENTRE, reach=0.2)


def ports(robot):
    names = ("rtde", "secondary", "dashboard")
    return ",".join(f"{name}={getattr(robot.ports, name)}" for name in names)


def recorded(robot, path, *words):
    command = [*TAUFIT, "record", robot.host, str(path), "--ports", ports(robot), "--yes", *words]
    output = path.with_name("r.parquet")
    return subprocess.run(
        [*command, "-o", str(output)], capture_output=True, text=True, timeout=120
    )


def dry(capsys, path, *words):
    with pytest.raises(SystemExit) as stop:
        main(["record", "127.0.0.1", str(path), "--dry-run", "--json", *words])
    return stop.value.code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("robot", "notes", "says"),
    [
        ("ur5e", {}, "table is that of ur10, not of ur5e"),
        ("ur10e", {}, "not of ur10e"),
        ("ur10", {"feasible": False}, "not feasible"),
    ],
)
def test_a_motion_for_another_arm_moves_nothing(served, tmp_path, robot, notes, says):
    write_motion(short(read_robot(robot)), tmp_path / "m.json", robot=robot, **notes)
    before = served.controller.target.copy()
    ran = recorded(served, tmp_path / "m.json", "--slow", "0")
    assert ran.returncode in (1, 3) and says in " ".join(ran.stderr.split()), ran.stderr
    np.testing.assert_array_equal(served.controller.target, before)


def test_a_motion_for_another_mounting_moves_nothing(tmp_path):
    write_motion(short(), tmp_path / "m.json", robot="ur10", mounting=[np.pi, 0.0, 0.0])
    # Newer controllers report gravity.
    with VirtualUr(UrController(Twin(typical_rotor(ARM)), home=tuple(CENTRE))) as robot:
        ran = recorded(robot, tmp_path / "m.json", "--slow", "0")
        assert ran.returncode in (1, 3)
        assert "gravity is tilted by 180 degrees" in " ".join(ran.stderr.split()), ran.stderr
        assert robot.controller.program is None


def test_a_motion_that_fits_is_played_and_its_arm_is_noted(served, tmp_path):
    write_motion(short(), tmp_path / "m.json", robot="ur10")
    ran = recorded(served, tmp_path / "m.json", "--slow", "0.5", "--json")
    assert ran.returncode == 0, ran.stderr
    page = json.loads(ran.stdout)
    assert page["ended"] == "" and page["seconds"] == pytest.approx(3.0, abs=0.1)
    assert "bare flange" in ran.stderr


def test_an_arm_that_was_moved_during_the_question_is_not_moved_on(served, tmp_path):
    write_motion(short(), tmp_path / "m.json", robot="ur10")
    words = [*TAUFIT, "record", served.host, str(tmp_path / "m.json"), "--ports", ports(served)]
    parent, child = pty.openpty()
    running = subprocess.Popen(
        [*words, "--slow", "0", "-o", str(tmp_path / "r.parquet")],
        stdin=child,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(child)
    said = ""
    while "space free" not in said:
        said += running.stderr.read(1)
    goal = served.controller.target.copy()
    goal[5] += 0.4
    row = ", ".join(f"{x:.6f}" for x in goal)
    served.call_between_steps(lambda c: c.play(f"def other():\n movej([{row}], a=8, v=3)\nend\n"))
    for _ in range(200):
        time.sleep(0.02)
        if served.controller.program is None and abs(served.controller.target[5] - goal[5]) < 1e-6:
            break
    os.write(parent, b"y\n")
    _, rest = running.communicate(timeout=60)
    os.close(parent)
    assert running.returncode in (1, 3)
    assert "moved while the question waited: wrist_3_joint" in " ".join(rest.split())
    np.testing.assert_allclose(served.controller.target, goal, atol=1e-6)


def test_a_dry_run_says_whether_it_is_cleared_and_why_not(fourier, tmp_path, capsys):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(fourier))
    code, page = dry(capsys, path)
    assert not code and page["cleared"] is True and page["reasons"] == [] and "def " in page["sent"]
    code, page = dry(capsys, path, "--periods", "0.724")
    assert code == 1 and page["cleared"] is False and page["sent"] == ""
    assert "not at rest at its end" in page["reasons"][0] and "--periods" in page["reasons"][0]
    changed = copy.deepcopy(fourier)
    changed["offset"][5] += 1e-4
    path.write_text(json.dumps(changed))
    code, page = dry(capsys, path)
    assert code == 1 and "the motion itself" in page["reasons"][0]
    assert "--uncertified" in page["reasons"][0]
    code, page = dry(capsys, path, "--uncertified")
    assert not code and page["cleared"] and page["uncertified"]


@pytest.mark.parametrize("slow", ["-1", "1e-9", "0.01", "1.5"])
def test_a_slow_period_has_a_range(fourier, tmp_path, slow):
    (tmp_path / "m.json").write_text(json.dumps(fourier))
    with pytest.raises(SystemExit) as stop:
        main(["record", "127.0.0.1", str(tmp_path / "m.json"), "--dry-run", "--slow", slow])
    assert stop.value.code == 2


def test_what_design_writes_is_cleared_in_every_way(tmp_path, capsys):
    path = tmp_path / "m.json"
    with pytest.raises(SystemExit):
        main(["design", "ur3e", "--seconds", "0.3", "--jerk", "200", "--wall", "1,0,0,-0.6",
              "-o", str(path)])  # fmt: skip
    capsys.readouterr()
    saved = json.loads(path.read_text())["clearance"]
    assert saved["cell"]["jerk"] == 200 and saved["cell"]["planes"][0]["offset"] == -0.6
    assert len(saved["home"]) == 6 and set(saved["digests"]) >= {"motion", "scene", "geometry"}
    for words in ([], ["--stream"]):
        code, page = dry(capsys, path, *words)
        assert not code and page["cleared"], page["reasons"]


def test_free_space_is_not_certified(tmp_path, capsys):
    path = tmp_path / "m.json"
    with pytest.raises(SystemExit):
        main(["design", "ur3e", "--seconds", "0.2", "--free-space", "-o", str(path)])
    capsys.readouterr()
    code, page = dry(capsys, path)
    assert code == 1 and "free space" in page["reasons"][0]
    code, page = dry(capsys, path, "--uncertified")
    assert not code and "free space" in page["uncertified"][0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"position": 0.5}, "b left the range"),
        ({"velocity": 4.0}, "b moved faster"),
        ({"commanded_position": 0.2}, "b does not follow"),
    ],
)
def test_the_first_excess_while_moving_is_named(change, says):
    guard = PlaybackGuard(("a", "b"), -np.ones(2), np.ones(2), np.array([3.0, 3.0]))
    names = ("position", "velocity", "commanded_position", "commanded_velocity")
    values = {name: np.zeros((5, 2)) for name in names}
    values["position"][:, 1] = values["commanded_position"][:, 1] = 0.9
    for name, size in change.items():
        values[name][3, 1] += size
    if "position" in change:
        values["commanded_position"] = values["position"].copy()
    found = guard.find_violation(SampleBlock(np.arange(5.0), values))
    assert (found is None) == (says is None) and (says is None or says in found)


@pytest.mark.unchecked
def test_what_waited_on_the_line_is_not_the_present_state():
    def block(value):
        return SampleBlock(np.zeros(1), {"position": np.full((1, 6), value)})

    class Line:
        """Old samples, then a break, then the present."""

        def __init__(self):
            self.answers = [block(1.0), block(2.0), None, None, block(3.0)]

        def read(self, seconds):
            return self.answers.pop(0)

    assert newest_block(Line()).values["position"][0, 0] == 3.0
    with pytest.raises(WireError, match="no sample came"):
        newest_block(type("Silent", (), {"read": lambda self, seconds: None})(), 0.05)


def test_an_arm_that_leaves_its_command_is_stopped(served, tmp_path, monkeypatch):
    from taufit.excitation.robot_programs import to_urscript
    from taufit.wire import UrRtde
    from taufit.wire.player import Approach
    from taufit.wire.recorder import record
    from taufit.wire.ur_player import UrPlayer

    motion = short()
    here = served.controller.target.copy()
    approach = Approach(np.stack([here, motion.at(np.zeros(1))[0][0]]))
    text = to_urscript(motion, step_s=0.008, phases=True, call=False, approach=approach)
    # Bounds that the motion does not keep stand for an arm that does not keep its own.
    guard = PlaybackGuard(
        ARM.joint_names, here - 0.01, here + 0.01, ARM.limits.velocity, margin=0.0
    )
    source = UrRtde(served.host, ports=served.ports)
    player = UrPlayer(served.host, text, ports=served.ports)
    try:
        done = record(source, tmp_path / "r.parquet", player=player, guard=guard)
        ended = done.ended
    except WireError as error:
        ended = str(error)
    assert "left the range of the motion, and was stopped" in ended
    for _ in range(100):
        if served.controller.program is None and not served.controller.target_speed.any():
            break
        time.sleep(0.05)
    assert served.controller.program is None
