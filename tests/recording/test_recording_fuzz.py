"""Damaged recordings: a clear error or a flagged recovery, never a traceback or a silent lie.

Two oracles. Files of other people's carry no checksum, so damage is done whose truth is known:
every row that comes back must be a row of the original, and whatever is missing must be told.
taufit's own files carry checksums, so any damage to their bytes must not matter or be told.
"""

from __future__ import annotations

import io
import os
from collections import Counter

import numpy as np
import pytest

from taufit.core.errors import TaufitError
from taufit.recording import Recording, read_recording, write_recording

JOINTS, N = 3, 60
NAMES = ["t"] + [f"{p}{j + 1}" for p in ("q", "dq", "tau") for j in range(JOINTS)]
MAP = {
    "columns": {
        "time": "t",
        "position": "q{joint}",
        "velocity": "dq{joint}",
        "torque": "tau{joint}",
    }
}


def original():
    rng = np.random.default_rng(11)
    time = np.round(np.arange(N) * 0.01 + rng.uniform(-0.001, 0.001, N), 6)
    phase = time[:, None] * [3.0, 4.0, 5.0]
    position = np.round(np.sin(phase), 6)
    velocity = np.round(np.cos(phase) * [3.0, 4.0, 5.0], 6)
    return np.column_stack([time, position, velocity, np.round(rng.normal(size=(N, JOINTS)), 6)])


ROWS = original()
CELLS = [[f"{x:.6f}" for x in row] for row in ROWS]
CRASHING = (0, 48)  # SciPy alone ends with a segmentation fault on the second
BAD = [
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e300",
    "-1e308",
    "",
    "abc",
    "1.2.3",
    "0x10",
    "--1",
    "1e",
    "\x00",
    "é",
    "1_0",
    "∞",
]


def text(cells, names=NAMES):
    return "\n".join([",".join(names), *(",".join(row) for row in cells)]) + "\n"


# Each mutation returns bytes and whether rows may be missing without more ado (a clean cut
# between two lines cannot be seen).


def truncate_bytes(rng):
    data = text(CELLS).encode()
    cut = int(rng.integers(0, len(data)))
    return data[:cut], True


def bad_cells(rng):
    cells = [list(row) for row in CELLS]
    for _ in range(rng.integers(1, 9)):
        cells[rng.integers(N)][rng.integers(len(NAMES))] = BAD[rng.integers(len(BAD))]
    return text(cells).encode(), False


def wrong_counts(rng):
    cells = [list(row) for row in CELLS]
    for _ in range(rng.integers(1, 6)):
        row = cells[rng.integers(N)]
        if rng.random() < 0.5 and len(row) > 1:
            del row[rng.integers(len(row))]
        else:
            row.insert(rng.integers(len(row) + 1), "0.5")
    return text(cells).encode(), False


def shuffled_columns(rng):
    order = rng.permutation(len(NAMES))
    return text(
        [[row[i] for i in order] for row in CELLS], [NAMES[i] for i in order]
    ).encode(), False


def missing_columns(rng):
    keep = sorted(rng.permutation(len(NAMES))[: rng.integers(0, len(NAMES))])
    return text([[row[i] for i in keep] for row in CELLS], [NAMES[i] for i in keep]).encode(), False


def encodings(rng):
    data = text(CELLS)
    kind = rng.integers(5)
    if kind == 0:
        return data.encode("utf-16"), False
    if kind == 1:
        return data.encode("utf-8-sig"), False
    if kind == 2:
        return data.replace("\n", "\r\n").encode(), False
    lines = data.split("\n")
    where = int(rng.integers(1, N))
    lines[where] = lines[where][:-2] + "é" + lines[where][-1:]
    if kind == 3:
        return "\n".join(lines).encode("latin-1"), False
    half = "\n".join(lines[:where]).encode("utf-8") + b"\n"
    return half + "\n".join(lines[where:]).encode("latin-1"), False


def few_rows(rng):
    return text(CELLS[: rng.integers(0, 3)]).encode(), True


def time_order(rng):
    cells = [list(row) for row in CELLS]
    kind = rng.integers(5)
    if kind == 0:
        i = int(rng.integers(N - 1))
        cells[i], cells[i + 1] = cells[i + 1], cells[i]
    elif kind == 1:
        rng.shuffle(cells)
    elif kind == 2:
        cells = cells[::-1]
    elif kind == 3:
        cells = cells[N // 2 :] + cells[: N // 2]
    else:
        for i in range(rng.integers(1, N)):
            cells[i][0] = cells[0][0]
    return text(cells).encode(), False


def wild_time(rng):
    cells = [list(row) for row in CELLS]
    for _ in range(rng.integers(1, 4)):
        cells[rng.integers(N)][0] = str(rng.choice([-1e9, 1e9, 1e18, 1e300, 0.0, 1234.5]))
    return text(cells).encode(), False


def duplicated_rows(rng):
    cells = [list(row) for row in CELLS]
    for _ in range(rng.integers(1, 6)):
        i = int(rng.integers(len(cells)))
        cells.insert(i, list(cells[i]))
    return text(cells).encode(), False


def rubbish_lines(rng):
    lines = text(CELLS).split("\n")
    for _ in range(rng.integers(1, 5)):
        junk = ["", "   ", "# note", "connection lost", ",,,,", "\x00\x00", ",".join(NAMES), "é;ü"]
        lines.insert(int(rng.integers(1, len(lines) + 1)), junk[rng.integers(len(junk))])
    return "\n".join(lines).encode(), False


def frozen_or_wild_joint(rng):
    cells = [list(row) for row in CELLS]
    column = int(rng.integers(1, 1 + JOINTS))
    for _ in range(rng.integers(1, 6)):
        cells[rng.integers(N)][column] = str(rng.choice([-300.0, 57.3, 253.0, 9e3]))
    return text(cells).encode(), False


FOREIGN = [
    truncate_bytes,
    bad_cells,
    wrong_counts,
    shuffled_columns,
    missing_columns,
    encodings,
    few_rows,
    time_order,
    wild_time,
    duplicated_rows,
    rubbish_lines,
    frozen_or_wild_joint,
]


def flagged(recording, severities=("warning", "error")):
    return [f for f in recording.findings if f.severity in severities]


def assert_told(recording, may_miss):
    """Every row is one of the original; what is missing or wrong is told."""
    rows = np.column_stack(
        [recording.time, recording.position, recording.velocity, recording.signal]
    )
    # A file that lacks the last joints altogether reads as a shorter arm.
    joints = np.arange(recording.joints)
    have = np.concatenate([[0], 1 + joints, 1 + JOINTS + joints, 1 + 2 * JOINTS + joints])
    truth = {row[0]: row[have] for row in ROWS}
    wrong = [row for row in rows if not np.array_equal(truth.get(row[0], []), row)]
    dropped = set().union(*(set(f.rows) for f in recording.findings))
    if wrong:
        # Recovered, but not the truth: acceptable only where a finding names the trouble.
        assert flagged(recording), wrong[0]
    if len(rows) < N and not may_miss:
        assert flagged(recording, ("info", "warning", "error")), len(rows)
        assert dropped or flagged(recording)
    assert (np.diff(recording.time) > 0).all()
    assert np.isfinite(rows).all()


# Tables per kind of damage; fewer than in `make long`.
IS_LONG = os.environ.get("TAUFIT_LONG") == "1"
CASES = 260 if IS_LONG else 80


@pytest.mark.parametrize("mutation", FOREIGN, ids=lambda f: f.__name__)
def test_damaged_text_tables(mutation, tmp_path):
    outcomes = Counter()
    path = tmp_path / "run.csv"
    for seed in range(CASES):
        data, may_miss = mutation(np.random.default_rng([seed, FOREIGN.index(mutation)]))
        path.write_bytes(data)
        try:
            recording = read_recording(path, column_map=MAP)
        except TaufitError as error:
            assert str(path) in str(error)
            outcomes["refused"] += 1
            continue
        assert_told(recording, may_miss)
        outcomes["flagged" if flagged(recording) else "sound"] += 1
    assert sum(outcomes.values()) == CASES


def own_recording():
    return Recording(
        time=ROWS[:, 0],
        position=ROWS[:, 1:4],
        velocity=ROWS[:, 4:7],
        signal=ROWS[:, 7:10],
        signed=np.ones(JOINTS, bool),
        gain=np.array([11.976, 11.976, 9.839]),
        payload=2.5,
        meta={"robot": "x"},
    )


def damage(data: bytes, rng) -> bytes:
    """Flipped bits, overwritten, inserted, removed or swapped bytes, a cut, a doubled tail."""
    out = bytearray(data)
    kind = rng.integers(7)
    at = int(rng.integers(len(out)))
    size = int(rng.integers(1, 40))
    if kind == 0:
        for _ in range(rng.integers(1, 4)):
            out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        out[at : at + size] = rng.bytes(size)
    elif kind == 2:
        out[at:at] = rng.bytes(size)
    elif kind == 3:
        del out[at : at + size]
    elif kind == 4:
        del out[at:]
    elif kind == 5:
        out += out[-size:]
    else:
        out[at : at + size] = out[at : at + size][::-1]
    return bytes(out)


def same(a, b):
    names = ("time", "position", "velocity", "signal", "gain", "signed", "payload")
    alike = all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)
    return alike and a.signal_unit == b.signal_unit and a.torque_source == b.torque_source


@pytest.mark.parametrize(
    ("ending", "count"),
    [(".csv", 500), (".csv.gz", 300), (".parquet", 900), (".npz", 500), (".mcap", 250)],
)
def test_damaged_bytes_of_our_own_files(ending, count, tmp_path):
    recording = own_recording()
    path = tmp_path / f"run{ending}"
    write_recording(recording, path)
    data = path.read_bytes()
    outcomes = Counter()
    cases = count if IS_LONG else count // 3
    for seed in range(cases):
        path.write_bytes(damage(data, np.random.default_rng([seed, count])))
        try:
            back = read_recording(path)
        except TaufitError as error:
            assert str(path) in str(error)
            outcomes["refused"] += 1
            continue
        if same(recording, back):
            outcomes["harmless"] += 1
        else:
            assert flagged(back), seed
            outcomes["flagged"] += 1
    assert outcomes["refused"] + outcomes["flagged"] > 0.2 * cases, outcomes


def test_mats_and_random_bytes_under_every_ending(tmp_path):
    import scipy.io

    rng = np.random.default_rng(3)
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"t": ROWS[:, 0], "q": ROWS[:, 1:4], "tau": ROWS[:, 7:10]})
    page = {"columns": {"time": "t", "position": "q_{joint}", "torque": "tau_{joint}"}}
    # Each one starts a process; the second kills it.
    for seed in CRASHING:
        path = tmp_path / "run.mat"
        path.write_bytes(damage(buffer.getvalue(), np.random.default_rng(seed)))
        try:
            read_recording(path, column_map=page)
        except TaufitError as error:
            assert str(path) in str(error)
    endings = (".csv", ".parquet", ".npz", ".h5", ".mcap", ".bag", ".db3", ".live", ".txt")
    for ending in endings:
        for size in (0, 1, 7, 300):
            path = tmp_path / f"noise{ending}"
            path.write_bytes(rng.bytes(size))
            with pytest.raises(TaufitError):
                read_recording(path, column_map=None if ending == ".live" else MAP)
