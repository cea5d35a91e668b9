"""Recording files with cached results of earlier fits.

A file is identified by its content (SHA-256) and the settings of reading. With a cache, unchanged
files are not read: their conditioned samples are rewritten only if a new pass needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.core.arrays import Array
from taufit.core.compute import cache as result_cache
from taufit.core.compute.engines import Engine
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording import Finding, Recording
from taufit.recording.files import FileSection, RecordingFiles

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.signals.storage.result_cache import ResultCache
    from taufit.signals.storage.stored_samples import StoredPart


@dataclass(frozen=True, slots=True, eq=False)
class PreparedFile:
    """Conditioned runs of one file.

    Attributes:
        parts: Conditioned parts, one per run.
        recordings: Recordings without their rows.
        rate_hz: Sampling rate of the file [Hz].
        findings: Findings of the conditioning.
        signed: Per joint, whether its torque has a sign; None if all have.
    """

    parts: tuple[StoredPart, ...]
    recordings: tuple[Recording, ...]
    rate_hz: float
    findings: tuple[Finding, ...]
    signed: Array | None


Prepare = Callable[[list[Recording], Path], PreparedFile]


class FileCache:
    """Files with cached results.

    Args:
        files: Recording files.
        cache: Cache; None for no caching.
    """

    def __init__(self, files: RecordingFiles, cache: Cache | None) -> None:
        self.files, self._cache = files, cache
        self._keys: dict[int, bytes] = {}
        self._lead = 0
        self._settings_key = b"" if cache is None else cache.key(files.settings)

    def file_key(self, k: int) -> bytes:
        """Key of a part's content and of the settings of reading."""
        assert self._cache is not None
        if k not in self._keys:
            part = self.files.parts[k]
            section = (part.first, part.last) if isinstance(part, FileSection) else ()
            path = part.path if isinstance(part, FileSection) else part
            content = [self._cache.content(p) for p in (path, *self.files.companions(path))]
            self._keys[k] = result_cache.digest(self._settings_key, content, path.name, section)
        return self._keys[k]

    def count_lead_files(self, rows: int) -> int:
        """Number of first files that contain at least so many rows."""
        k = total = 0
        while k < len(self.files) and total < rows:
            total += self.evaluate_files(1, "rows", _row_count, start=k)
            k += 1
        self._lead = k
        return k

    def evaluate_files(
        self, count: int, name: str, make: Callable[[list[Recording]], Any], start: int = 0
    ) -> Any:
        """Evaluate make(runs of some files), from the cache if possible."""
        key = b""
        indices = range(start, start + count)
        if self._cache is not None:
            key = result_cache.digest(name, make, *(self.file_key(k) for k in indices))
            cached = self._cache.get(key)
            if cached is not result_cache.MISSING:
                return cached
        value = make([recording for k in indices for recording in self.files[k]])
        if self._cache is not None:
            self._cache.put(key, value)
        return value

    def prepare_files(
        self, prepare: Prepare, folder: Path, engine: Engine
    ) -> Iterator[PreparedFile]:
        """All files conditioned, in order; cached ones are not read."""
        count = len(self.files)
        tasks = [
            _FileTask(self.files.single_part(k), prepare, folder / str(k)) for k in range(count)
        ]
        if self._cache is None:
            yield from self._prepare_uncached(tasks, range(count), engine)
            return
        step_key = result_cache.digest("prepared", prepare)
        keys = [result_cache.digest(step_key, self.file_key(k)) for k in range(count)]
        cached_keys = self._cache.existing_keys(keys)
        uncached = self._prepare_uncached(
            tasks, [k for k in range(count) if keys[k] not in cached_keys], engine
        )
        for (key, value), task in zip(self._cache.in_order(keys, cached_keys), tasks, strict=True):
            if value is result_cache.MISSING:
                value = next(uncached) if key not in cached_keys else _run_task(task)
                self._cache.put(key, value)
            yield _move_to_folder(value, key, task)

    def _prepare_uncached(
        self, tasks: Sequence[_FileTask], indices: Sequence[int], engine: Engine
    ) -> Iterator[PreparedFile]:
        """Condition some files, in order; the first ones were parsed in this process."""
        yield from (_run_task(tasks[k]) for k in indices if k < self._lead)
        yield from engine.map(_run_task, ((tasks[k],) for k in indices if k >= self._lead))

    def results(self, prepare: Prepare, *further: Any) -> ResultCache | None:
        """Cache of results on the conditioned files, if there is one."""
        if self._cache is None:
            return None
        from taufit.signals.storage.result_cache import ResultCache

        return ResultCache(self._cache, prepare, self.files.settings, *further)


def mounting_from_recordings(
    recordings: Sequence[Recording] | RecordingFiles, cache: Cache | None
) -> Any:
    """Mounting from the first readable recording; None if it has none."""
    if not isinstance(recordings, RecordingFiles):
        return _first_mounting(recordings) if len(recordings) else None
    file_cache = FileCache(recordings, None if recordings.settings is None else cache)
    for k in range(len(recordings)):
        try:
            return file_cache.evaluate_files(1, "mounting", _first_mounting, start=k)
        except RecordingError as error:
            if error.file is None or k == len(recordings) - 1:
                raise
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _FileTask:
    files: RecordingFiles
    prepare: Prepare
    stem: Path


def _run_task(task: _FileTask) -> PreparedFile:
    return task.prepare(task.files[0], task.stem)


def _move_to_folder(prepared: PreparedFile, key: bytes, task: _FileTask) -> PreparedFile:
    """Prepared file with parts in this fit's folder, written when needed."""
    parts = tuple(
        replace(
            part,
            path=task.stem.with_name(f"{task.stem.name}_{i}.npy"),
            key=result_cache.digest(key, i),
            rewrite=partial(_run_task, task),
        )
        for i, part in enumerate(prepared.parts)
    )
    return replace(prepared, parts=parts)


def _row_count(runs: Sequence[Recording]) -> int:
    return sum(len(run.time) for run in runs)


def _first_mounting(runs: Sequence[Recording]) -> Any:
    return runs[0].meta.get("mounting")
