"""Long text tables: their lines after the first are read without copies of the text."""

from __future__ import annotations

import random
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

from taufit.recording.readers import from_csv

pytest.importorskip("taufit._kernel")

ENDS = ["", "\n", "\n\n"]
# What may stand in a line far down: a number, or something that only the reader of cells takes.
ODD_LINES = ["1.5,2,3", "x,2,3", "1,2", '"1",2,3', "# remark", " 1 , 2 ,3", "", "1,,3", "\x00,1,2"]


def _table(path: Path, text: str, head_bytes: int, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(text.encode())
    monkeypatch.setattr(from_csv, "_HEAD_BYTES", head_bytes)
    return from_csv.read_csv_table(path)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["", "a,b,c\n", "# a remark\na,b,c\ns,rad,N m\n"])
def test_a_long_table_is_that_of_all_its_text(tmp_path, monkeypatch, newline, header):
    draw = random.Random(len(newline) + len(header))
    was_long = 0
    for case in range(60):
        lines = [f"{k * 0.01:.2f},{draw.gauss(0, 1):.6f},{draw.gauss(0, 9):.3g}" for k in range(90)]
        if case % 2:
            lines[draw.randrange(60, 90)] = draw.choice(ODD_LINES)
        text = (header + "\n".join(lines) + draw.choice(ENDS)).replace("\n", newline)
        long = _table(tmp_path / "r.csv", text, 900, monkeypatch)
        whole = _table(tmp_path / "r.csv", text, len(text), monkeypatch)
        np.testing.assert_array_equal(long.values, whole.values)
        np.testing.assert_array_equal(long.rows, whole.rows)
        plain = [replace(table, values=(), rows=()) for table in (long, whole)]
        assert astuple(plain[0]) == astuple(plain[1])
        monkeypatch.setattr(from_csv, "_HEAD_BYTES", 900)
        was_long += from_csv._read_long_table(tmp_path / "r.csv", text.encode(), None) is not None
    assert 20 < was_long < 60
