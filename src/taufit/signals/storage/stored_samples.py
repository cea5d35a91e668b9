"""Conditioned samples in files, for recordings larger than memory.

Each part has one array (quantity, sample, joint) of doubles and one of flags, memory-mapped while
in
use.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core import process_cleanup
from taufit.core.arrays import Array
from taufit.core.compute.engines import Engine, tree
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.recording.channels import Channels
from taufit.signals.sample_source import Add, SampleSource, SampleSummary, Step, canonical_order
from taufit.signals.samples import Samples
from taufit.signals.storage.column_cache import FileColumnCache
from taufit.signals.storage.result_cache import ResultCache, StepResultCache, is_cacheable

_STORED_FIELDS = ("position", "velocity", "acceleration", "torque", "friction_velocity")


@dataclass(frozen=True, slots=True, eq=False)
class StoredPart:
    """Part in its files.

    Attributes:
        path: File of the values; flags are in a file next to it.
        quantities: Names of the stored quantities, in order.
        start: Time of the first sample [s].
        head: Samples without rows.
        summary: Summary of the samples.
        key: Digest of the recording's content and the conditioning settings; b"" without cache.
        rewrite: Function that writes the files again if they were removed.
    """

    path: Path
    quantities: tuple[str, ...]
    start: float
    head: Samples
    summary: SampleSummary
    key: bytes = b""
    rewrite: Callable[[], object] | None = field(default=None, repr=False)

    @classmethod
    def write(cls, part: Samples, path: Path) -> StoredPart:
        """Write a part of one run."""
        values = {name: getattr(part, name) for name in _STORED_FIELDS}
        if part.raw_torque is not None and part.signed is not None and not np.all(part.signed):
            values["raw_torque"] = part.raw_torque
        values |= part.channels
        try:
            _save(_flags(path), np.column_stack([part.keep, part.in_motion]))
            _save(path, np.stack([*values.values()]))
        except OSError as error:
            raise TaufitError(
                f"conditioned samples could not be stored in {path.parent}: {error}. Make room "
                "there, or name another folder in TMPDIR."
            ) from None
        name = part.names[int(part.run[0])]
        head = replace(part.head(), names=(name,), findings=())
        return cls(path, tuple(values), float(part.time[0]), head, SampleSummary.from_samples(part))

    def samples(self) -> Samples:
        """Samples of the part, memory-mapped."""
        if self.rewrite is not None and not self.path.exists():
            self.rewrite()
        numbers = np.load(self.path, mmap_mode="r")
        flags = np.load(_flags(self.path))
        n = len(flags)
        arrays: dict[str, Any] = {
            name: values.view(np.ndarray)
            for name, values in zip(self.quantities, numbers, strict=True)
        }
        fields: dict[str, Any] = {
            name: arrays.get(name) for name in (*_STORED_FIELDS, "raw_torque")
        }
        part = replace(
            self.head,
            time=self.start + np.arange(n) / self.head.rate_hz,
            keep=np.ascontiguousarray(flags[:, :-1]),
            motion=np.ascontiguousarray(flags[:, -1]),
            run=np.zeros(n, np.int64),
            channels=Channels({name: arrays[name] for name in self.head.channels}),
            **fields,
        )
        return part.with_column_cache(FileColumnCache(self.path))


def _save(path: Path, numbers: Array) -> None:
    """Save atomically, since another process may read the file."""
    partial = path.with_suffix(f".{os.getpid()}.partial.npy")
    np.save(partial, numbers)
    os.replace(partial, path)


def _flags(path: Path) -> Path:
    return path.with_suffix(".flags.npy")


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    process_cleanup.unregister_path(folder)


class PartStore:
    """Folder of parts, removed when no longer referenced."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="taufit-"))
        process_cleanup.register_path(self.folder)
        self._remove = weakref.finalize(self, _remove_folder, self.folder)

    def close(self) -> None:
        self._remove()


class StoredSamples(SampleSource):
    """Source of parts in files.

    Args:
        parts: Parts in the order of the recordings.
        head: Samples without rows, shared by all parts.
        store: Folder of the parts; it exists as long as this object.
        engine: Engine that distributes passes to workers.
        callback: Called after each part of each pass.
        results: Cache of earlier results, or None.
    """

    def __init__(
        self,
        parts: Sequence[StoredPart],
        head: Samples,
        store: PartStore,
        engine: Engine,
        callback: Callable[[], None] | None = None,
        results: ResultCache | None = None,
    ) -> None:
        self.order = canonical_order([part.summary.part_keys[0] for part in parts])
        self.parts = tuple(parts[k] for k in self.order)
        self.head, self._store, self._engine, self._callback = head, store, engine, callback
        self._results = results
        self._transform: Callable[[Samples], Samples] | None = None

    def with_transform(self, transform: Callable[[Samples], Samples]) -> StoredSamples:
        """Copy of the source with a transform applied to every part before a step."""
        source = copy(self)
        source._transform = transform
        return source

    def __len__(self) -> int:
        return len(self.parts)

    def part(self, k: int) -> Samples:
        part = self.parts[k].samples()
        return part if self._transform is None else self._transform(part)

    @cached_property
    def summary(self) -> SampleSummary:
        return reduce(lambda a, b: a + b, (part.summary for part in self.parts))

    def map_parts(
        self, step: Step, arguments: Sequence[Any] | None = None, parts: Sequence[int] | None = None
    ) -> Iterator[Any]:
        part_numbers = range(len(self)) if parts is None else parts
        tasks = [(k, *(() if arguments is None else (arguments[k],))) for k in part_numbers]
        cache = self._step_cache(step)
        if cache is None:
            results = self._compute(step, tasks)
        else:
            keys = [cache.key(self.parts[k].key, *extra) for k, *extra in tasks]
            results = cache.get_or_compute(
                keys, lambda missing: self._compute(step, [tasks[i] for i in missing])
            )
        for result in results:
            yield result
            if self._callback is not None:
                self._callback()

    def _compute(self, step: Step, parts: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        tasks = ((step, self._transform, self.parts[k], *extra) for k, *extra in parts)
        return self._engine.map(_apply, tasks)

    def group_totals(self, step: Step, add: Add, groups: Sequence[Sequence[int]]) -> list[Any]:
        cache = self._step_cache(step, add)
        if cache is None:
            return super().group_totals(step, add, groups)
        keys = [part.key for part in self.parts]
        nodes = [tree(self.summary.part_keys, parts) for parts in groups]
        return cache.totals(nodes, keys, lambda leaves: self.map_parts(step, parts=leaves), add)

    def _step_cache(self, *key_data: Any) -> StepResultCache | None:
        """Result cache of a step; None if its results are not cached."""
        if self._results is None or not is_cacheable(key_data[0]):
            return None
        return self._results.for_step(*key_data, self._transform)

    def reuse_if_close(self, name: Any, value: Any, is_close: Callable[[Any, Any], bool]) -> Any:
        return (
            value if self._results is None else self._results.reuse_if_close(name, value, is_close)
        )

    @property
    def is_cached(self) -> bool:
        return self._results is not None

    def compute_on_excerpt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        cache = (
            None
            if self._results is None
            else self._results.for_step(function, arguments, self._transform)
        )
        if cache is None:
            return function(*arguments, self)
        used, samples_per_run = (
            (range(len(self)), 0) if self.excerpt_is_all else self._select_excerpt_runs()
        )
        key = cache.key(*(self.parts[k].key for k in used), samples_per_run)
        return next(cache.get_or_compute([key], lambda _: iter([function(*arguments, self)])))


def _apply(
    step: Step, transform: Callable[[Samples], Samples] | None, part: StoredPart, *arguments: Any
) -> Any:
    samples = part.samples()
    return step(samples if transform is None else transform(samples), *arguments)
