"""Write then read returns the same recording, bit for bit, in every form; others read ours."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taufit.core.errors import RecordingError, TaufitError
from taufit.recording import WRITERS, Finding, Recording, read_recording, write_recording
from taufit.recording.canonical import to_columns


def made_up(seed=0, n=300, joints=6, **changes):
    """A recording with every field and a jittered clock."""
    rng = np.random.default_rng(seed)
    time = 1234.5 + np.cumsum(rng.uniform(0.008, 0.012, n))
    phase = time[:, None] * rng.uniform(0.5, 2, joints) + rng.uniform(0, 6, joints)

    def noise():
        return rng.normal(size=(n, joints))

    content = dict(
        time=time,
        position=np.sin(phase),
        velocity=np.cos(phase) * 0.9,
        acceleration=-np.sin(phase),
        signal=noise() * 10,
        signal_unit="A",
        torque_source="motor_current",
        signed=np.arange(joints) % 2 == 0,
        gain=rng.uniform(5, 15, joints),
        gain_std=rng.uniform(0, 1, joints),
        coupling=np.eye(joints) + np.eye(joints, k=-1) * (1 / 3),
        commanded_position=np.sin(phase),
        commanded_velocity=np.cos(phase),
        commanded_acceleration=noise(),
        target_current=noise(),
        target_torque=noise(),
        temperature=30 + noise(),
        payload=2.805,
        meta={"robot": "ur10e", "joint_names": [f"j{i}" for i in range(joints)], "firmware": "5.4"},
        findings=(Finding("gaps", "info", "one gap", "kept", rows=(3, 4), time=1.5, value=2.0),),
    )
    return Recording(**{**content, **changes})


def minimal(**changes):
    rng = np.random.default_rng(7)
    time = np.arange(200) * 0.004
    position = np.sin(time[:, None] * [1.0, 2.0])
    signal = rng.normal(size=(200, 2))
    return Recording(time=time, position=position, signal=signal, **changes)


def assert_same(a, b):
    for name in {*Recording.__dataclass_fields__, *a.channels, *b.channels} - {"channels"}:
        left, right = getattr(a, name), getattr(b, name)
        if isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right, err_msg=name)
        else:
            assert left == right, name


@pytest.mark.parametrize("ending", [*WRITERS, ""])
@pytest.mark.parametrize(
    "recording",
    [made_up(), minimal(), minimal(signal_unit="", gain=None)],
    ids=["full", "minimal", "raw"],
)
def test_writing_then_reading_returns_the_same_recording(ending, recording, tmp_path):
    path = tmp_path / f"run{ending}"
    write_recording(recording, path)
    assert_same(recording, read_recording(path))


def test_forms_chain_without_loss(tmp_path):
    recording = made_up(3)
    for name in ("a.parquet", "b.mcap", "c.csv", "d.npz", "e.tsv.gz", "f.parquet"):
        write_recording(recording, tmp_path / name)
        recording = read_recording(tmp_path / name)
    assert_same(made_up(3), recording)


def test_pandas_and_pyarrow_read_our_parquet_without_taufit(tmp_path):
    import pandas as pd
    import pyarrow.parquet as pq

    recording = made_up()
    write_recording(recording, tmp_path / "run.parquet")
    frame = pd.read_parquet(tmp_path / "run.parquet")
    np.testing.assert_array_equal(frame["t"], recording.time)
    np.testing.assert_array_equal(frame["current_3"], recording.signal[:, 2])
    assert (frame["payload"] == 2.805).all()
    page = json.loads(pq.read_schema(tmp_path / "run.parquet").metadata[b"taufit"])
    assert page["robot"] == "ur10e" and page["torque_source"] == "motor_current"
    assert page["gain"] == recording.gain.tolist()
    group = pq.ParquetFile(tmp_path / "run.parquet").metadata.row_group(0).column(1)
    assert group.compression == "ZSTD" and "BYTE_STREAM_SPLIT" in group.encodings


def test_pandas_reads_our_csv_without_taufit(tmp_path):
    import pandas as pd

    recording = made_up()
    write_recording(recording, tmp_path / "run.csv")
    frame = pd.read_csv(tmp_path / "run.csv", comment="#")
    # Older pandas round the last digit.
    np.testing.assert_allclose(frame["q_2"], recording.position[:, 1], rtol=1e-12)


def test_parquet_edited_with_pandas_is_read_and_flagged(tmp_path):
    import pandas as pd

    write_recording(made_up(), tmp_path / "run.parquet")
    frame = pd.read_parquet(tmp_path / "run.parquet")
    frame.loc[10, "q_1"] = 77.0
    pd.DataFrame(frame.to_numpy(), columns=list(frame.columns)).to_parquet(tmp_path / "new.parquet")
    recording = read_recording(tmp_path / "new.parquet")
    kinds = {finding.kind for finding in recording.findings}
    assert kinds >= {"metadata", "impossible_rows"}
    assert recording.position.max() < 2


def test_changed_numbers_are_noticed_even_when_they_look_right(tmp_path):
    recording = made_up()
    for ending in (".csv", ".tsv"):
        path = tmp_path / f"run{ending}"
        write_recording(recording, path)
        text = path.read_text().splitlines()
        cells = text[20].split("\t" if ending == ".tsv" else ",")
        cells[1] = repr(float(cells[1]) + 1e-9)
        text[20] = ("\t" if ending == ".tsv" else ",").join(cells)
        path.write_text("\n".join(text) + "\n")
        assert "changed" in {finding.kind for finding in read_recording(path).findings}


def test_changed_metadata_is_noticed(tmp_path):
    path = tmp_path / "run.csv"
    write_recording(made_up(), path)
    path.write_text(path.read_text().replace('"motor_current"', '"motor_torque"', 1))
    kinds = {finding.kind for finding in read_recording(path).findings}
    assert "metadata_changed" in kinds


def test_a_newer_form_is_refused_by_name(tmp_path):
    path = tmp_path / "run.csv"
    write_recording(minimal(), path)
    path.write_text(path.read_text().replace('"version": 1', '"version": 9', 1))
    with pytest.raises(RecordingError, match="newer taufit"):
        read_recording(path)


def test_unknown_endings_say_what_there_is(tmp_path):
    with pytest.raises(TaufitError, match=r"\.parquet.*\.mcap"):
        write_recording(minimal(), tmp_path / "run.docx")
    (tmp_path / "run.docx").write_text("x")
    with pytest.raises(TaufitError, match=r"\.parquet.*\.mat"):
        read_recording(tmp_path / "run.docx")
    with pytest.raises(TaufitError, match="there is no file"):
        read_recording(tmp_path / "none.csv")


def test_columns_come_in_the_documented_order():
    columns, _ = to_columns(made_up(joints=2))
    assert list(columns)[:7] == ["t", "q_1", "q_2", "v_1", "v_2", "a_1", "a_2"]
    assert list(columns)[-1] == "payload"


def test_ros_tools_read_our_mcap_without_taufit(tmp_path):
    from rosbags.highlevel import AnyReader

    recording = made_up(
        meta={"joint_names": list("abcdef"), "start_time_ns": 1_700_000_000 * 10**9}
    )
    write_recording(recording, tmp_path / "run.mcap")
    with AnyReader([tmp_path / "run.mcap"]) as reader:
        links = [c for c in reader.connections if c.topic == "/joint_states"]
        states = [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(links)]
    np.testing.assert_array_equal([s.position for s in states], recording.position)
    np.testing.assert_array_equal([s.effort for s in states], recording.signal)
    stamps = [s.header.stamp.sec - 1_700_000_000 + s.header.stamp.nanosec * 1e-9 for s in states]
    np.testing.assert_allclose(stamps, recording.time - recording.time[0], atol=1e-9)
    assert states[0].name == list("abcdef")
