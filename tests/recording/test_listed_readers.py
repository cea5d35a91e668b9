"""Laws over `READERS`: an ending is tested by being listed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.recording import Recording, RecordingWriter, read_recording, write_recording
from taufit.recording.read import READERS
from taufit.recording.writers.to_text import write_csv

JOINTS, ROWS = 3, 400
MAP = {"columns": {"time": "time", "position": "position_{joint}", "torque": "torque_{joint}"}}


def recording() -> Recording:
    rng = np.random.default_rng(3)
    time = np.arange(ROWS) / 100.0
    phase = np.arange(JOINTS) + time[:, None]
    return Recording(time, np.sin(phase), np.cos(phase) + rng.normal(scale=0.01, size=phase.shape))


def columns() -> dict[str, np.ndarray]:
    one = recording()
    return {
        "time": one.time,
        **{f"position_{j + 1}": one.position[:, j] for j in range(JOINTS)},
        **{f"torque_{j + 1}": one.signal[:, j] for j in range(JOINTS)},
    }


def as_text(path: Path) -> Path:
    write_csv(recording(), path)
    return path


def as_is(path: Path) -> Path:
    write_recording(recording(), path)
    return path


def as_mat(path: Path) -> Path:
    import scipy.io

    scipy.io.savemat(path, columns())
    return path


def as_hdf5(path: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, values in columns().items():
            file[name] = values
    return path


def as_npy(path: Path) -> Path:
    fields = columns()
    table = np.zeros(ROWS, [(name, float) for name in fields])
    for name, values in fields.items():
        table[name] = values
    np.save(path, table)
    return path


def as_live(path: Path) -> Path:
    one = recording()
    writer = RecordingWriter(path.with_suffix(".parquet"), joints=JOINTS, fields=())
    for k in range(ROWS):
        writer.append(one.time[k], one.position[k], one.signal[k])
    writer.flush()
    return writer.live_path


def as_bag1(path: Path) -> Path:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    _joint_states(Writer(path), get_typestore(Stores.ROS1_NOETIC), ros1=True)
    return path


def as_db3(path: Path) -> Path:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    folder = path.with_suffix("")
    writer = Writer(folder, version=8, storage_plugin=StoragePlugin.SQLITE3)
    _joint_states(writer, get_typestore(Stores.ROS2_HUMBLE), ros1=False)
    return next(folder.glob("*.db3"))


def _joint_states(writer, store, *, ros1: bool) -> None:
    types = store.types
    state = types["sensor_msgs/msg/JointState"]
    header, stamp = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    one = recording()
    names = [f"joint_{j + 1}" for j in range(JOINTS)]
    with writer as bag:
        link = bag.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        for k, t in enumerate(one.time):
            at = round((1.0 + t) * 1e9)
            seconds = stamp(sec=at // 10**9, nanosec=at % 10**9)
            first = {"seq": k} if ros1 else {}
            message = state(
                header=header(stamp=seconds, frame_id="", **first),
                name=names,
                position=one.position[k],
                velocity=np.zeros(0),
                effort=one.signal[k],
            )
            pack = store.serialize_ros1 if ros1 else store.serialize_cdr
            bag.write(link, at, pack(message, state.__msgtype__))


# How a file with each ending comes about. A reader without an entry here fails the first law.
MAKERS = {
    ".parquet": as_is,
    ".csv": as_is,
    ".tsv": as_is,
    ".txt": as_text,
    ".dat": as_text,
    ".log": as_text,
    ".npz": as_is,
    ".npy": as_npy,
    ".mat": as_mat,
    ".h5": as_hdf5,
    ".hdf5": as_hdf5,
    ".mcap": as_is,
    ".bag": as_bag1,
    ".db3": as_db3,
    ".live": as_live,
}


def test_every_reader_has_a_maker():
    assert MAKERS.keys() == READERS.keys()


@pytest.mark.parametrize("ending", READERS)
def test_a_file_reads_back_to_what_was_recorded(ending, tmp_path):
    path = MAKERS[ending](tmp_path / f"run{ending}")
    bag = ending in (".bag", ".db3")
    needs_map = ending in (".mat", ".h5", ".hdf5", ".npy")
    options = {"torque_kind": "torque"} if bag else {"column_map": MAP} if needs_map else {}
    found = read_recording(path, **options)
    want = recording()
    assert found.joints == JOINTS and len(found) == ROWS
    np.testing.assert_allclose(np.diff(found.time), np.diff(want.time), atol=1e-8)
    np.testing.assert_allclose(found.position, want.position, atol=1e-12)
    np.testing.assert_allclose(found.signal, want.signal, atol=1e-12)


@pytest.mark.parametrize("ending", READERS)
@pytest.mark.parametrize("content", [b"", b"\x00", bytes(range(256)) * 40, b"no such file\n"])
def test_what_is_no_such_file_is_refused_in_words(ending, content, tmp_path):
    path = tmp_path / f"run{ending}"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="run"):
        read_recording(path)


@pytest.mark.parametrize("ending", READERS)
def test_a_missing_file_and_a_folder_in_its_place_are_named(ending, tmp_path):
    with pytest.raises(RecordingError, match="no file"):
        read_recording(tmp_path / f"none{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(RecordingError, match="directory"):
        read_recording(tmp_path / f"folder{ending}")


@pytest.mark.parametrize("transposed", [False, True])
def test_an_array_without_names_is_a_table_without_header(transposed, tmp_path):
    one = recording()
    table = np.column_stack([one.time, one.position, one.signal])
    np.save(tmp_path / "run.npy", table.T if transposed else table)
    column_map = {"columns": {"time": 1, "position": [2, 3, 4], "torque": [5, 6, 7]}}
    found = read_recording(tmp_path / "run.npy", column_map=column_map)
    np.testing.assert_array_equal(found.position, one.position)
    np.testing.assert_array_equal(found.signal, one.signal)


@pytest.mark.parametrize("array", [np.zeros(5), np.array(["a"]), np.zeros((2, 3, 4)), np.zeros(())])
def test_an_array_that_is_no_table_is_refused_in_words(array, tmp_path):
    np.save(tmp_path / "run.npy", array)
    with pytest.raises(RecordingError, match=r"run\.npy holds .*one row per sample"):
        read_recording(tmp_path / "run.npy")


@pytest.mark.parametrize(
    ("name", "remedy"), [("run.csv.xz", "Unpack it"), ("run.xlsx", "with pandas"), ("run.abc", "")]
)
def test_an_unknown_ending_comes_with_what_to_do(name, remedy, tmp_path):
    (tmp_path / name).write_bytes(b"1")
    with pytest.raises(RecordingError, match=rf"is not known.*{remedy}"):
        read_recording(tmp_path / name)
