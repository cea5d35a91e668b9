"""`taufit record` against `taufit simulate --serve`, over real sockets, as a user would run it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import yaml
from tests.output_json import parse_output

from taufit.cli import main
from taufit.core.errors import WireError
from taufit.dynamics import inverse_dynamics
from taufit.excitation import SampledMotion
from taufit.excitation.motion_file import read_motion, write_motion
from taufit.excitation.robot_programs import to_urscript
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, typical_effects, typical_rotor
from taufit.virtual.controllers import UrController, VirtualUr
from taufit.virtual.urscript import is_complete
from taufit.wire import UrRtde
from taufit.wire.recorder import record
from taufit.wire.ur_player import UrPlayer, mounting_from_gravity, read_dh_table

TAUFIT = [sys.executable, "-m", "taufit"]
ARM = read_robot("ur10")
CENTRE = np.array([0.0, -1.57, 1.2, -1.57, -1.57, 0.0])


def motion(seed, frequency_hz=0.1, reach=0.5):
    return random_fourier(
        typical_rotor(ARM), seed=seed, frequency_hz=frequency_hz, centre=CENTRE, reach=reach
    )


class Served:
    """A virtual controller in a process of its own, on free ports."""

    def __init__(self, *arguments, software="3.15", pace="6"):
        command = [*TAUFIT, "simulate", "ur10", "--serve", "--json", "--ports", "free"]
        command += ["--software", software, "--pace", pace, "--seconds", "900", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self):
        page = parse_output("simulate", self.process.stdout.readline())
        self.host = page["host"]
        self.ports = ",".join(f"{name}={port}" for name, port in page["ports"].items())
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()

    def record(self, path, *arguments, **settings):
        command = [*TAUFIT, "record", self.host, str(path), "--ports", self.ports, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=900, **settings)


def recorded(served, path, output, *arguments):
    ran = served.record(path, "--slow", "0", "--yes", "--json", "-o", str(output), *arguments)
    assert ran.returncode == 0, ran.stderr[-2000:]
    page = parse_output("record", ran.stdout)
    assert (page["lost"], page["duplicated"], page["gaps"], page["ended"]) == (0, 0, [], "")
    return page


def test_the_twin_is_recovered_over_the_wire(tmp_path):
    paths = {}
    for name, kind in (("train", "identification"), ("test", "validation")):
        paths[name] = tmp_path / f"{name}.json"
        said("design", "ur10", "--kind", kind, "--seconds", "2", "--seed", "1", "-o", paths[name])
    with Served() as served:
        recorded(served, paths["train"], tmp_path / "train.parquet", "--periods", "3")
        recorded(served, paths["test"], tmp_path / "test.parquet")
    with Served("--payload", "3.5,0,0,0.03", "--seed", "5") as served:
        recorded(served, paths["train"], tmp_path / "loaded.parquet")

    train = read_recording(tmp_path / "train.parquet")
    assert train.meta["robot"] == "ur10" and train.meta["robot_model"] == "UR10"
    assert train.meta["dh"]["calibrated"] and len(train.meta["dh"]["a"]) == 6
    np.testing.assert_allclose(train.gain, ARM.drives.gain)

    model = tmp_path / "model.json"
    best = tmp_path / "best.json"
    fitted = said(
        "fit",
        "ur10",
        tmp_path / "train.parquet",
        "--holdout",
        tmp_path / "test.parquet",
        "-o",
        best,
    )
    said("fit", "ur10", tmp_path / "train.parquet", "--friction", "linear", "-o", model)
    scores = fitted["holdout"][0]
    effects = typical_effects(typical_rotor(ARM))
    # The torque noise that passes the cut-off, per standard deviation of the torque: no model can
    # be better.
    share = np.sqrt(scores["cutoff_hz"] / (0.5 * 125.0))
    noise = np.hypot(effects.sensing.white * share, effects.sensing.coloured)
    floor = noise / (np.array(scores["rmse"]) / scores["nrmse"])
    assert np.all(np.array(scores["nrmse"]) < floor + 0.02)

    values = {p["name"]: p["value"] for p in json.loads(model.read_text())["parameters"]}
    # Part of the twin's friction grows with the load: the fitted level holds at the mean load.
    path = read_motion(paths["train"]).at(np.linspace(0.0, 10.0, 1000))
    load = np.abs(inverse_dynamics(ARM, *path)).mean(0)
    for joint in range(6):
        name = f"joint_{joint + 1}"
        coulomb, viscous = effects.friction.coefficients[joint]
        coulomb += effects.friction.load_factor * load[joint]
        for speed in (0.3, 1.0):
            found = values[f"{name}.coulomb"] + speed * values[f"{name}.viscous"]
            assert found == pytest.approx(coulomb + speed * viscous, rel=0.05), (name, speed)

    body = said("payload", best, tmp_path / "loaded.parquet")["mass"]
    assert body["value"] == pytest.approx(3.5, rel=0.01)
    assert body["low"] < 3.5 < body["high"]


def said(*arguments):
    """The JSON of a command that succeeds."""
    command = [*TAUFIT, *(str(a) for a in arguments), "--json"]
    if "-o" not in command and arguments[0] == "fit":
        command += ["-o", str(arguments[2].with_name("other.json"))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


@pytest.fixture
def robot():
    twin = Twin(typical_rotor(ARM))
    with VirtualUr(UrController(twin, version=(3, 15, 0, 0)), pace=6.0) as served:
        yield served


def player(robot, program):
    return UrPlayer(robot.host, program, ports=robot.ports)


def source(robot):
    return UrRtde(robot.host, ports=robot.ports)


def program(**settings):
    return to_urscript(
        motion(3, frequency_hz=0.25, reach=0.5), step_s=0.008, phases=True, call=False, **settings
    )


def still(robot):
    """Whether the arm has come to rest."""
    for _ in range(100):
        if np.abs(robot.controller.target_speed).max() == 0.0 and robot.controller.program is None:
            return True
        time.sleep(0.05)
    return False


def test_only_the_phase_that_counts_is_recorded(robot, tmp_path):
    done = record(
        source(robot),
        tmp_path / "r.parquet",
        player=player(robot, program(slow=0.5, warm_up_s=1.0)),
    )
    assert done.ended == ""
    # Half a second of rest, 4 s of motion, half a second of rest; and no earlier program's rows.
    assert done.seconds == pytest.approx(5.0, abs=0.1)
    again = record(source(robot), tmp_path / "again.parquet", player=player(robot, program()))
    assert again.seconds == pytest.approx(5.0, abs=0.1)
    assert still(robot)


def test_a_protective_stop_ends_the_recording_with_what_there_is(robot, tmp_path):
    def press():
        while robot.controller.integers[24] != 3:
            time.sleep(0.01)
        time.sleep(0.3)
        robot.call_between_steps(lambda controller: controller.protective_stop("a button"))

    thread = threading.Thread(target=press)
    thread.start()
    done = record(source(robot), tmp_path / "r.parquet", player=player(robot, program()))
    thread.join()
    assert done.ended == "the robot is in protective stop"
    assert 0.2 < done.seconds < 4.9 and len(read_recording(done.path)) == done.samples
    assert still(robot)


def test_a_refused_program_is_not_waited_for(robot, tmp_path):
    wrong = UrPlayer(robot.host, "fly_away()\n", ports=robot.ports, begin_within=1.0)
    with pytest.raises(WireError, match="did not start the program"):
        record(source(robot), tmp_path / "r.parquet", player=wrong)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_stops_the_robot_and_keeps_the_samples(robot, tmp_path):
    path = tmp_path / "m.json"
    write_motion(motion(3, frequency_hz=0.05, reach=0.5), path, robot="ur10")
    names = ("rtde", "secondary", "dashboard")
    ports = ",".join(f"{name}={getattr(robot.ports, name)}" for name in names)
    command = [*TAUFIT, "record", robot.host, str(path), "--ports", ports, "--slow", "0", "--yes"]
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "r.parquet")], stdout=subprocess.PIPE, text=True
    ) as running:
        for _ in range(600):
            if robot.controller.integers[24] == 3:
                break
            time.sleep(0.05)
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=60)
    assert running.returncode == 1 and "samples" in output
    assert still(robot)
    assert len(read_recording(tmp_path / "r.parquet")) > 50


def test_nothing_moves_without_a_yes(robot, tmp_path):
    path = tmp_path / "m.json"
    write_motion(motion(3), path, robot="ur10")
    before = robot.controller.target.copy()
    ports = f"rtde={robot.ports.rtde},secondary={robot.ports.secondary}"
    command = [*TAUFIT, "record", robot.host, str(path), "--ports", ports]
    ran = subprocess.run(
        [*command, "-o", str(tmp_path / "r.parquet")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 2 and "--yes" in ran.stderr
    dry = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, timeout=120)
    assert dry.returncode == 0 and "servoj(" in dry.stdout and "movej(" in dry.stdout
    np.testing.assert_array_equal(robot.controller.target, before)
    assert not (tmp_path / "r.parquet").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.protective_stop("test"), "protective stop"),
        (lambda c: c.set_power(False), "power it on"),
        (lambda c: c.inputs.update(speed_slider_mask=1, speed_slider_fraction=0.5), "speed slider"),
        (lambda c: c.play("while True:\n sync()\nend"), "a program is running"),
    ],
)
def test_a_robot_that_is_not_ready_is_not_moved(robot, tmp_path, change, says):
    path = tmp_path / "m.json"
    write_motion(motion(3), path, robot="ur10")
    robot.call_between_steps(change)
    time.sleep(0.2)
    names = ("rtde", "secondary", "dashboard")
    ports = ",".join(f"{name}={getattr(robot.ports, name)}" for name in names)
    command = [*TAUFIT, "record", robot.host, str(path), "--yes", "--ports", ports]
    ran = subprocess.run(
        [*command, "-o", str(tmp_path / "r.parquet")], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode in (1, 3) and says in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere.invalid"], 3, "cannot be reached"),
        (["a b"], 3, "is not a source"),
        (["127.0.0.1", "--ports", "rtde=x"], 3, "is not a port"),
        (["127.0.0.1", "-o", "run.csv"], 2, "parquet"),
        (["127.0.0.1", "missing.json", "--yes"], 3, "missing.json"),
        (["franka:127.0.0.1", "MOTION", "--yes"], 3, "only read"),
        (["127.0.0.1", "--dry-run"], 2, "nothing to send"),
        (["ros2:/joint_states", "MOTION", "--stream", "--dry-run"], 2, "whole trajectory"),
        (["127.0.0.1", "MOTION", "--robot", "panda", "--dry-run"], 3, "moves 6 joints; panda has"),
        (["127.0.0.1", "NAMELESS", "--dry-run"], 3, "name it with --robot"),
        (["127.0.0.1", "SAMPLED", "--periods", "2", "--dry-run"], 3, "not a periodic motion"),
    ],
)
def test_wrong_words_are_answered_in_one_message(tmp_path, arguments, code, says):
    write_motion(motion(3), tmp_path / "MOTION.json", robot="ur10")
    write_motion(motion(3), tmp_path / "NAMELESS.json")
    knots = np.arange(0.0, 5.0, 0.1)
    sampled = SampledMotion(knots, motion(3).at(knots)[0])
    write_motion(sampled, tmp_path / "SAMPLED.json", robot="ur10")
    arguments = [f"{tmp_path / a}.json" if a.isupper() else a for a in arguments]
    ran = subprocess.run(
        [*TAUFIT, "record", *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert ran.returncode == code and says in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("source", "words", "begins"),
    [
        ("127.0.0.1", [], "def "),
        ("127.0.0.1", ["--stream"], "def "),
        ("ros2:/joint_states", ["--controller", "/arm_controller"], "joint_names"),
    ],
)
def test_a_dry_run_prints_what_would_be_sent(tmp_path, capsys, source, words, begins):
    path = tmp_path / "m.json"
    write_motion(motion(3), path, robot="ur10")
    with pytest.raises(SystemExit) as stop:
        main(["record", source, str(path), "--dry-run", "--periods", "1", *words])
    printed = capsys.readouterr()
    assert not stop.value.code, printed.err
    assert begins in printed.out
    if begins == "def ":
        assert is_complete(printed.out[printed.out.index("def ") :])
    else:
        trajectory = yaml.safe_load(printed.out[printed.out.index("joint_names") :])
        assert trajectory["joint_names"] == list(ARM.joint_names)


def test_a_motion_beyond_the_limits_is_refused_before_anything_is_connected(tmp_path):
    fast = motion(3, frequency_hz=0.1)
    quick = type(fast)(fast.offset, 30 * fast.sine, 30 * fast.cosine, fast.frequency_hz)
    write_motion(quick, tmp_path / "m.json", robot="ur10")
    ran = subprocess.run(
        [*TAUFIT, "record", "127.0.0.1", str(tmp_path / "m.json"), "--yes"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode in (1, 3) and "speed of" in ran.stderr
    assert "beyond" in ran.stderr and "taufit design ur10" in ran.stderr


def test_the_controllers_own_kinematics_are_read(robot):
    table = read_dh_table(robot.host, robot.ports)
    assert table is not None and table.calibrated
    # The data sheet's lengths of a UR10.
    np.testing.assert_allclose(np.sort(np.abs(table.a))[-2:], [0.5723, 0.612], atol=1e-4)


@pytest.mark.parametrize("mounting", [(0.0, 0.0, 0.0), (np.pi, 0.0, 0.0), (0.4, -0.7, 0.0)])
def test_the_mounting_follows_from_gravity(mounting):
    gravity = ARM.with_mounting(mounting).gravity
    found = mounting_from_gravity(gravity)
    np.testing.assert_allclose(ARM.with_mounting(found).gravity, gravity, atol=1e-9)
