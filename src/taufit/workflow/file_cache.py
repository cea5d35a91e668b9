"""Files of recordings, and what is known of them from earlier fits.

A file is known by its content (SHA-256) and by what was asked of it. Where results are kept, a file
that has not changed is not read: its conditioned samples are written anew only when a pass needs
them that has not been made before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from taufit.core.arrays import Array
from taufit.core.compute.cache import MISSING, Cache, digest
from taufit.core.compute.engines import Engine
from taufit.recording import Finding, Recording
from taufit.recording.files import FileSection, RecordingFiles
from taufit.signals.storage.result_cache import ResultCache
from taufit.signals.storage.stored_samples import StoredPart


@dataclass(frozen=True, slots=True, eq=False)
class PreparedFile:
    """One file's runs, conditioned.

    Attributes:
        parts: One per run.
        recordings: Without their rows.
        rate_hz: The file's own grid.
        findings: From conditioning.
        signed: Per joint, whether its torque carries its sign; None where all do.
    """

    parts: tuple[StoredPart, ...]
    recordings: tuple[Recording, ...]
    rate_hz: float
    findings: tuple[Finding, ...]
    signed: Array | None


Prepare = Callable[[list[Recording], Path], PreparedFile]


class FileCache:
    """Files and what is known of them.

    Args:
        files: What was given.
        cache: What is known; None for nothing.
    """

    def __init__(self, files: RecordingFiles, cache: Cache | None) -> None:
        self.files, self._cache = files, cache
        self._keys: dict[int, bytes] = {}
        self._lead = 0
        self._read_so = b"" if cache is None else cache.key(files.settings)

    def key(self, k: int) -> bytes:
        """Of a part's content and of how it is read."""
        assert self._cache is not None
        if k not in self._keys:
            part = self.files.parts[k]
            section = (part.first, part.last) if isinstance(part, FileSection) else ()
            path = part.path if isinstance(part, FileSection) else part
            content = self._cache.content(path)
            self._keys[k] = digest(self._read_so, content, path.name, section)
        return self._keys[k]

    def lead(self, rows: int) -> int:
        """How many files, from the first on, have so many rows together."""
        k = total = 0
        while k < len(self.files) and total < rows:
            total += self.of_first(1, "rows", _rows, start=k)
            k += 1
        self._lead = k
        return k

    def of_first(
        self, count: int, name: str, make: Callable[[list[Recording]], Any], start: int = 0
    ) -> Any:
        """make(runs of some files), read only where it is not known."""
        key = b""
        which = range(start, start + count)
        if self._cache is not None:
            key = digest(name, make, *(self.key(k) for k in which))
            known = self._cache.get(key)
            if known is not MISSING:
                return known
        value = make([one for k in which for one in self.files[k]])
        if self._cache is not None:
            self._cache.put(key, value)
        return value

    def prepared(self, prepare: Prepare, folder: Path, engine: Engine) -> Iterator[PreparedFile]:
        """Every file conditioned, in order; those that are known are not read."""
        count = len(self.files)
        tasks = [_File(self.files.only(k), prepare, folder / str(k)) for k in range(count)]
        if self._cache is None:
            yield from self._made(tasks, range(count), engine)
            return
        how = digest("prepared", prepare)
        keys = [digest(how, self.key(k)) for k in range(count)]
        there = self._cache.there(keys)
        made = self._made(tasks, [k for k in range(count) if keys[k] not in there], engine)
        for (key, value), task in zip(self._cache.in_order(keys, there), tasks, strict=True):
            if value is MISSING:
                value = next(made) if key not in there else _run(task)
                self._cache.put(key, value)
            yield _placed(value, key, task)

    def _made(
        self, tasks: Sequence[_File], which: Sequence[int], engine: Engine
    ) -> Iterator[PreparedFile]:
        """Some files, in order; the first ones were parsed in this process."""
        yield from (_run(tasks[k]) for k in which if k < self._lead)
        yield from engine.map(_run, ((tasks[k],) for k in which if k >= self._lead))

    def results(self, prepare: Prepare, *more: Any) -> ResultCache | None:
        """Where results on the files conditioned so are kept, if they are."""
        if self._cache is None:
            return None
        return ResultCache(self._cache, prepare, self.files.settings, *more)


def recorded_mounting(recordings: Sequence[Recording] | RecordingFiles, cache: Cache | None) -> Any:
    """How the arm was mounted, as the first recording says; None where it does not."""
    if not isinstance(recordings, RecordingFiles):
        return _mounting(recordings) if len(recordings) else None
    known = FileCache(recordings, None if recordings.settings is None else cache)
    return known.of_first(1, "mounting", _mounting)


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    files: RecordingFiles
    prepare: Prepare
    stem: Path


def _run(task: _File) -> PreparedFile:
    return task.prepare(task.files[0], task.stem)


def _placed(found: PreparedFile, key: bytes, task: _File) -> PreparedFile:
    """With parts in this fit's folder, where they are written when they are needed."""
    parts = tuple(
        replace(
            part,
            path=task.stem.with_name(f"{task.stem.name}_{i}.npy"),
            key=digest(key, i),
            rewrite=partial(_run, task),
        )
        for i, part in enumerate(found.parts)
    )
    return replace(found, parts=parts)


def _rows(runs: Sequence[Recording]) -> int:
    return sum(len(one.time) for one in runs)


def _mounting(runs: Sequence[Recording]) -> Any:
    return runs[0].meta.get("mounting")
