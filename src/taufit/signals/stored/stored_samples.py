"""Conditioned samples in files, for passes over more than memory should hold.

Each part is one array (quantity, sample, joint) of doubles and one of flags, mapped into memory
while it is worked on.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np

from taufit.errors import TaufitError
from taufit.signals.sample_source import SampleSource, Step, Summary, canonical
from taufit.signals.samples import Samples
from taufit.signals.stored.kept import KeptInFiles
from taufit.signals.workers import Workers

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
    """

    path: Path
    quantities: tuple[str, ...]
    start: float
    head: Samples
    summary: Summary

    @classmethod
    def of(cls, part: Samples, path: Path) -> StoredPart:
        """Write a part of one run."""
        names = [*_ALWAYS]
        if part.temperature is not None:
            names.append("temperature")
        if part.signed is not None and not np.all(part.signed):
            names.append("raw_torque")
        names = [name for name in names if getattr(part, name) is not None]
        try:
            np.save(path, np.stack([getattr(part, name) for name in names]))
            np.save(_flags(path), np.column_stack([part.keep, part.in_motion]))
        except OSError as error:
            raise TaufitError(
                f"conditioned samples could not be stored in {path.parent}: {error}. Make room "
                "there, or name another folder in TMPDIR."
            ) from None
        name = part.names[int(part.run[0])]
        head = replace(part.head(), names=(name,), findings=())
        return cls(path, tuple(names), float(part.time[0]), head, Summary.of(part))

    def samples(self) -> Samples:
        """The part, its numbers read as they are used."""
        numbers = np.load(self.path, mmap_mode="r")
        flags = np.load(_flags(self.path))
        n = len(flags)
        given = {
            name: values.view(np.ndarray)
            for name, values in zip(self.quantities, numbers, strict=True)
            if getattr(self.head, name) is not None
        }
        given.setdefault("raw_torque", None)
        part = replace(
            self.head,
            time=self.start + np.arange(n) / self.head.rate_hz,
            keep=np.ascontiguousarray(flags[:, :-1]),
            motion=np.ascontiguousarray(flags[:, -1]),
            run=np.zeros(n, np.int64),
            **given,
        )
        return part.keeping(KeptInFiles(self.path))


def _flags(path: Path) -> Path:
    return path.with_suffix(".flags.npy")


class Store:
    """A folder of parts that goes when nobody needs it any more."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="taufit-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def close(self) -> None:
        self._remove()


class StoredSamples(SampleSource):
    """Parts in files.

    Args:
        parts: As the recordings were given.
        head: What they share.
        store: The folder they lie in; it lasts as long as this does.
        workers: Processes to share passes among.
        watch: Called after each part of each pass.
        change: Done to every part before a step sees it.
    """

    def __init__(
        self,
        parts: Sequence[StoredPart],
        head: Samples,
        store: Store,
        workers: Workers,
        watch: Callable[[], None] | None = None,
        change: Callable[[Samples], Samples] | None = None,
    ) -> None:
        self.order = canonical([part.summary.keys[0] for part in parts])
        self.parts = tuple(parts[k] for k in self.order)
        self.head, self._store = head, store
        self._workers, self._watch, self._change = workers, watch, change

    def changed(self, change: Callable[[Samples], Samples]) -> StoredSamples:
        """The same source, with every part changed on its way to a step."""
        return StoredSamples(self.parts, self.head, self._store, self._workers, self._watch, change)

    def __len__(self) -> int:
        return len(self.parts)

    def part(self, k: int) -> Samples:
        part = self.parts[k].samples()
        return part if self._change is None else self._change(part)

    @cached_property
    def summary(self) -> Summary:
        return reduce(lambda a, b: a + b, (part.summary for part in self.parts))

    def each(self, step: Step, given: Sequence[Any] | None = None) -> Iterator[Any]:
        things = (
            (step, self._change, part, *(() if given is None else (given[k],)))
            for k, part in enumerate(self.parts)
        )
        for result in self._workers.map(_applied, things):
            yield result
            if self._watch is not None:
                self._watch()


def _applied(
    step: Step, change: Callable[[Samples], Samples] | None, part: StoredPart, *given: Any
) -> Any:
    samples = part.samples()
    return step(samples if change is None else change(samples), *given)
