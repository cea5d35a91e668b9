"""Parquet files of others: every kind of number read, and pages that nobody wrote are refused."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taufit.core.errors import RecordingError
from taufit.recording import read_recording, write_recording
from taufit.recording.readers.from_parquet import row_count

TIME = np.arange(200) * 0.01
ANGLE = np.column_stack([np.sin(TIME), np.cos(2 * TIME)])


def table(**columns):
    given = {
        "t": TIME,
        **{f"q_{i + 1}": ANGLE[:, i] for i in range(2)},
        **{f"torque_{i + 1}": 3.0 * ANGLE[:, i] for i in range(2)},
        **columns,
    }
    return pa.table({name: value for name, value in given.items() if value is not None})


def changed(path, **page):
    """The file with other words on its page."""
    stored = pq.read_table(path)
    key, text = next(iter(stored.schema.metadata.items()))
    old = {**json.loads(text), **page}
    pq.write_table(stored.replace_schema_metadata({key: json.dumps(old).encode()}), path)


@pytest.mark.parametrize(
    "page, says",
    [
        ({"schema": "another"}, "not a taufit recording's"),
        ({"version": 10**6}, "written by a newer taufit"),
        ({"torque_source": "magic"}, "torque_source 'magic'"),
        ({"payload": -1}, "not kilograms"),
        ({"payload": True}, "not kilograms"),
        ({"provenance": 3}, "its metadata is damaged"),
        ({"findings": [3]}, "findings in its metadata are damaged"),
        ({"gain": "many"}, "gain = many; expected 2 numbers"),
        ({"gain": [1, 2, 3]}, "expected 2 numbers"),
        ({"coupling": [[1, 0]]}, "expected 2 x 2 numbers"),
    ],
)
def test_a_page_somebody_changed_is_refused_by_what_is_wrong(tmp_path, page, says):
    path = tmp_path / "run.parquet"
    pq.write_table(table(), path)
    write_recording(read_recording(path), path)
    changed(path, **page)
    with pytest.raises(RecordingError, match=says):
        read_recording(path)


def test_a_page_that_is_no_object_is_refused(tmp_path):
    path = tmp_path / "run.parquet"
    pq.write_table(table(), path)
    write_recording(read_recording(path), path)
    stored = pq.read_table(path)
    key = next(iter(stored.schema.metadata))
    pq.write_table(stored.replace_schema_metadata({key: b"[1]"}), path)
    with pytest.raises(RecordingError, match="damaged and cannot be read"):
        read_recording(path)


def test_times_lists_and_small_numbers_are_read_as_what_they_mean(tmp_path):
    path = tmp_path / "run.parquet"
    clock = pa.array((TIME * 1e9).round().astype("int64"), pa.timestamp("ns"))
    lists = pa.array(ANGLE.tolist(), pa.list_(pa.float64()))
    words = pa.array(["on"] * len(TIME))
    ragged = pa.array([[1.0]] * 100 + [[1.0, 2.0]] * 100, pa.list_(pa.float64()))
    pq.write_table(
        pa.table({
            "stamp": clock, "q": lists, "state": words, "ragged": ragged,
            "tau_1": (3 * ANGLE[:, 0]).astype("float32"), "tau_2": 3 * ANGLE[:, 1],
            "flag": pa.array([True] * len(TIME)),
        }),
        path,
    )  # fmt: skip
    spec = {"columns": {"time": "stamp", "position": ["q_1", "q_2"], "torque": ["tau_1", "tau_2"]}}
    recording = read_recording(path, column_map=spec)
    np.testing.assert_allclose(recording.time - recording.time[0], TIME, atol=1e-9)
    np.testing.assert_array_equal(recording.position, ANGLE)
    np.testing.assert_allclose(recording.signal, 3.0 * ANGLE, rtol=1e-6)


def test_two_torque_channels_and_no_rows_are_refused(tmp_path):
    path = tmp_path / "run.parquet"
    more = {f"current_{i}": TIME for i in (1, 2)}
    pq.write_table(table(**more), path)
    with pytest.raises(RecordingError, match="more than one torque channel"):
        read_recording(path)
    pq.write_table(table().slice(0, 0), path)
    with pytest.raises(RecordingError, match="no rows of numbers"):
        read_recording(path)


def test_rows_are_counted_where_there_are_any(tmp_path):
    path, other = tmp_path / "run.parquet", tmp_path / "run.csv"
    pq.write_table(table(), path)
    assert row_count(path) == len(TIME) and row_count(other) is None
    path.write_bytes(b"PAR1 and no end")
    assert row_count(path) is None
