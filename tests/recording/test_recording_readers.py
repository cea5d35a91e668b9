"""Files as other people's tools write them."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

from taufit.core.errors import MissingExtraError, RecordingError
from taufit.recording import read_recording, read_recordings

MAP = {
    "columns": {
        "time": "t",
        "position": "q_{joint}",
        "velocity": "dq_{joint}",
        "torque": "tau_{joint}",
    }
}


def motion(n=400, joints=6, rate=100.0):
    rng = np.random.default_rng(5)
    time = np.arange(n) / rate
    frequency = np.linspace(0.5, 2, joints)
    position = np.sin(time[:, None] * frequency)
    velocity = frequency * np.cos(time[:, None] * frequency)
    return time, position, velocity, rng.normal(size=(n, joints))


def assert_motion(recording, rate=100.0):
    time, position, velocity, signal = motion(joints=recording.joints, rate=rate)
    np.testing.assert_array_equal(recording.time, time)
    np.testing.assert_array_equal(recording.position, position)
    np.testing.assert_array_equal(recording.velocity, velocity)
    np.testing.assert_array_equal(recording.signal, signal)


@pytest.mark.parametrize("transposed", [False, True])
def test_npz_with_matrices(tmp_path, transposed):
    time, *rest = motion()
    q, dq, tau = (x.T if transposed else x for x in rest)
    np.savez(tmp_path / "run.npz", t=time, q=q, dq=dq, tau=tau, note=np.arange(3.0))
    recording = read_recording(tmp_path / "run.npz", column_map=MAP)
    assert_motion(recording)
    assert "unread_columns" in {finding.kind for finding in recording.findings}


def test_npz_that_would_run_code_is_refused(tmp_path):
    np.savez(tmp_path / "run.npz", t=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecordingError, match="npz"):
        read_recording(tmp_path / "run.npz", column_map=MAP)


def test_mat_file_with_a_structure(tmp_path):
    import scipy.io

    time, q, dq, tau = motion()
    content = {"log": {"t": time, "q": q, "dq": dq, "tau": tau}, "comment": "first run"}
    scipy.io.savemat(tmp_path / "run.mat", content)
    columns = {key: f"log.{name}" for key, name in MAP["columns"].items()}
    assert_motion(read_recording(tmp_path / "run.mat", column_map={"columns": columns}))


def test_mat_7_3_and_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    time, q, dq, tau = motion()
    for name, userblock in (("run.h5", 0), ("run.mat", 512)):
        with h5py.File(tmp_path / name, "w", userblock_size=userblock) as file:
            # MATLAB stores column-major: arrays come out transposed.
            for key, value in (("t", time[None]), ("q", q.T), ("dq", dq.T), ("tau", tau.T)):
                file[f"log/{key}"] = value
        columns = {key: f"log.{value}" for key, value in MAP["columns"].items()}
        assert_motion(read_recording(tmp_path / name, column_map={"columns": columns}))


def test_files_without_a_map_name_the_command_that_drafts_one(tmp_path):
    time, q, _, tau = motion()
    np.savez(tmp_path / "run.npz", t=time, q=q, tau=tau)
    with pytest.raises(RecordingError, match=r"taufit convert .*run\.npz --draft map\.yaml"):
        read_recording(tmp_path / "run.npz")


@pytest.mark.parametrize("delimiter", [" ", ","])
def test_ur_rtde_records_need_no_map(tmp_path, delimiter):
    time, q, dq, current = motion()
    names = ["timestamp"]
    for field in ("actual_q", "actual_qd", "actual_current", "target_current", "target_moment"):
        names += [f"{field}_{i}" for i in range(6)]
    names += ["payload"]
    rows = np.column_stack([time, q, dq, current, current * 2, current * 20, np.full(400, 1.5)])
    # ur-rtde samples a shared state, so rows come twice.
    rows = np.insert(rows, [50, 90], rows[[49, 89]], axis=0)
    lines = [delimiter.join(names), *(delimiter.join(map(repr, row)) for row in rows.tolist())]
    (tmp_path / "robot_data.csv").write_text("\n".join(lines) + "\n")
    recording = read_recording(tmp_path / "robot_data.csv")
    assert_motion(recording)
    assert recording.signal_unit == "A" and recording.meta["gains"] == "auto"
    assert recording.payload == 1.5
    np.testing.assert_array_equal(recording.target_torque, current * 20)
    (duplicates,) = [f for f in recording.findings if f.kind == "duplicates"]
    assert duplicates.rows == (51, 92)


@pytest.mark.parametrize("per_episode", [True, False], ids=["v2", "v3"])
def test_lerobot_episodes(tmp_path, per_episode):
    import pyarrow as pa
    import pyarrow.parquet as pq

    time, q, _, tau = motion()
    (tmp_path / "meta").mkdir()
    features = {"observation.state": {"dtype": "float32", "names": [f"m{i}" for i in range(6)]}}
    info = {"codebase_version": "v2.1", "robot_type": "so101", "fps": 100, "features": features}
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    episodes = [
        pa.table(
            {
                "observation.state": pa.array(list(q + k)),
                "observation.effort": pa.array(list(tau)),
                "timestamp": time,
                "episode_index": np.full(len(time), k),
                "task": ["pick"] * len(time),
            }
        )
        for k in range(2)
    ]
    folder = tmp_path / "data" / "chunk-000"
    folder.mkdir(parents=True)
    if per_episode:
        for k, table in enumerate(episodes):
            pq.write_table(table, folder / f"episode_{k:06d}.parquet")
    else:
        pq.write_table(pa.concat_tables(episodes), folder / "file-000.parquet")
    recordings = read_recordings(tmp_path)
    assert [r.meta["run"] for r in recordings] == [0, 1]
    np.testing.assert_array_equal(recordings[1].position, q + 1)
    np.testing.assert_array_equal(recordings[1].signal, tau)
    assert recordings[0].meta["joint_names"] == [f"m{i}" for i in range(6)]
    assert recordings[0].signal_unit == ""
    assert "units_assumed" in {f.kind for f in recordings[0].findings}
    columns = {
        "time": "timestamp",
        "position": {"columns": "observation.state_{joint}", "unit": "deg"},
        "current": "observation.effort_{joint}",
    }
    mapped = read_recording(tmp_path, column_map={"columns": columns}, run=1)
    np.testing.assert_allclose(mapped.position, np.radians(q + 1), rtol=1e-15)


def write_bag(path, messages, ros1=False):
    """Joint states written with rosbags alone; messages are (ns, names, q, dq, effort)."""
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin, Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    State = store.types["sensor_msgs/msg/JointState"]
    Header = store.types["std_msgs/msg/Header"]
    Time = store.types["builtin_interfaces/msg/Time"]
    if ros1:
        writer = Writer1(path)
    else:
        plugin = StoragePlugin.SQLITE3 if "db3" in path.name else StoragePlugin.MCAP
        writer = Writer2(path, version=8, storage_plugin=plugin)
    with writer:
        links = {}
        for topic, ns, names, q, dq, effort in messages:
            if topic not in links:
                links[topic] = writer.add_connection(topic, State.__msgtype__, typestore=store)
            stamp = Time(ns // 10**9, ns % 10**9)
            header = Header(0, stamp, "") if ros1 else Header(stamp, "")
            state = State(header, list(names), np.array(q), np.array(dq), np.array(effort))
            serialize = store.serialize_ros1 if ros1 else store.serialize_cdr
            writer.write(links[topic], ns, serialize(state, State.__msgtype__))


START = 1_700_000_000_000_000_000


def states(topic="/joint_states", names=("a", "b", "c", "d", "e", "f"), rate_ns=10_000_000):
    _, q, dq, tau = motion()
    return [
        (topic, START + k * rate_ns, names, *(x.tolist() for x in row))
        for k, row in enumerate(zip(q, dq, tau, strict=True))
    ]


def test_a_bag_whose_time_of_reception_is_text_names_the_message(tmp_path):
    folder = tmp_path / "bag_db3"
    write_bag(folder, states())
    with sqlite3.connect(next(folder.glob("*.db3"))) as database:
        database.execute("UPDATE messages SET timestamp = 'now' WHERE id = 2")
    with pytest.raises(RecordingError, match=r"joint state \d+ was received at 'now'"):
        read_recording(folder)


@pytest.mark.parametrize("form", ["bag.mcap", "bag_db3", "ros1.bag", "bag_dir"])
def test_bags_written_by_rosbags_alone_read_correctly(tmp_path, form):
    path = tmp_path / form
    if form == "bag.mcap":
        write_bag(tmp_path / "bag", states())
        (tmp_path / "bag" / "bag.mcap").rename(path)
    else:
        write_bag(path, states(), ros1=form == "ros1.bag")
    recording = read_recording(path, torque_kind="torque")
    assert_motion(recording)
    assert recording.meta["joint_names"] == ["a", "b", "c", "d", "e", "f"]
    assert recording.meta["start_time_ns"] == START
    assert recording.signal_unit == "N m"


def test_what_effort_means_is_never_assumed(tmp_path):
    write_bag(tmp_path / "bag", states())
    recording = read_recording(tmp_path / "bag")
    assert recording.signal_unit == "" and recording.gain is None
    assert "effort_unit" in {finding.kind for finding in recording.findings}
    assert read_recording(tmp_path / "bag", torque_kind="current").signal_unit == "A"
    with pytest.raises(RecordingError, match="torque, current, torque_without_gravity, raw"):
        read_recording(tmp_path / "bag", torque_kind="Nm")


def test_joints_are_found_by_name_whatever_their_place(tmp_path):
    """Half of the messages shuffled, a gripper publishing on the same topic."""
    messages = []
    for k, (topic, ns, names, q, dq, tau) in enumerate(states()):
        order = np.random.default_rng(k).permutation(6) if k % 2 else np.arange(6)
        messages.append(
            (topic, ns, [names[i] for i in order], *(np.array(x)[order] for x in (q, dq, tau)))
        )
        messages.append((topic, ns + 1000, ["finger"], [0.01], [0.0], [0.0]))
    write_bag(tmp_path / "bag", messages)
    columns = {"time": "time", "position": "position_{joint}", "velocity": "velocity_{joint}"}
    page = {"columns": {**columns, "torque": "effort_{joint}"}, "joint_names": list("abcdef")}
    recording = read_recording(tmp_path / "bag", column_map=page)
    assert_motion(recording)
    assert "other_joints" in {finding.kind for finding in recording.findings}
    backwards = read_recording(tmp_path / "bag", column_map={**page, "joint_names": list("fedcba")})
    np.testing.assert_array_equal(backwards.position, recording.position[:, ::-1])
    with pytest.raises(RecordingError, match=r"no joint wrist.*finger"):
        read_recording(tmp_path / "bag", column_map={**page, "joint_names": ["a", "wrist"]})


def test_several_joint_state_topics_must_be_chosen(tmp_path):
    messages = states() + states("/left/joint_states")
    messages.sort(key=lambda m: m[1])
    write_bag(tmp_path / "bag", messages)
    with pytest.raises(RecordingError, match="/left/joint_states"):
        read_recording(tmp_path / "bag")
    assert_motion(read_recording(tmp_path / "bag", topic="/left/joint_states"))


def test_alphabetical_joints_are_flagged(tmp_path):
    names = sorted(["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"])
    write_bag(tmp_path / "bag", states(names=names))
    assert "joint_order" in {f.kind for f in read_recording(tmp_path / "bag").findings}


@pytest.mark.parametrize(
    ("module", "name", "extra"), [("rosbags", "x.mcap", "ros"), ("h5py", "x.h5", "hdf5")]
)
def test_missing_extras_are_named(tmp_path, monkeypatch, module, name, extra):
    import sys

    for loaded in [m for m in sys.modules if m == module or m.startswith(module + ".")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(MissingExtraError, match=rf"taufit\[{extra}\]"):
        read_recording(tmp_path / name)
