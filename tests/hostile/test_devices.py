"""Names that lead to devices and pipes: one sentence, at once, in little memory."""

from __future__ import annotations

import os
import threading
import time

import pytest

from taufit.core import bounded_reading
from taufit.core.decompression_limits import MAX_TEXT
from taufit.core.errors import RecordingError, RobotError, TaufitError
from taufit.model.model_file import read_model
from taufit.recording import read_recordings
from taufit.recording.column_map import read_map
from taufit.recording.files import find_recordings
from taufit.robot import read_robot


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/urandom", "pipe"])
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("x.yaml", read_robot),
        ("x.urdf", read_robot),
        ("m.json", read_model),
        ("map.yaml", read_map),
        *((f"run.{end}", read_recordings) for end in ("csv", "parquet", "npz", "mat", "h5")),
        *((f"run.{end}", read_recordings) for end in ("mcap", "bag", "db3", "live", "csv.gz")),
    ],
)
def test_what_is_no_file_is_refused_at_once(tmp_path, monkeypatch, target, name, read):
    monkeypatch.setattr(bounded_reading, "_PATIENCE_S", 0.05)
    path = tmp_path / name
    if target == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    began = time.process_time()
    with pytest.raises(TaufitError, match=r"a device|a pipe"):
        read(path)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("inner", ["metadata.yaml", "data.db3"])
def test_a_bag_with_a_link_to_a_device_is_refused(tmp_path, inner):
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "metadata.yaml").write_text("a: 1")
    (bag / inner).unlink(missing_ok=True)
    (bag / inner).symlink_to("/dev/zero")
    with pytest.raises(RecordingError, match="device"):
        read_recordings(bag)


def test_folders_pass_devices_and_pipes_by(tmp_path):
    (tmp_path / "a.csv").write_text("1,2")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.csv")
    assert find_recordings([tmp_path]).paths == (tmp_path / "a.csv",)


def _pour(path, chunks):
    with open(path, "wb") as sink:
        for chunk in chunks:
            try:
                sink.write(chunk)
            except BrokenPipeError:
                return


def test_a_pipe_that_ends_is_read_and_one_that_does_not_is_refused(tmp_path):
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    writer = threading.Thread(target=_pour, args=(path, [b"a: ", b"1\n"]))
    writer.start()
    assert bounded_reading.read_bytes(path) == b"a: 1\n"
    writer.join()
    writer = threading.Thread(target=_pour, args=(path, iter(lambda: bytes(1 << 20), None)))
    writer.start()
    with pytest.raises(TaufitError, match="larger than 32 MB"):
        bounded_reading.read_bytes(path, MAX_TEXT)
    writer.join()


def test_a_file_may_not_name_a_xacro(tmp_path):
    (tmp_path / "arm.xacro").write_text("<robot/>")
    with pytest.raises(RobotError, match="name it yourself"):
        read_robot(tmp_path / "arm.xacro", expand=False)
