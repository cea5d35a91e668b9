"""Servo models in commands, simulators and payload estimates."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.output_json import parse_output
from tests.servo.servo_arms import commands, measure, recording, truth

import taufit
from taufit.core.errors import TaufitError
from taufit.export.servo_actuators import write_servo_export
from taufit.export.servo_mjcf import replay_in_mujoco, servo_mjcf
from taufit.recording import write_recording
from taufit.servo import CommandedMotion
from taufit.servo.payload import estimate_payload


@pytest.fixture(scope="module")
def result():
    runs = [recording(seed, truth(limit=30.0)) for seed in range(4)]
    return taufit.identify_servo("so101", runs, holdout=[recording(9, truth(limit=30.0))])


def true_model(result):
    model = result.model
    return replace(model, servo=truth(limit=30.0).replace(offset=0 * model.servo.offset))


def test_mujoco_replays_as_taufit_does(result):
    model, motion = true_model(result), result.holdout[0].motion
    own = model.replay(motion)
    error = np.sqrt(((replay_in_mujoco(model, motion) - own) ** 2).mean())
    # Explicit gain and 2 ms steps in MuJoCo: worst of ten seeds 0.6 mrad.
    assert error < 1e-3
    # As MuJoCo comes, friction creeps.
    text = servo_mjcf(model).replace('solimpfriction="0.9999 0.9999"', "")
    soft = np.sqrt(((replay_in_mujoco(model, motion, text=text) - own) ** 2).mean())
    assert soft > 2 * error
    plain = np.sqrt(((replay_in_mujoco(model, motion, filtered=False) - own) ** 2).mean())
    assert plain > 3 * error


def test_the_written_filter_is_that_of_the_roll_outs(result, tmp_path):
    model = true_model(result)
    written = write_servo_export(model, "mjcf", tmp_path / "arm.xml")
    scope: dict = {}
    exec(written.files[1].read_text(), scope)
    assert scope["LIMIT"] == pytest.approx(30.0)
    run = scope["CommandFilter"](np.zeros(5), 1e-3)
    path = np.array([run(np.full(5, 0.3)) for _ in range(800)])
    speed = np.diff(path[:, 0]) / 1e-3
    assert np.abs(np.diff(speed)).max() / 1e-3 <= 30.0 * 1.01
    assert path[-1, 0] == pytest.approx(0.3, abs=1e-6)


def test_formats_of_actuators(result, tmp_path):
    write_servo_export(result.model, "isaaclab", tmp_path / "a.py")
    compile((tmp_path / "a.py").read_text(), "a.py", "exec")
    write_servo_export(result.model, "bam", tmp_path / "b.json")
    bam = json.loads((tmp_path / "b.json").read_text())
    assert bam["elbow_flex"]["kp"] == result.model.servo.kp[2]
    with pytest.raises(TaufitError, match="mjcf, isaaclab, bam"):
        write_servo_export(result.model, "fmu", tmp_path / "c.fmu")


def test_payload_of_a_simulated_arm(result):
    from tests.servo.servo_arms import STEP

    robot = taufit.read_robot("so101")
    load = taufit.robot.inertia.from_centre_of_mass(0.1, robot.tip[:3, 3], 1e-6 * np.eye(3))
    parameters = robot.parameters.reshape(5, -1).copy()
    parameters[-1] += load
    for loaded, mass in ((robot, 0.0), (robot.with_parameters(parameters), 0.1)):
        time, command = commands(21)
        position = measure(loaded, truth(limit=30.0), time, command, step=STEP)
        payload = estimate_payload(
            result.model, [CommandedMotion.from_arrays(time, command, position)]
        )
        assert payload.mass == pytest.approx(mass, abs=0.02)
        assert payload.low <= mass <= payload.high


def taufit_command(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "taufit", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done


def test_commands_from_recording_to_simulator(tmp_path):
    files = []
    for seed in range(3):
        files.append(tmp_path / f"run_{seed}.parquet")
        write_recording(recording(seed, seconds=20.0), files[-1])
    model, page = tmp_path / "servo.json", tmp_path / "servo.html"
    done = taufit_command(
        "servo", "so101", *files[:2], "--holdout", files[2], "-o", model, "--report", page, "--json"
    )
    data = parse_output("servo", done.stdout)
    assert data["verdict"] == "PASS" and len(data["replay_rms"]) == 5
    assert {"file", "replay_rms", "mean_replay_rms", "command_rms", "nominal_rms"} <= set(
        data["holdout"][0]
    )
    assert {"name", "value", "low", "high", "unit"} <= set(data["parameters"][0])
    assert "replay error on hold-out runs" in page.read_text()
    copy = tmp_path / "copy.parquet"
    taufit_command("simulate", model, files[2], "-o", copy)
    check = parse_output("check", taufit_command("check", model, copy, "--json").stdout)
    # The copy is the model's own replay.
    assert check["files"][0]["mean_replay_rms"] < 1e-4
    export = taufit_command(
        *("export", model, "--format", "mjcf", "-o", tmp_path / "arm.xml"),
        *("--holdout", files[2], "--json"),
    )
    score = parse_output("export", export.stdout)["holdout"][0]
    assert score["mujoco_rms"] < score["unfiltered_rms"]
    assert "servo model" in taufit_command("contact", model, files[2], code=3).stderr
    mass = parse_output("payload", taufit_command("payload", model, files[2], "--json").stdout)[
        "mass"
    ]
    assert mass["low"] <= 0.0 <= mass["high"]
