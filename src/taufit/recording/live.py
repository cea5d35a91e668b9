"""Recording in progress: blocks of samples that stay readable after a crash.

A Parquet file without its footer is lost, so the live format is append-only: a mark, then blocks of
length, CRC-32 and content. The first block is JSON (names of columns, metadata), every further one
rows of little-endian doubles. All flushed data are readable; a truncated or changed block ends the
recording.
"""

from __future__ import annotations

import json
import os
import shlex
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

from taufit.core.arrays import Array, Float
from taufit.core.bounded_reading import read_bytes
from taufit.core.errors import RecordingError
from taufit.core.plain_data import parse_json
from taufit.recording.canonical import (
    from_columns,
    metadata_from_text,
    metadata_to_text,
    recording_metadata,
    to_columns,
)
from taufit.recording.column_map import ColumnMap
from taufit.recording.finding import Finding
from taufit.recording.quantity import MEASUREMENTS, channel_names
from taufit.recording.readers.from_parquet import META_KEY
from taufit.recording.recording import Recording
from taufit.recording.writers.to_parquet import write_parquet

_MARK = b"taufit live 2\n"
_BLOCK = struct.Struct("<II")
# Begin of an Arrow stream, the form of taufit 0.1.
_ARROW_MARK = b"\xff\xff\xff\xff"


class RecordingWriter:
    """Writes samples of a running robot, safe against crashes.

    with RecordingWriter("run.parquet", joints=6, fields=("velocity",), signal_unit="A") as writer:
        writer.append(t, position, signal, velocity=velocity)

    Samples are written to `run.live` next to the target and flushed to disk twice within
    `flush_seconds`; leaving the block converts them to Parquet.

    Args:
        path: Path of the Parquet file.
        joints: Number of joints.
        fields: Fields given besides time, position and signal; names as in `Recording`.
        flush_seconds: Longest time until a sample is on disk [s].
        about: Further fields of `Recording`: signal_unit, torque_source, signed, gain, payload,
            meta.
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
        recordable = (*MEASUREMENTS, *channel_names())
        unknown = [name for name in fields if name not in recordable]
        if unknown:
            raise RecordingError(
                f"there is no field {', '.join(unknown)}; there are {', '.join(recordable)}."
            )
        self.fields = tuple(name for name in recordable if name in ("position", "signal", *fields))
        self.joints = joints
        empty = {name: np.zeros((0, joints)) for name in self.fields}
        template = Recording(time=np.zeros(0), **{**empty, **about})
        names = [name for name in to_columns(template)[0] if name != "payload"]
        self._names = names
        self._row = struct.Struct(f"<{len(names)}d")
        # Fields in the order of their columns.
        self._order = _field_order(template)
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._number = 0
        self._stop = threading.Event()
        self._failure: OSError | None = None
        self._open()
        page = {**recording_metadata(template), "started": clock.time()}
        head = json.dumps({"columns": names, "metadata": metadata_to_text(page)})
        self._write(head.encode(), _MARK)
        self._thread = threading.Thread(
            target=self._flush_regularly, args=(flush_seconds / 2,), daemon=True
        )
        self._thread.start()

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(
                self.live_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644
            )
        except FileExistsError:
            raise RecordingError(
                f"{self.live_path} is a recording that was not finished. Save it first: "
                f"`taufit convert {shlex.quote(str(self.live_path))} -o unfinished.parquet`, then "
                "remove it."
            ) from None
        except OSError as error:
            raise RecordingError(
                f"{self.live_path} cannot be written: {error.strerror or error}."
            ) from None

    def append(
        self,
        time: float,
        position: Float[Array, " j"] | Sequence[float],
        signal: Float[Array, " j"] | Sequence[float],
        **further: Float[Array, " j"] | Sequence[float],
    ) -> None:
        """Append one sample with all fields named at construction."""
        fields = {"position": position, "signal": signal, **further}
        self._check(fields)
        numbers = [float(time)]
        for name in self._order:
            values = [float(x) for x in fields[name]]
            if len(values) != self.joints:
                raise RecordingError(f"{name} has {len(values)} numbers for {self.joints} joints.")
            numbers += values
        self._add(self._row.pack(*numbers))

    def extend(
        self,
        time: Float[Array, " n"],
        position: Float[Array, "n j"],
        signal: Float[Array, "n j"],
        **further: Float[Array, "n j"],
    ) -> None:
        """Append several samples; fields as for `append`."""
        fields = {"position": position, "signal": signal, **further}
        self._check(fields)
        for name, values in fields.items():
            if np.shape(values) != (len(time), self.joints):
                raise RecordingError(
                    f"{name} has the shape {np.shape(values)}; expected {len(time)} rows of "
                    f"{self.joints} joints."
                )
        parts = [np.asarray(time, float)[:, None], *(fields[name] for name in self._order)]
        self._add(np.hstack(parts).astype("<f8").tobytes())

    def _check(self, fields: dict[str, Any]) -> None:
        if fields.keys() != set(self.fields):
            raise RecordingError(
                f"a sample needs {', '.join(self.fields)}; it has {', '.join(fields)}."
            )

    def _add(self, data: bytes) -> None:
        with self._lock:
            if self._stop.is_set():
                raise RecordingError(f"{self.path}: the recording is already closed.")
            if self._failure is not None:
                raise RecordingError(
                    f"{self.live_path} cannot be written any more: "
                    f"{self._failure.strerror or self._failure}. What was flushed is readable."
                )
            self._pending += data

    def flush(self) -> None:
        """Write all pending samples to disk."""
        with self._lock:
            if self._pending:
                content = bytes(self._pending)
                self._pending.clear()
                self._write(content)

    def _write(self, content: bytes, before: bytes = b"") -> None:
        """Write one block atomically to disk."""
        crc = zlib.crc32(content, self._number)
        self._number += 1
        view = memoryview(before + _BLOCK.pack(len(content), crc) + content)
        while view:
            view = view[os.write(self._file, view) :]
        os.fsync(self._file)

    def close(
        self, *, findings: Sequence[Finding] = (), meta: dict[str, Any] | None = None
    ) -> Recording:
        """Finish: write Parquet, remove the live file, return the recording.

        Args:
            findings: Findings of the recorder, added to those of the reader.
            meta: Metadata added to the recording's.
        """
        self._finish()
        recording = convert_live_recording(self.live_path, self.path, findings=findings, meta=meta)
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
            # The live file stays: it contains all samples up to the failure.
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
            try:
                self.flush()
            except OSError as error:
                self._failure = error
                return


def convert_live_recording(
    live: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    findings: Sequence[Finding] = (),
    meta: dict[str, Any] | None = None,
) -> Recording:
    """Convert a live recording to Parquet; the live file stays."""
    (recording,) = read_live(Path(live))
    # The recording is complete now.
    reader_findings = tuple(f for f in recording.findings if f.kind != "unfinished")
    recording = replace(
        recording, findings=(*reader_findings, *findings), meta={**recording.meta, **(meta or {})}
    )
    write_parquet(recording, path)
    return recording


def read_live(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read the flushed samples of a live recording, whether finished or not."""
    if column_map is not None:
        raise RecordingError(f"{path} is taufit's own form and needs no column map.")
    data = read_bytes(path, error=RecordingError)
    if not data:
        raise RecordingError(f"{path} was started but holds no samples yet.")
    page, names, blocks, damaged_bytes = _blocks(data, str(path))
    if not any(map(len, blocks)):
        raise RecordingError(f"{path} was started but holds no samples yet.")
    values = np.concatenate(blocks)
    columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)}
    started = page.pop("started", None)
    if isinstance(page.get("provenance"), dict):
        page["provenance"] = {"started": started, **page["provenance"]}
    recording = from_columns(columns, page, str(path))
    message = f"the recording was not finished; {len(values)} samples were flushed"
    if damaged_bytes:
        message += f" and a block of {damaged_bytes} bytes is cut short or changed"
    unfinished = Finding(
        "unfinished",
        "warning",
        message,
        "everything up to the last whole block is used",
        time=float(recording.time[-1]),
    )
    return [replace(recording, findings=(*recording.findings, unfinished))]


def _blocks(
    data: bytes, source: str
) -> tuple[dict[str, Any], list[str], list[Float[Array, "n c"]], int]:
    """Metadata, column names and valid blocks, and the number of bytes after the last one."""
    if data.startswith(_ARROW_MARK):
        from taufit.recording.readers.from_arrow import read_live_stream

        text, names, blocks, remainder = read_live_stream(data, source, META_KEY)
        return metadata_from_text(text, source), names, blocks, remainder
    contents: list[bytes] = []
    end = len(_MARK)
    while data.startswith(_MARK) and end + _BLOCK.size <= len(data):
        length, crc = _BLOCK.unpack_from(data, end)
        content = data[end + _BLOCK.size : end + _BLOCK.size + length]
        if len(content) != length or zlib.crc32(content, len(contents)) != crc:
            break
        contents.append(content)
        end += _BLOCK.size + length
    if not contents:
        raise RecordingError(f"{source} is not a live recording of taufit.")
    try:
        head = parse_json(contents[0], source, "a live recording of taufit", error=RecordingError)
        names = [str(name) for name in head["columns"]]
        blocks = [np.frombuffer(content, "<f8").reshape(-1, len(names)) for content in contents[1:]]
        return metadata_from_text(head["metadata"], source), names, blocks, len(data) - end
    except (LookupError, TypeError, ValueError):
        raise RecordingError(f"{source} is not a live recording of taufit.") from None


def _field_order(template: Recording) -> tuple[str, ...]:
    """Fields in the order of their columns."""
    from taufit.recording.quantity import QUANTITIES

    prefixes = {spec.prefix: spec.field for spec in QUANTITIES.values() if spec.per_joint}
    first = [name[:-2] for name in to_columns(template)[0] if name.endswith("_1")]
    return tuple(prefixes[name] for name in first)
