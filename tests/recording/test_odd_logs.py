"""Logs in odd layouts: units below the names, joint names as text, two arms, relative torque."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.random_layouts import draw_truth

from taufit.core.errors import RecordingError
from taufit.recording import read_map, read_recordings, reorder_joints
from taufit.workflow.draft import draft_files

JOINTS = range(1, 7)


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(77)
    while (run := draw_truth(rng, seconds=6.0)[0]).robot.joints != 6:
        pass
    return run


def names(*stems, joints=JOINTS):
    return [stem.format(joint) for stem in stems for joint in joints]


def write(path, header, columns, *second_line):
    rows = [",".join(f"{x:.9g}" for x in row) for row in np.column_stack(columns)]
    path.write_text("\n".join([",".join(header), *second_line, *rows]) + "\n")
    return path


def drafted(path, robot):
    """Draft of a map for a file, and the recording read with it."""
    result = draft_files([path], robot=robot)
    (recording,) = read_recordings(path, column_map=read_map(result.draft.page))
    return result.draft, reorder_joints(recording, robot.joint_names, robot=robot.name)


@pytest.mark.parametrize(("unit", "size"), [("mNm", 1e3), ("Ncm", 1e2), ("kgcm", 1 / 0.0980665)])
@pytest.mark.parametrize("place", ["name", "line below the names"])
def test_the_unit_of_torque_is_read(tmp_path, truth, unit, size, place):
    columns = [truth.time, np.degrees(truth.position), size * truth.torque]
    if place == "name":
        header, line = ["time", *names("pos_deg_{}", f"torque_{unit}_{{}}")], ()
    else:
        header = ["time", *names("pos{}", "torque{}")]
        line = (",".join(["s", *["deg"] * 6, *[unit] * 6]),)
    _, recording = drafted(write(tmp_path / "log.csv", header, columns, *line), truth.robot)
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)


@pytest.mark.parametrize("stem", ["torque_permille_{}", "J{} Load [%]"])
def test_relative_torque_is_no_torque_in_newton_metre(tmp_path, truth, stem):
    header = ["time", *names("q{}", stem)]
    path = write(tmp_path / "log.csv", header, [truth.time, truth.position, 6.0 * truth.torque])
    draft, recording = drafted(path, truth.robot)
    assert draft.page["gains"] == "unknown" and recording.signal_unit != "N m"
    assert "relative to a rated one" in draft.open_questions[0]


def test_joint_names_in_text_columns_order_the_joints(tmp_path, truth):
    order = [2, 1, 0, 3, 4, 5]
    robot = replace(truth.robot)
    zero_based = range(6)
    header = ["time", *names("name{}", "position{}", "effort{}", joints=zero_based)]
    text = ",".join(robot.joint_names[j] for j in order)
    rows = [
        f"{t:.9g},{text}," + ",".join(f"{x:.9g}" for x in (*q[order], *tau[order]))
        for t, q, tau in zip(truth.time, truth.position, truth.torque, strict=True)
    ]
    (tmp_path / "js.csv").write_text("\n".join([",".join(header), *rows]) + "\n")
    _, recording = drafted(tmp_path / "js.csv", robot)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)


def test_position_and_torque_are_of_one_arm_and_the_other_is_named(tmp_path, truth):
    header = ["time", *names("right_q{}", "left_q{}", "left_tau{}", "right_tau{}")]
    q, tau = truth.position, truth.torque
    path = write(tmp_path / "log.csv", header, [truth.time, q, q[::-1], tau[::-1], tau])
    draft, recording = drafted(path, truth.robot)
    np.testing.assert_allclose(recording.signal, tau, atol=1e-5)
    assert "right_q1 and in left_q1" in draft.open_questions[0]


def test_a_standing_axis_before_the_arm_is_left_out(tmp_path, truth):
    still = np.zeros(len(truth.time))
    header = ["time", *names("q{}", joints=range(7)), *names("tau{}", joints=range(7))]
    columns = [truth.time, still, truth.position, still, truth.torque]
    _, recording = drafted(write(tmp_path / "log.csv", header, columns), truth.robot)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)


def test_two_lines_of_names_are_read(tmp_path, truth):
    header = ["time", *["position"] * 6, *["torque"] * 6]
    second = ",".join(["", *map(str, [*JOINTS, *JOINTS])])
    columns = [truth.time, truth.position, truth.torque]
    draft, _ = drafted(write(tmp_path / "log.csv", header, columns, second), truth.robot)
    assert draft.page["columns"]["position"] == "position_{joint}"


def test_a_row_for_every_joint_is_refused_by_name(tmp_path, truth):
    time = np.repeat(truth.time[:200], 6)
    columns = [time, truth.position[:200].ravel(), truth.torque[:200].ravel()]
    path = write(tmp_path / "long.csv", ["time", "position", "effort"], columns)
    with pytest.raises(RecordingError, match="a row for every joint"):
        draft_files([path], robot=truth.robot)


def test_commands_beside_unsigned_current_lead_to_the_servo_verb(tmp_path, truth):
    from taufit.cli.parts.map_draft import _fit_command

    header = ["t", *names("q{}", "cur{}", "cmd{}")]
    columns = [truth.time, truth.position, np.abs(truth.torque), truth.position + 0.01]
    path = write(tmp_path / "log.csv", header, columns)
    result = draft_files([path], robot=truth.robot)
    assert result.draft.page["columns"]["commanded_position"] == names("cmd{}")
    assert _fit_command(result, "arm", tmp_path / "map.yaml", None, None)[0] == "servo"
    # Torque commands have the same words.
    columns[-1] = 30.0 * truth.torque
    result = draft_files([write(path, header, columns)], robot=truth.robot)
    assert "commanded_position" not in result.draft.page["columns"]
    assert _fit_command(result, "arm", tmp_path / "map.yaml", None, None)[0] == "fit"
