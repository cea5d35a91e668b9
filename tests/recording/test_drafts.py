"""Drafted column maps read the file as a map written by hand would, without an edit."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.layouts import LAYOUTS, sines

from taufit.cli.app import main
from taufit.core.errors import RecordingError
from taufit.dynamics import gravity_torque, inverse_dynamics
from taufit.recording import (
    crop,
    read_map,
    read_recording,
    read_recordings,
    reorder_joints,
    split,
    tail,
)
from taufit.recording.draft import draft_map, draft_text
from taufit.recording.loggers import LOGGERS, logger_map
from taufit.recording.read import read_table
from taufit.recording.table import Table
from taufit.robot import read_robot

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture(scope="module")
def run():
    """A UR5e that follows sums of sines: time, position, velocity, torque."""
    return sines()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("told", [True, False], ids=["robot", "alone"])
def test_a_draft_reads_every_layout_as_it_was_meant(layout, told, tmp_path, run):
    time, q, v, tau = run
    path = LAYOUTS[layout](tmp_path, run)
    robot = read_robot("ur5e")
    known = (
        {
            "joints": 6,
            "joint_names": robot.joint_names,
            "gravity": lambda position: gravity_torque(robot, position),
        }
        if told
        else {}
    )
    table = read_table(path)
    if table is None:
        read = read_recording(path)
    else:
        draft = draft_map(table, **known)
        (tmp_path / "map.yaml").write_text(draft_text(draft, path.name))
        read = read_recording(path, column_map=tmp_path / "map.yaml")
    np.testing.assert_allclose(read.time - read.time[0], time, atol=2e-6)
    # A commanded position within a milliradian is as good as the measured one.
    np.testing.assert_allclose(read.position, q, atol=2e-3)
    np.testing.assert_allclose(read.signal, tau, atol=1e-9)
    assert read.signal_unit == "N m"
    if read.velocity is not None:
        np.testing.assert_allclose(read.velocity, v, atol=1e-9)
    assert (read.velocity is None) == ("no_velocity" in layout)


def test_a_robot_named_before_every_joint_is_no_joint(tmp_path, run):
    """HDF5 groups robot/joint/quantity: the digits of ur5e and wrist_1 number no joints."""
    import h5py

    time, *parts = run
    robot = read_robot("ur5e")
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for k, joint in enumerate(robot.joint_names):
            for name, part in zip(("pos", "vel", "torque"), parts, strict=True):
                file[f"ur5e/{joint.removesuffix('_joint')}/{name}"] = part[:, k]
        file["ur5e/stamps"] = time
    draft = draft_map(read_table(tmp_path / "log.h5"), joints=6, joint_names=robot.joint_names)
    assert draft.page["columns"]["time"] == "ur5e.stamps"
    (tmp_path / "map.yaml").write_text(draft_text(draft, "log.h5"))
    read = read_recording(tmp_path / "log.h5", column_map=tmp_path / "map.yaml")
    ordered = reorder_joints(read, robot.joint_names)
    for values, part in zip(
        (ordered.position, ordered.velocity, ordered.signal), parts, strict=True
    ):
        np.testing.assert_allclose(values, part, atol=1e-9)


def _draft_of(names, columns):
    table = Table("log.csv", tuple(names), np.column_stack(columns), np.arange(len(columns[0])))
    return draft_map(table, joints=6).page


def test_names_of_the_robot_sensor_interface_are_known(run):
    time, q, _, tau = run
    names = ["IPOC"] + [f"{word}.A{k}" for word in ("AIPos", "ASPos", "MACur") for k in range(1, 7)]
    degrees = np.rad2deg(q)
    page = _draft_of(names, [np.round(1000.0 * time), degrees, degrees + 0.01, tau / 10.0])
    assert page["columns"] == {
        "time": {"columns": "IPOC", "unit": "ms"},
        "position": {"columns": "AIPos.A{joint}", "unit": "deg"},
        "current": "MACur.A{joint}",
        "commanded_position": {"columns": "ASPos.A{joint}", "unit": "deg"},
    }


def test_a_moment_is_known_behind_the_number_of_its_joint(run):
    time, q, v, tau = run
    names = [f"[{k}].{word}" for k in range(1, 7) for word in ("t", "phi", "omega", "M")]
    blocks = [np.column_stack([time, q[:, k], v[:, k], tau[:, k]]) for k in range(6)]
    assert _draft_of(names, blocks)["columns"]["torque"] == "[{joint}].M"


def test_a_table_without_torque_is_refused_with_what_to_do(run):
    time, q, _, _ = run
    table = Table.from_columns("x.csv", {"t": time, **{f"q{i + 1}": q[:, i] for i in range(6)}})
    with pytest.raises(RecordingError, match="no torque or current can be recognised"):
        draft_map(table)


SHARED_MAPS = [
    ("ur10e/identification_data/ur-20_02_10-20sec_7harm.csv.gz", "ur10e_csv", "ur10e"),
    ("panda/panda_exciting_traj1_part1.csv.gz", "panda_csv", "panda"),
    ("kuka_lwr4/lwr4_run1.csv.gz", "lwr4_csv", None),
    ("kuka_kr300/kr300_runA.csv.gz", "kr300_csv", None),
    ("schunk_6dof/schunk_runs_001_070.csv.gz", "schunk_csv", None),
]


@pytest.mark.parametrize(("file", "by_hand", "robot"), SHARED_MAPS)
def test_drafts_of_shared_recordings_equal_the_maps_written_by_hand(file, by_hand, robot):
    path = SHARED / file
    if not path.exists():
        pytest.skip("the shared recordings are not here")
    known = {}
    if robot is not None:
        arm = read_robot(robot)
        known = {"joints": arm.joints, "gravity": lambda position: gravity_torque(arm, position)}
    drafted = read_recordings(path, column_map=read_map(draft_map(read_table(path), **known).page))
    expected = read_recordings(path, column_map=by_hand)
    assert len(drafted) == len(expected)
    for one, other in zip(drafted[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(one.time, other.time)
        np.testing.assert_array_equal(one.position, other.position)
        np.testing.assert_array_equal(one.signal, other.signal)
        assert one.signal_unit == other.signal_unit
        assert one.meta.get("gains") == other.meta.get("gains")


def test_the_command_writes_a_map_and_names_the_next_command(tmp_path, run, capsys):
    path = LAYOUTS["headerless"](tmp_path, run)
    out = tmp_path / "map.yaml"
    with pytest.raises(SystemExit) as exit_:
        main(["convert", str(path), "--draft", str(out), "--robot", "ur5e", "--json"])
    assert not exit_.value.code
    page = json.loads(capsys.readouterr().out)
    assert page["joints"] == 6 and page["map"]["columns"]["position"] == "2-7"
    assert page["next"].startswith("taufit fit ur5e ") and "--map" in page["next"]
    assert read_recording(path, column_map=out).joints == 6


def test_every_shipped_logger_is_recognised_by_its_own_columns():
    for name in LOGGERS:
        column_map = read_map(name)
        names = ["other"]
        for entry in column_map.columns:
            if entry.optional:
                continue
            key = str(entry.keys[0])
            joints = range(6) if "{" in key else [None]
            names += [key if j is None else key.format(joint=j + 1, joint0=j) for j in joints]
        table = Table("log.csv", tuple(names), np.zeros((2, len(names))), np.arange(2))
        found = logger_map(table)
        assert found is not None and found.source.endswith(f"{name}.yaml")


def test_a_share_kept_out_ends_the_recording_and_leaves_a_gap(tmp_path, run):
    path = LAYOUTS["one_based"](tmp_path, run)
    read = read_recording(
        path,
        column_map={"columns": {"time": "t", "position": "q{joint}", "torque": "tau{joint}"}},
    )
    first, last = split(read, 0.3)
    total = read.time[-1] - read.time[0]
    assert last.time[-1] == read.time[-1] and first.time[0] == read.time[0]
    assert np.isclose(last.time[-1] - last.time[0], 0.3 * total, atol=0.02)
    assert last.time[0] - first.time[-1] >= 0.49
    whole = tail(read, 0.3)
    assert len(whole) == len(read) and whole.name == last.name
    assert whole.meta["counted_s"][0] == last.time[0] - read.time[0]
    part = crop(read, 2.0, 5.0)
    assert part.time[0] - read.time[0] >= 2.0 and part.time[-1] - read.time[0] <= 5.0
    with pytest.raises(RecordingError, match="nothing from 30 to 40 s"):
        crop(read, 30.0, 40.0)
    for share in (0.0, 1.0, -0.2):
        with pytest.raises(RecordingError, match="between 0 and 100"):
            split(read, share)


@pytest.mark.parametrize(
    ("effort", "unit", "removed"),
    [("torque", "N m", None), ("current", "A", None), ("torque_without_gravity", "N m", True)],
)
def test_effort_declares_any_recording(tmp_path, run, effort, unit, removed):
    path = LAYOUTS["one_based"](tmp_path, run)
    columns = {"time": "t", "position": "q{joint}", "torque": "tau{joint}"}
    read = read_recording(path, column_map={"columns": columns}, torque_kind=effort)
    assert read.signal_unit == unit and read.meta.get("gravity_removed") == removed
    assert (read.gain is None) == (effort == "current")


def resting(run, moving):
    """A UR5e of which only some joints move; target current and torque are logged as well."""
    robot, (time, q, v, _) = read_robot("ur5e"), run
    rng = np.random.default_rng(5)
    shown = np.isin(np.arange(6), moving)
    q = np.where(shown, q, q[0]) + rng.normal(0.0, 1e-5, q.shape)
    v = np.where(shown, v, 0.0)
    target = inverse_dynamics(robot, q, v, 0 * v)
    current = target / 10.0 + 0.3 * np.tanh(v / 0.02) + rng.normal(0.0, 0.05, q.shape)
    return np.hstack([time[:, None], q, v, current, target / 10.0, target]), robot


@pytest.mark.parametrize("moving", [[], [1], [2], [4, 5]])
def test_an_arm_that_rests_is_drafted_with_its_robot(run, moving):
    values, robot = resting(run, moving)
    table = Table("log.csv", ("",) * 31, values, np.arange(len(values)))
    draft = draft_map(table, joints=6, gravity=lambda q: gravity_torque(robot, q))
    columns = draft.page["columns"]
    assert columns["time"] == 1 and columns["position"] == "2-7" and columns["velocity"] == "8-13"
    assert columns["current"] == "14-19" and columns["target_current"] == "20-25"
    assert columns["target_torque"] == "26-31" and draft.page["gains"] == "auto"


@pytest.mark.parametrize("moving", [(4,), (4, 5)])
def test_standing_joints_of_an_unknown_robot_are_drafted(run, moving):
    """Blocks are as long as the way from a position to its velocity; other joints stand."""
    time, q, v, tau = run
    rests = [j for j in range(6) if j not in moving]
    q, v = q.copy(), v.copy()
    q[:, rests], v[:, rests] = q[0, rests], 0.0
    columns = draft_map(nameless(np.column_stack([time, q, v, tau]))).page["columns"]
    assert (columns["position"], columns["velocity"], columns["torque"]) == ("2-7", "8-13", "14-19")


def test_blocks_with_a_column_that_moves_alone_are_not_drafted(run):
    time, q, v, tau = run
    values = np.column_stack([time, np.tile(q[0], (len(q), 1)), 0.0 * v, tau])
    values[:, [2, 8]] = np.column_stack([q[:, 1], v[:, 1]])
    values[:, 9] = np.sin(3.0 * time)
    with pytest.raises(RecordingError, match="--robot ROBOT"):
        draft_map(nameless(values))


def test_a_log_without_motion_asks_for_its_robot(run):
    time, q, v, tau = run
    still = np.column_stack([time, np.tile(q[0], (len(q), 1)), 0.0 * v, tau])
    with pytest.raises(RecordingError, match="--robot ROBOT"):
        draft_map(nameless(still))


def nameless(values):
    return Table("log.csv", ("",) * values.shape[1], values, np.arange(len(values)))


def test_impossible_rows_do_not_spoil_a_draft(run):
    values = np.hstack([run[0][:, None], *run[1:]])
    rng = np.random.default_rng(1)
    for row in (7, 9, 12):
        values[row, 1:] = 10.0 ** rng.uniform(20, 290, values.shape[1] - 1)
    table = Table("log.csv", ("",) * 19, values, np.arange(len(values)))
    columns = draft_map(table, joints=6).page["columns"]
    assert columns == {"time": 1, "position": "2-7", "velocity": "8-13", "torque": "14-19"}


def test_numbers_of_another_count_of_joints_are_told(run):
    values = np.hstack([run[0][:, None], *(part[:, :4] for part in run[1:])])
    table = Table("log.csv", ("",) * 13, values, np.arange(len(values)))
    robot = read_robot("panda")
    with pytest.raises(RecordingError, match="joints"):
        draft_map(table, joints=7, gravity=lambda q: gravity_torque(robot, q))


def test_every_shared_run_of_the_ur10e_is_drafted_alike():
    files = sorted((SHARED / "ur10e").rglob("*.csv.gz"))
    if not files:
        pytest.skip("needs the shared recordings")
    robot = read_robot("ur10e")
    for file in files:
        table = read_table(file)
        page = draft_map(table, joints=6, gravity=lambda q: gravity_torque(robot, q)).page
        want = {"time": 1, "position": "2-7", "velocity": "8-13", "current": "14-19"}
        if len(table.names) == 31:
            want |= {"target_current": "20-25", "target_torque": "26-31"}
        assert page["columns"] == want, file.name
