"""Recordings that contradict the robot are refused by name; ignored, they end in a FAIL."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.clean_runs import SHARED, clean_run
from benchmarks.shared_arms import med7_recording, recorded_arm

import taufit
from taufit.cli import main
from taufit.diagnosis import ContradictionError
from taufit.recording import write_recording


def all_signs(recording):
    return replace(recording, signal=-recording.signal)


def millinewton(recording):
    return replace(recording, signal=1000.0 * recording.signal)


def joint_zero(recording):
    offset = np.eye(recording.joints)[1] * np.radians(60.0)
    return replace(recording, position=recording.position + offset)


def shuffled_torque(recording):
    order = np.random.default_rng(1).permutation(len(recording))
    # Slow noise, so that the torque still counts as measured.
    signal = np.repeat(recording.signal[order[::100]], 100, axis=0)[: len(recording)]
    return replace(recording, signal=signal)


FAULTS = {
    all_signs: "every joint has the other sign",
    millinewton: "mN m",
    joint_zero: "zero of joint 2",
    shuffled_torque: "does not explain these torques",
}


@pytest.mark.parametrize("fault", [all_signs, shuffled_torque], ids=lambda fault: fault.__name__)
def test_a_refused_recording_gives_a_fail_with_table_and_report(fault, tmp_path, capsys):
    _, recording = clean_run("ur3e", 1)
    recording = replace(fault(recording), meta={"name": "run"})
    write_recording(recording, tmp_path / "run.parquet")
    command = ["fit", "ur3e", tmp_path / "run.parquet", "--friction", "linear",
               "-o", tmp_path / "model.json", "--json"]  # fmt: skip
    code, _, words = run(capsys, *command)
    assert code == 3 and FAULTS[fault] in " ".join(words.split())
    assert not (tmp_path / "model.json").exists()
    report = tmp_path / "report.html"
    code, page, _ = run(capsys, *command, "--ignore-contradictions", "--report", report)
    assert code == 0 and page["verdict"] == "FAIL" and page["grade"] == "poor"
    assert len(page["grades"]) == 6 and np.isfinite(page["unexplained"])
    assert "FAIL (poor)" in report.read_text()
    assert taufit.read_model(tmp_path / "model.json").training.accuracy.word == "poor"


@pytest.mark.parametrize("fault", [millinewton, joint_zero], ids=lambda fault: fault.__name__)
def test_a_refused_recording_fails_in_python_as_well(fault):
    robot, recording = clean_run("ur3e", 1)
    with pytest.raises(ContradictionError, match=FAULTS[fault]):
        taufit.identify(robot, [fault(recording)], friction="linear")
    result = taufit.identify(
        robot, [fault(recording)], friction="linear", ignore_contradictions=True
    )
    assert result.grades.overall == "poor" and len(result.grades.joints) == 6


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    page = json.loads(printed.out) if printed.out.startswith("{") else {}
    return stop.value.code or 0, page, printed.out + printed.err


@pytest.mark.skipif(not SHARED.exists(), reason="shared recording so101 is not here")
def test_unsigned_current_taken_for_torque_never_passes():
    arm = recorded_arm("so101")
    words = r"no torque is ever negative.*\(sign not checked\)"
    with pytest.raises(ContradictionError, match=words):
        taufit.identify(arm.robot, arm.training, cutoff_hz=5.0, friction="linear")
    forced = taufit.identify(
        arm.robot, arm.training, cutoff_hz=5.0, friction="linear", ignore_contradictions=True
    )
    assert forced.grades.overall == "poor"


@pytest.mark.skipif(not SHARED.exists(), reason="shared recording kuka_med7 is not here")
def test_reversed_torque_of_a_real_arm_gives_a_map_entry_that_corrects_it():
    robot = taufit.read_robot(SHARED / "kuka_med7" / "med7dock.urdf")
    with pytest.raises(ContradictionError) as error:
        taufit.identify(robot, [med7_recording()], friction="linear")
    (finding,) = error.value.findings
    assert finding.kind == "torque_sign" and "joint 2, 3, 4" in finding.message
    (sign,) = {edit.value for edit in finding.remedy.edits if edit.key == "sign"}
    corrected = replace(med7_recording(), signal=med7_recording().signal * np.array(sign))
    assert taufit.identify(robot, [corrected], friction="linear").grades.overall != "poor"
    forced = taufit.identify(
        robot, [med7_recording()], friction="linear", ignore_contradictions=True
    )
    assert forced.grades.overall == "poor"


def test_two_dead_channels_are_named_and_the_others_fitted():
    robot, recording = clean_run("ur3e", 1)
    signal = recording.signal.copy()
    signal[:, 1], signal[:, 4] = 0.0, 3.5
    result = taufit.identify(robot, [replace(recording, signal=signal)], friction="linear")
    texts = " ".join([*map(str, result.findings), *result.warnings])
    assert "torque of joint 2 is 0 throughout" in texts
    assert "torque of joint 5 is 3.5 throughout" in texts
    assert list(np.isfinite(result.training_score.nrmse)) == [True, False, True, True, False, True]
    assert result.training_score.mean_nrmse < 0.2
