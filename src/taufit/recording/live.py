"""A recording while it is being made: blocks appended to one file, readable after any crash.

A Parquet file without its end is lost, so the live form is another one: a mark, then blocks of
`mark, number, length, CRC-32` and bytes. The first block is the JSON page, each further one rows
of doubles. Whatever was flushed stays readable; a block cut short by a crash ends the file.
"""

from __future__ import annotations

import os
import struct
import threading
import time as clock
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import RecordingError
from taufit.recording.canonical import describe, from_columns, from_text, to_columns, to_text
from taufit.recording.column_map import ColumnMap
from taufit.recording.finding import Finding
from taufit.recording.recording import Recording
from taufit.recording.screen import FIELDS
from taufit.recording.to_parquet import write_parquet

FILE_MARK = b"TAUFIT LIVE 1\n"
BLOCK_MARK = b"TAUB"
_HEAD = struct.Struct("<4sIII")
_LARGEST_BLOCK = 1 << 28


class RecordingWriter:
    """Writes samples as they come and survives being killed.

    with RecordingWriter("run.parquet", joints=6, fields=("velocity",), signal_unit="A") as writer:
        writer.append(t, position, signal, velocity=velocity)

    While it runs, the samples are in `run.live` beside the target, flushed to disk twice within
    `flush_seconds` whether or not more samples come; leaving the block turns them into Parquet.

    Args:
        path: The Parquet file to make in the end.
        joints: Of the arm.
        fields: What will be given besides time, position and signal; names as in `Recording`.
        flush_seconds: Samples older than this are on disk.
        about: What else `Recording` holds: signal_unit, torque_source, signed, gain, payload, meta.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        joints: int,
        fields: Sequence[str] = ("velocity",),
        flush_seconds: float = 1.0,
        **about: Any,
    ) -> None:
        self.path = Path(path)
        if self.path.suffix != ".parquet":
            raise RecordingError(f"{path}: a live recording ends as .parquet; name it so.")
        self.live_path = self.path.with_suffix(".live")
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            raise RecordingError(
                f"there is no field {', '.join(unknown)}; there are {', '.join(FIELDS)}."
            )
        self.fields = tuple(name for name in FIELDS if name in ("position", "signal", *fields))
        self.joints = joints
        empty = {name: np.zeros((0, joints)) for name in self.fields}
        template = Recording(time=np.zeros(0), **{**empty, **about})
        names = [name for name in to_columns(template)[0] if name != "payload"]
        self._row = struct.Struct(f"<{len(names)}d")
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._number = 0
        self._stop = threading.Event()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(
                self.live_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644
            )
        except FileExistsError:
            raise RecordingError(
                f"{self.live_path} is a recording that was not finished. Save it first: "
                f"`taufit convert {self.live_path} -o FILE.parquet`, then remove it."
            ) from None
        except OSError as error:
            raise RecordingError(
                f"{self.live_path} cannot be written: {error.strerror or error}."
            ) from None
        page = {**describe(template), "columns": names, "started": clock.time()}
        self._put(FILE_MARK + self._block(to_text(page).encode()))
        self._thread = threading.Thread(
            target=self._flush_regularly, args=(flush_seconds / 2,), daemon=True
        )
        self._thread.start()

    def append(
        self,
        time: float,
        position: Float[Array, " j"] | Sequence[float],
        signal: Float[Array, " j"] | Sequence[float],
        **more: Float[Array, " j"] | Sequence[float],
    ) -> None:
        """One sample. `more` must hold every field the writer was told of."""
        given = {"position": position, "signal": signal, **more}
        if given.keys() != set(self.fields):
            raise RecordingError(
                f"a sample needs {', '.join(self.fields)}; it has {', '.join(given)}."
            )
        numbers = [float(time)]
        for name in self.fields:
            values = [float(x) for x in given[name]]
            if len(values) != self.joints:
                raise RecordingError(f"{name} has {len(values)} numbers for {self.joints} joints.")
            numbers += values
        with self._lock:
            if self._stop.is_set():
                raise RecordingError(f"{self.path}: the recording is already closed.")
            self._pending += self._row.pack(*numbers)

    def flush(self) -> None:
        """Put on disk what has come so far."""
        with self._lock:
            if self._pending:
                self._put(self._block(bytes(self._pending)))
                self._pending.clear()

    def close(self) -> Recording:
        """Finish: Parquet in place, the live file gone; the recording as it can be read."""
        self._finish()
        recording = compact(self.live_path, self.path)
        self.live_path.unlink()
        return recording

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            # The live file stays: it has everything up to the failure.
            self._finish()

    def _finish(self) -> None:
        if self._stop.is_set():
            raise RecordingError(f"{self.path}: the recording is already closed.")
        self.flush()
        self._stop.set()
        self._thread.join()
        os.close(self._file)

    def _flush_regularly(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            self.flush()

    def _block(self, data: bytes) -> bytes:
        crc = zlib.crc32(data, self._number)
        head = _HEAD.pack(BLOCK_MARK, self._number, len(data), crc)
        self._number += 1
        return head + data

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        os.fsync(self._file)


def compact(live: str | os.PathLike[str], path: str | os.PathLike[str]) -> Recording:
    """Turn a live recording into Parquet; the live file is left where it is."""
    (recording,) = read_live(Path(live))
    # It is finished now: that its writer was still at work is no longer worth telling.
    findings = tuple(f for f in recording.findings if f.kind != "unfinished")
    recording = replace(recording, findings=findings)
    write_parquet(recording, path)
    return recording


def read_live(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """What a writer has flushed, whether it still runs, has crashed or was killed."""
    if column_map is not None:
        raise RecordingError(f"{path} is taufit's own form and needs no column map.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not data.startswith(FILE_MARK):
        raise RecordingError(f"{path} is not a live recording of taufit.")
    blocks, left = _blocks(data)
    if not blocks:
        raise RecordingError(f"{path} holds no complete block: nothing was flushed yet.")
    page = from_text(blocks[0], str(path))
    names = page.pop("columns", None)
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise RecordingError(f"{path}: its first block does not name its columns.")
    body = b"".join(blocks[1:])
    size = 8 * len(names)
    if not body:
        raise RecordingError(f"{path} was started but holds no samples yet.")
    if len(body) % size:
        raise RecordingError(f"{path}: its blocks do not hold whole rows of {len(names)} numbers.")
    values = np.frombuffer(body, "<f8").reshape(-1, len(names))
    columns = {name: values[:, i].copy() for i, name in enumerate(names)}
    started = page.pop("started", None)
    if isinstance(page.get("provenance"), dict):
        page["provenance"] = {"started": started, **page["provenance"]}
    recording = from_columns(columns, page, str(path))
    message = f"the recording was not finished; {len(values)} samples were flushed"
    if left:
        message += f" and a block of {left} bytes is cut short"
    unfinished = Finding(
        "unfinished",
        "warning",
        message,
        "everything up to the last whole block is used",
        time=float(recording.time[-1]),
    )
    return [replace(recording, findings=(*recording.findings, unfinished))]


def _blocks(data: bytes) -> tuple[list[bytes], int]:
    """Whole blocks in order, and how many bytes after the last one make no block."""
    blocks: list[bytes] = []
    at = len(FILE_MARK)
    while at + _HEAD.size <= len(data):
        mark, number, length, crc = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + length]
        sound = mark == BLOCK_MARK and number == len(blocks) and length <= _LARGEST_BLOCK
        if not sound or len(body) != length or zlib.crc32(body, number) != crc:
            break
        blocks.append(body)
        at += _HEAD.size + length
    return blocks, len(data) - at
