"""Logs in odd layouts: units below the names, joint names as text, two arms, relative torque."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.random_layouts import draw_truth

from taufit.core.errors import RecordingError
from taufit.diagnosis.diagnose import _invalid_row_causes
from taufit.diagnosis.prepare import apply_declared_torque_kind
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
    draft, recording = drafted(write(tmp_path / "log.csv", header, columns, *line), truth.robot)
    (reason,) = (text for text in draft.reasons if "times gravity" in text)
    assert 0.5 < float(reason.split("is ")[1].split(" times")[0]) < 2.0
    assert not draft.contradicts_gravity
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)


@pytest.mark.parametrize("stem", ["torque_permille_{}", "J{} Load [%]"])
def test_relative_torque_is_no_torque_in_newton_metre(tmp_path, truth, stem):
    header = ["time", *names("q{}", stem)]
    path = write(tmp_path / "log.csv", header, [truth.time, truth.position, 6.0 * truth.torque])
    draft, recording = drafted(path, truth.robot)
    assert draft.page["gains"] == "unknown" and recording.signal_unit != "N m"
    assert "relative to a rated one" in draft.open_questions[0]
    (prepared,), (finding,) = apply_declared_torque_kind(truth.robot, [recording])
    assert "in the signal's unit" in finding.message
    # The nominal robot's scale; one factor for all joints was recorded.
    np.testing.assert_allclose(prepared.gain, 1.0 / 6.0, rtol=0.1)


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


def listed(values, opening="[", separator=", "):
    closing = {"[": "]", "(": ")"}[opening]
    return opening + separator.join(f"{x:.9g}" for x in values) + closing


@pytest.mark.parametrize("form", ['"{}"', "{}"])
@pytest.mark.parametrize(("opening", "separator"), [("[", ", "), ("[", " "), ("(", ", ")])
def test_lists_in_cells_are_one_column_per_number(tmp_path, truth, form, opening, separator):
    delimiter = "," if form != "{}" or separator == " " else ";"
    cells = (
        [f"{t:.9g}", *(form.format(listed(x, opening, separator)) for x in (q, tau)), "AUTO"]
        for t, q, tau in zip(truth.time, truth.position, truth.torque, strict=True)
    )
    lines = [["stamp", "positions", "efforts", "mode"], *cells]
    (tmp_path / "log.csv").write_text("\n".join(delimiter.join(line) for line in lines) + "\n")
    _, recording = drafted(tmp_path / "log.csv", truth.robot)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)


@pytest.mark.parametrize("frame", ["", "base_link"])
def test_printed_joint_states_are_read_without_a_header(tmp_path, truth, frame):
    order = [2, 1, 0, 3, 5, 4]
    text = ",".join(truth.robot.joint_names[j] for j in order)
    rows = zip(truth.time, truth.position, truth.velocity, truth.torque, strict=True)
    lines = (
        f"{1_700_000_000 + int(t)},{round(1e9 * (t % 1))},{frame},{text},"
        + ",".join(f"{x:.9g}" for values in row for x in values[order])
        for t, *row in rows
    )
    (tmp_path / "echo.csv").write_text("\n".join(lines) + "\n")
    _, recording = drafted(tmp_path / "echo.csv", truth.robot)
    np.testing.assert_allclose(recording.time - recording.time[0], truth.time, atol=1e-6)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)


def test_seconds_and_nanoseconds_are_one_time(tmp_path, truth):
    header = ["header.seq", "header.stamp.secs", "header.stamp.nsecs", *names("q{}", "tau{}")]
    rows = (
        f"{i},{1_700_000_000 + int(t)},{round(1e9 * (t % 1))},"
        + ",".join(f"{x:.9g}" for x in (*q, *tau))
        for i, (t, q, tau) in enumerate(zip(truth.time, truth.position, truth.torque, strict=True))
    )
    (tmp_path / "log.csv").write_text("\n".join([",".join(header), *rows]) + "\n")
    _, recording = drafted(tmp_path / "log.csv", truth.robot)
    np.testing.assert_allclose(recording.time - recording.time[0], truth.time, atol=1e-6)


@pytest.mark.parametrize("delay_s", [0.0, 0.003])
def test_topics_of_one_table_are_read_at_the_rows_of_the_positions(tmp_path, truth, delay_s):
    header = ["__time", *names("/js/q{}", "/js/tau{}"), "/imu/x"]
    empty = [""] * 6
    rows = {}
    for t, q, tau in zip(truth.time, truth.position, truth.torque, strict=True):
        q, tau = ([f"{x:.9g}" for x in values] for values in (q, tau))
        rows[t] = [*q, *(empty if delay_s else tau), ""]
        if delay_s:
            rows[t + delay_s] = [*empty, *tau, ""]
        rows |= {t + 0.001 + 0.0005 * k: [*empty, *empty, "0.1"] for k in range(3)}
    lines = [header, *([f"{t:.6f}", *rows[t]] for t in sorted(rows))]
    path = tmp_path / "topics.csv"
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")
    _, recording = drafted(path, truth.robot)
    assert "merged_topics" in {finding.kind for finding in recording.findings}
    first = 1 if delay_s else 0
    np.testing.assert_allclose(recording.position, truth.position[first:], atol=1e-6)
    later = truth.time[first:] - delay_s
    expected = [np.interp(later, truth.time, tau) for tau in truth.torque.T]
    np.testing.assert_allclose(recording.signal, np.transpose(expected), atol=1e-4)


def test_empty_cells_beside_text_are_damage(tmp_path, truth):
    header = ["time", *names("q{}", "tau{}")]
    path = write(tmp_path / "log.csv", header, [truth.time, truth.position, truth.torque])
    lines = path.read_text().split("\n")
    lines[2::3] = [line.split(",")[0] + ",error" * 12 for line in lines[2::3] if line]
    path.write_text("\n".join(lines))
    with pytest.raises(RecordingError, match="no usable numbers"):
        drafted(path, truth.robot)


def test_a_gripper_among_printed_joint_states_is_left_out_by_its_name(tmp_path, truth):
    """ros2 topic echo --csv: names as text, the gripper's between those of the arm."""
    joints = [*truth.robot.joint_names[:2], "gripper", *truth.robot.joint_names[2:]]
    rows = (
        f"{1_700_000_000 + int(t)},{round(1e9 * (t % 1))},,{','.join(joints)},"
        + ",".join(f"{x:.9g}" for values in row for x in np.insert(values, 2, 0.02))
        for t, *row in zip(truth.time, truth.position, truth.velocity, truth.torque, strict=True)
    )
    (tmp_path / "echo.csv").write_text("\n".join(rows) + "\n")
    draft, recording = drafted(tmp_path / "echo.csv", truth.robot)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)
    assert any("position2 is none of the robot's joints" in text for text in draft.open_questions)
    # A map without names of its own keeps none that are not those of its columns.
    page = {key: value for key, value in draft.page.items() if key != "joint_names"}
    (nameless,) = read_recordings(tmp_path / "echo.csv", column_map=read_map(page))
    assert "joint_names" not in nameless.meta


@pytest.mark.parametrize("robot_known", [True, False])
def test_a_counter_beside_the_time_is_no_joint(tmp_path, truth, robot_known):
    counter = 770 + np.arange(len(truth.time))
    columns = [truth.time, counter, np.degrees(truth.position), truth.torque]
    path = tmp_path / "log.txt"
    np.savetxt(path, np.column_stack(columns), "%.9g")
    draft = draft_files([path], robot=truth.robot if robot_known else None).draft
    assert draft.page["columns"]["position"] == {"columns": "3-8", "unit": "deg"}
    assert "9-14" in draft.page["columns"].values()


def test_names_with_their_unit_in_brackets_are_joints(tmp_path, truth):
    header = ["Sample", "Time(s)", *names("J{}(deg)", "J{} Trq(Nm)", "J{} TrqCmd(Nm)")]
    columns = [np.arange(len(truth.time)), truth.time, np.degrees(truth.position)]
    path = write(tmp_path / "trace.csv", header, [*columns, truth.torque, 1.01 * truth.torque])
    _, recording = drafted(path, truth.robot)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)
    np.testing.assert_allclose(recording.signal, truth.torque, atol=1e-5)


def test_structured_arrays_are_read(tmp_path, truth):
    kinds = [("t", float), ("pos", float, 6), ("trq", float, 6)]
    rows = zip(truth.time, truth.position, truth.torque, strict=True)
    np.savez(tmp_path / "log.npz", log=np.array(list(rows), kinds))
    _, recording = drafted(tmp_path / "log.npz", truth.robot)
    np.testing.assert_allclose(recording.position, truth.position)
    np.testing.assert_allclose(recording.signal, truth.torque)


@pytest.mark.parametrize(("place", "severity"), [(0, "warning"), (100, "error")])
def test_rows_before_the_first_valid_one_are_left_out(tmp_path, truth, place, severity):
    """A logger that starts before the robot sends."""
    header = ["t", *names("q{}", "tau{}")]
    path = write(tmp_path / "log.csv", header, [truth.time, truth.position, truth.torque])
    lines = path.read_text().splitlines()
    lines[place + 1 : place + 1] = [",".join(["nan"] * 13)] * (len(truth.time) // 20)
    path.write_text("\n".join(lines) + "\n")
    _, recording = drafted(path, truth.robot)
    np.testing.assert_allclose(recording.position, truth.position, atol=1e-6)
    (cause,) = _invalid_row_causes([recording])
    assert cause.finding.severity == severity


def test_words_that_all_files_of_a_run_begin_with_say_nothing(tmp_path, truth):
    """c_pos.csv, c_tau.csv: c is the run's name, not that of commanded values."""
    header = ["time", *names("joint{}")]
    parts = {"c_pos.csv": truth.position, "c_tau.csv": truth.torque}
    paths = [write(tmp_path / n, header, [truth.time, part]) for n, part in parts.items()]
    page = draft_files(paths, robot=truth.robot).draft.page
    assert page["columns"]["position"]["file"] == "c_pos.csv"
    assert page["columns"]["torque"]["file"] == "c_tau.csv"
