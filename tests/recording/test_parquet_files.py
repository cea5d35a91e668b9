"""Parquet without Arrow: what we write others read, what Arrow writes of doubles we read."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taufit import _kernel
from taufit.core.errors import RecordingError
from taufit.recording import read_recording
from taufit.recording.readers.from_parquet import read_columns, row_count
from taufit.recording.readers.parquet_doubles import UnsupportedParquetError, read_doubles
from taufit.recording.readers.single_cells import read_numbers_in_python
from taufit.recording.writers import to_parquet

RNG = np.random.default_rng(3)
COLUMNS = {f"c{i}": RNG.normal(size=1000) * 10.0**i for i in range(20)}
ODD = {"nan": np.array([np.nan, np.inf, -0.0, 5e-324] * 250), "ü é": np.arange(1000.0)}


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(to_parquet, "_PAGE_ROWS", 64)
    monkeypatch.setattr(to_parquet, "_GROUP_ROWS", 300)


def test_other_libraries_read_our_pages(tmp_path, small_pages):
    path = tmp_path / "run.parquet"
    columns = {**COLUMNS, **ODD}
    to_parquet.write_columns(path, columns, {b"key": b"words"})
    arrow = pq.ParquetFile(path, page_checksum_verification=True)
    assert arrow.metadata.num_row_groups == 4 and arrow.schema_arrow.metadata == {b"key": b"words"}
    tables = [arrow.read(), pd.read_parquet(path), pl.read_parquet(path)]
    own, metadata = read_doubles(path)
    assert metadata == {b"key": b"words"} and list(own) == list(columns)
    for name, values in columns.items():
        for table in [*tables, own]:
            np.testing.assert_array_equal(np.asarray(table[name]), values)


def test_texts_counts_and_truth_values_are_written(tmp_path):
    path = tmp_path / "fleet.parquet"
    flags = np.arange(21) % 3 == 0
    to_parquet.write_columns(
        path, {"robot": np.array(["ä", ""] * 10 + ["z"]), "rows": np.arange(21), "worn": flags}
    )
    for table in (pd.read_parquet(path), pl.read_parquet(path)):
        assert list(table["robot"])[:3] == ["ä", "", "ä"]
        assert list(table["rows"]) == list(range(21)) and list(table["worn"]) == list(flags)
    with pytest.raises(UnsupportedParquetError):
        read_doubles(path)
    assert list(read_columns(path)[0]) == ["rows", "worn"]


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("encoding", ["PLAIN", "BYTE_STREAM_SPLIT"])
@pytest.mark.parametrize("nullable", [True, False])
def test_doubles_of_arrow_are_read_without_it(tmp_path, compression, encoding, nullable):
    path = tmp_path / "run.parquet"
    schema = pa.schema([pa.field(name, pa.float64(), nullable) for name in COLUMNS])
    pq.write_table(
        pa.table(COLUMNS, schema=schema),
        path,
        compression=compression,
        use_dictionary=False,
        column_encoding=dict.fromkeys(COLUMNS, encoding),
        row_group_size=300,
        data_page_size=800,
        write_page_checksum=True,
    )
    own, _ = read_doubles(path)
    for name, values in COLUMNS.items():
        np.testing.assert_array_equal(own[name], values)
    assert row_count(path) == 1000


def test_rows_are_those_of_the_whole_file(tmp_path, small_pages):
    path = tmp_path / "run.parquet"
    to_parquet.write_columns(path, COLUMNS)
    draw = random.Random(4)
    for _ in range(20):
        first, last = sorted(draw.sample(range(1200), 2))
        part, _ = read_doubles(path, (first, last))
        for name in ("c0", "c19"):
            np.testing.assert_array_equal(part[name], COLUMNS[name][first:last])


def test_a_changed_or_cut_file_is_refused(tmp_path, small_pages):
    path = tmp_path / "run.parquet"
    to_parquet.write_columns(
        path, {"t": COLUMNS["c0"], "q_1": COLUMNS["c1"], "torque_1": ODD["ü é"]}
    )
    data = path.read_bytes()
    draw = random.Random(5)
    for k in range(250):
        damaged = bytearray(data)
        if k % 4 == 0:
            del damaged[draw.randrange(len(data)) :]
        else:
            for _ in range(draw.choice((1, 3))):
                place = draw.randrange(len(data) - 700 * (k % 2), len(data)) if k % 2 else None
                damaged[place if place is not None else draw.randrange(len(data))] = draw.randrange(
                    256
                )
        path.write_bytes(damaged)
        try:
            columns, _ = read_columns(path)
        except RecordingError:
            continue
        # A change of names, of row counts or of a checksum that is not used: never of a number.
        for values in columns.values():
            assert any(np.array_equal(values, right[: len(values)]) for right in
                       (COLUMNS["c0"], COLUMNS["c1"], ODD["ü é"]))  # fmt: skip


def test_without_arrow_own_files_work_and_others_name_it(tmp_path):
    to_parquet.write_columns(
        tmp_path / "run.parquet",
        {
            "t": np.arange(300) * 0.01,
            "q_1": np.sin(np.arange(300) / 9),
            "torque_1": COLUMNS["c0"][:300],
        },
    )
    pd.DataFrame({"t": [0, 1], "q_1": [0, 1]}).to_parquet(tmp_path / "others.parquet")
    code = """
import sys
sys.modules["pyarrow"] = None
import polars, taufit.core.errors
run = taufit.read_recording("run.parquet")
columns = {"t": run.time, "q_1": run.position[:, 0], "torque_1": run.signal[:, 0]}
assert len(run) == len(taufit.read_recording(polars.DataFrame(columns))) == 300
try:
    taufit.read_recording("others.parquet")
except taufit.core.errors.TaufitError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "needs pyarrow: install it with `pip install pyarrow`" in run.stdout


def test_frames_of_any_kind_give_the_same_recording():
    clock = np.arange(300) * 0.01
    content = {
        "t": clock,
        "q_1": np.sin(clock),
        "torque_1": np.cos(clock).astype("float32"),
        "count": np.arange(300),
        "state": ["on"] * 300,
    }
    frame = pd.DataFrame(content)
    frames = [
        frame,
        frame.set_index("t"),
        frame.convert_dtypes(),
        pl.DataFrame(content),
        pa.table(content),
    ]
    first, *further = [read_recording(item) for item in frames]
    for recording in further:
        np.testing.assert_array_equal(recording.time, first.time)
        np.testing.assert_array_equal(recording.signal, first.signal)
    stamps = {
        "stamp": pd.to_datetime(clock, unit="s", utc=True),
        "q": list(np.column_stack([clock] * 4)),
    }
    page = {"columns": {"time": "stamp", "position": ["q_1", "q_2"], "torque": ["q_3", "q_4"]}}
    lists = pd.DataFrame(stamps)
    for item in (lists, pl.DataFrame({"stamp": clock.tolist(), "q": lists["q"].to_list()})):
        recording = read_recording(item, column_map=page)
        np.testing.assert_allclose(recording.time - recording.time[0], clock, atol=1e-6)
        np.testing.assert_array_equal(recording.position[:, 1], clock)


CELLS = ["1", "-2.5", "+3e-7", " 4 ", "nan", "inf", "-0.0", "1e308", "0x1", "1_0", "", "x", "1e400",
         "--1", "+-1", "nan(1)", "1 2", "12345678901234567890",
         "2.2250738585072011e-308", ".5", "5."]  # fmt: skip


def test_the_kernel_reads_numbers_as_python_does():
    draw = random.Random(6)
    for k in range(600):
        columns = draw.randrange(1, 5)
        pool = CELLS if k % 3 else CELLS[:8]
        lines = [[draw.choice(pool) for _ in range(columns)] for _ in range(draw.randrange(1, 6))]
        text = "\n".join(",".join(line) for line in lines) + draw.choice(["", "\n", "\n\n", ",\n"])
        values = np.empty((text.count("\n") + 1, columns))
        texts = frozenset(i for i in range(columns) if draw.random() < 0.2)
        flags = np.array([i in texts for i in range(columns)])
        rows = _kernel.read_numbers(text.encode(), ord(","), flags, values)
        plain = read_numbers_in_python(text, ",", columns, texts)
        if rows >= 0:
            expected = [[np.nan if i in texts else float(cell) for i, cell in enumerate(line)]
                        for line in lines if line != [""]]  # fmt: skip
            np.testing.assert_array_equal(values[:rows], np.reshape(expected, (-1, columns)))
        # What either refuses is read cell by cell: here only both or none may give numbers.
        if rows > 0 and plain is not None:
            np.testing.assert_array_equal(values[:rows], plain)
