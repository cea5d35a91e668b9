"""Conditioned samples in files, for passes over more than memory should hold.

Each part is one array (quantity, sample, joint) of doubles and one of flags, mapped into memory
while it is worked on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core import ending
from taufit.core.arrays import Array
from taufit.core.compute.engines import Engine, tree
from taufit.core.errors import TaufitError
from taufit.recording.channels import Channels
from taufit.signals.sample_source import Add, SampleSource, Step, Summary, canonical
from taufit.signals.samples import Samples
from taufit.signals.stored.column_cache import FileColumnCache
from taufit.signals.stored.result_cache import ResultCache, StepResultCache, is_cacheable

_ALWAYS = ("position", "velocity", "acceleration", "torque", "friction_velocity")


@dataclass(frozen=True, slots=True, eq=False)
class StoredPart:
    """One part in its files.

    Attributes:
        path: Of the numbers; flags lie beside them.
        quantities: What the numbers are, in order.
        start: Time of the first sample [s].
        head: Everything but the samples.
        summary: Of the samples.
        key: Of the recording's content and all that was done to it; b"" where nobody asked.
        again: Writes the files where they are not there any more.
    """

    path: Path
    quantities: tuple[str, ...]
    start: float
    head: Samples
    summary: Summary
    key: bytes = b""
    again: Callable[[], object] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, part: Samples, path: Path) -> StoredPart:
        """Write a part of one run."""
        values = {name: getattr(part, name) for name in _ALWAYS}
        if part.raw_torque is not None and part.signed is not None and not np.all(part.signed):
            values["raw_torque"] = part.raw_torque
        values |= part.channels
        try:
            _saved(_flags(path), np.column_stack([part.keep, part.in_motion]))
            _saved(path, np.stack([*values.values()]))
        except OSError as error:
            raise TaufitError(
                f"conditioned samples could not be stored in {path.parent}: {error}. Make room "
                "there, or name another folder in TMPDIR."
            ) from None
        name = part.names[int(part.run[0])]
        head = replace(part.head(), names=(name,), findings=())
        return cls(path, tuple(values), float(part.time[0]), head, Summary.of(part))

    def samples(self) -> Samples:
        """The part, its numbers read as they are used."""
        if self.again is not None and not self.path.exists():
            self.again()
        numbers = np.load(self.path, mmap_mode="r")
        flags = np.load(_flags(self.path))
        n = len(flags)
        given: dict[str, Any] = {
            name: values.view(np.ndarray)
            for name, values in zip(self.quantities, numbers, strict=True)
        }
        fields: dict[str, Any] = {name: given.get(name) for name in (*_ALWAYS, "raw_torque")}
        part = replace(
            self.head,
            time=self.start + np.arange(n) / self.head.rate_hz,
            keep=np.ascontiguousarray(flags[:, :-1]),
            motion=np.ascontiguousarray(flags[:, -1]),
            run=np.zeros(n, np.int64),
            channels=Channels({name: given[name] for name in self.head.channels}),
            **fields,
        )
        return part.keeping(FileColumnCache(self.path))


def _saved(path: Path, numbers: Array) -> None:
    """Whole or not at all: another process may be looking for it."""
    partial = path.with_suffix(f".{os.getpid()}.partial.npy")
    np.save(partial, numbers)
    os.replace(partial, path)


def _flags(path: Path) -> Path:
    return path.with_suffix(".flags.npy")


def _removed(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    ending.drop(folder)


class Store:
    """A folder of parts that goes when nobody needs it any more."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="taufit-"))
        ending.keep(self.folder)
        self._remove = weakref.finalize(self, _removed, self.folder)

    def close(self) -> None:
        self._remove()


class StoredSamples(SampleSource):
    """Parts in files.

    Args:
        parts: As the recordings were given.
        head: What they share.
        store: The folder they lie in; it lasts as long as this does.
        engine: That shares passes among workers.
        watch: Called after each part of each pass.
        results: What earlier passes found, where that is kept.
    """

    def __init__(
        self,
        parts: Sequence[StoredPart],
        head: Samples,
        store: Store,
        engine: Engine,
        watch: Callable[[], None] | None = None,
        results: ResultCache | None = None,
    ) -> None:
        self.order = canonical([part.summary.keys[0] for part in parts])
        self.parts = tuple(parts[k] for k in self.order)
        self.head, self._store, self._engine, self._watch = head, store, engine, watch
        self._results = results
        self._change: Callable[[Samples], Samples] | None = None

    def changed(self, change: Callable[[Samples], Samples]) -> StoredSamples:
        """The same source, with every part changed on its way to a step."""
        other = copy(self)
        other._change = change
        return other

    def __len__(self) -> int:
        return len(self.parts)

    def part(self, k: int) -> Samples:
        part = self.parts[k].samples()
        return part if self._change is None else self._change(part)

    @cached_property
    def summary(self) -> Summary:
        return reduce(lambda a, b: a + b, (part.summary for part in self.parts))

    def each(
        self, step: Step, given: Sequence[Any] | None = None, parts: Sequence[int] | None = None
    ) -> Iterator[Any]:
        which = range(len(self)) if parts is None else parts
        things = [(k, *(() if given is None else (given[k],))) for k in which]
        kept = self._kept(step)
        if kept is None:
            found = self._made(step, things)
        else:
            keys = [kept.of(self.parts[k].key, *own) for k, *own in things]
            found = kept.filled(
                keys, lambda missing: self._made(step, [things[i] for i in missing])
            )
        for result in found:
            yield result
            if self._watch is not None:
                self._watch()

    def _made(self, step: Step, things: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        tasks = ((step, self._change, self.parts[k], *own) for k, *own in things)
        return self._engine.map(_applied, tasks)

    def totals(self, step: Step, add: Add, groups: Sequence[Sequence[int]]) -> list[Any]:
        kept = self._kept(step, add)
        if kept is None:
            return super().totals(step, add, groups)
        keys = [part.key for part in self.parts]
        nodes = [tree(self.summary.keys, parts) for parts in groups]
        return kept.totals(nodes, keys, lambda leaves: self.each(step, parts=leaves), add)

    def _kept(self, *decisive: Any) -> StepResultCache | None:
        """Where results of a step are kept, if they are."""
        if self._results is None or not is_cacheable(decisive[0]):
            return None
        return self._results.of_step(*decisive, self._change)

    def settled(self, name: Any, value: Any, near: Callable[[Any, Any], bool]) -> Any:
        return value if self._results is None else self._results.settled(name, value, near)

    def of_excerpt(self, make: Callable[..., Any], *given: Any) -> Any:
        kept = None if self._results is None else self._results.of_step(make, given, self._change)
        if kept is None:
            return make(*given, self)
        used, most = (range(len(self)), 0) if self.excerpt_is_all else self._chosen()
        key = kept.of(*(self.parts[k].key for k in used), most)
        return next(kept.filled([key], lambda _: iter([make(*given, self)])))


def _applied(
    step: Step, change: Callable[[Samples], Samples] | None, part: StoredPart, *given: Any
) -> Any:
    samples = part.samples()
    return step(samples if change is None else change(samples), *given)
