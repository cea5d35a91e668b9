"""Sources of conditioned samples that are processed part by part.

All quantities of a fit are sums over parts. A source gives one part at a time, in this process or
in
workers; only results of steps are stored. Results arrive in the order of the parts, so sums are
bit-equal for any number of processes.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.compute.engines.engine import hash_key, sum_along_tree, tree
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.signals.samples import Samples

# Largest number of samples in an excerpt, used for friction shapes, noise models and plots: two
# minutes at 250 Hz.
MAX_EXCERPT_SAMPLES = 2**15
# Largest number of samples gathered in memory: nine minutes at 250 Hz, less than 2 GB with the
# columns of six joints.
MAX_GATHERED_SAMPLES = 2**17
# Number of runs above which folds are assigned by hash; they are then about equally large.
_HASHED_FOLD_RUNS = 400
# Smallest number of samples per run in an excerpt.
_MIN_RUN_SAMPLES = 2**11
# Largest growth of the number of runs at which an earlier fit's excerpt is used again.
_EXCERPT_GROWTH = 4.0 / 3.0

Step = Callable[..., Any]
Add = Callable[[Any, Any], Any]
ProgressCallback = Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class MotionRange:
    """Minimum and maximum per joint over the samples in motion."""

    low: Float[Array, " j"]
    high: Float[Array, " j"]

    @classmethod
    def from_values(cls, values: Float[Array, "n j"]) -> MotionRange:
        if len(values) == 0:
            undefined = np.full(values.shape[1], np.nan)
            return cls(undefined, undefined)
        return cls(values.min(axis=0), values.max(axis=0))

    def __or__(self, other: MotionRange) -> MotionRange:
        return MotionRange(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    @property
    def width(self) -> Float[Array, " j"]:
        """Difference of maximum and minimum; 0 without samples."""
        return np.asarray(np.nan_to_num(self.high - self.low))


@dataclass(frozen=True, slots=True, eq=False)
class SampleSummary:
    """Counts, ranges and torque statistics of samples.

    Attributes:
        samples: Number of samples.
        kept_rows: Number of rows to be fitted, per joint.
        kept_moving: Number of rows to be fitted that are in motion, per joint.
        used_samples: Number of samples with any row to be fitted.
        moving_samples: Number of samples in motion.
        ranges: Ranges of position, velocity, acceleration, torque and slow channels in motion.
        torque_mean, torque_square_sum: Mean of the fitted torque, and sum of squares about it, per
            joint [N m].
        part_keys: Content hash of each part.
        part_lengths: Number of samples of each part.
    """

    samples: int
    kept_rows: Int[Array, " j"]
    kept_moving: Int[Array, " j"]
    used_samples: int
    moving_samples: int
    ranges: dict[str, MotionRange]
    torque_mean: Float[Array, " j"]
    torque_square_sum: Float[Array, " j"]
    part_keys: tuple[int, ...]
    part_lengths: tuple[int, ...]
    used_part_lengths: tuple[int, ...]

    @classmethod
    def from_samples(cls, part: Samples) -> SampleSummary:
        moving = part.in_motion
        kept = part.keep.sum(axis=0)
        torque = np.where(part.keep, part.torque, 0.0)
        mean = torque.sum(axis=0) / np.maximum(kept, 1)
        used = int(np.count_nonzero(part.keep.any(axis=1)))
        motion = {"position": part.position, "velocity": part.velocity}
        motion |= {"acceleration": part.acceleration, "torque": part.torque}
        return cls(
            samples=len(part),
            kept_rows=kept,
            kept_moving=(part.keep & moving[:, None]).sum(axis=0),
            used_samples=used,
            moving_samples=int(np.count_nonzero(moving)),
            ranges={
                name: MotionRange.from_values(values[moving])
                for name, values in {**motion, **part.channels}.items()
            },
            torque_mean=mean,
            torque_square_sum=np.sum(np.where(part.keep, torque - mean, 0.0) ** 2, axis=0),
            part_keys=(content_hash(part.torque),),
            part_lengths=(len(part),),
            used_part_lengths=(used,),
        )

    def __add__(self, other: SampleSummary) -> SampleSummary:
        count = np.maximum(self.kept_rows + other.kept_rows, 1)
        mean_difference = other.torque_mean - self.torque_mean
        merged_extents = {
            name: extent | other.ranges[name]
            for name, extent in self.ranges.items()
            if name in other.ranges
        }
        return SampleSummary(
            self.samples + other.samples,
            self.kept_rows + other.kept_rows,
            self.kept_moving + other.kept_moving,
            self.used_samples + other.used_samples,
            self.moving_samples + other.moving_samples,
            merged_extents,
            (self.kept_rows * self.torque_mean + other.kept_rows * other.torque_mean) / count,
            self.torque_square_sum
            + other.torque_square_sum
            + mean_difference**2 * self.kept_rows * other.kept_rows / count,
            self.part_keys + other.part_keys,
            self.part_lengths + other.part_lengths,
            self.used_part_lengths + other.used_part_lengths,
        )

    @property
    def torque_std(self) -> Float[Array, " j"]:
        """Standard deviation of the fitted torque per joint [N m]."""
        return np.asarray(np.sqrt(self.torque_square_sum / np.maximum(self.kept_rows, 1)))


class SampleSource(ABC):
    """Conditioned recordings of one robot, in parts with one grid and one low-pass.

    Attributes:
        head: Samples without rows: rate, cut-off, gains and names shared by all parts.
        order: Index of each part among the given runs. Parts are sorted by content, so that sums
            are
            bit-equal for any order of the recordings.
    """

    head: Samples
    order: tuple[int, ...]

    @abstractmethod
    def __len__(self) -> int:
        """Number of parts."""

    @abstractmethod
    def map_parts(
        self, step: Step, arguments: Sequence[Any] | None = None, parts: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Iterate step(part), or step(part, arguments[k]), over all parts or the given ones, in
        order.
        """

    def total(self, step: Step, add: Add) -> Any:
        """Sum of step(part) over all parts, in an order determined by their content."""
        return self.group_totals(step, add, [range(len(self))])[0]

    def group_totals(self, step: Step, add: Add, groups: Sequence[Sequence[int]]) -> list[Any]:
        """Sums over several groups of parts, in one pass."""
        nodes = [tree(self.summary.part_keys, parts) for parts in groups]
        results = self.map_parts(step, parts=[k for node in nodes for k in node.all_leaves()])
        return [sum_along_tree(node, results, add) for node in nodes]

    def reuse_if_close(self, name: Any, value: Any, is_close: Callable[[Any, Any], bool]) -> Any:
        """Return the value of an earlier fit if `value` is close to it, else `value`.

        Results that depend on the parameters being fitted are cached for the earlier parameters.
        They can
        be reused as long as `is_close(value, earlier)`.
        """
        return value

    @property
    def is_cached(self) -> bool:
        """Whether results are kept for later fits."""
        return False

    def compute_on_excerpt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Compute function(*arguments, self), which depends on the excerpt only."""
        return function(*arguments, self)

    @abstractmethod
    def part(self, k: int) -> Samples:
        """Samples of part k."""

    @property
    def joints(self) -> int:
        return self.head.joints

    @property
    def rate_hz(self) -> float:
        return self.head.rate_hz

    @property
    def cutoff_hz(self) -> float:
        return self.head.cutoff_hz

    @property
    def names(self) -> tuple[str, ...]:
        return self.head.names

    @property
    def filter_correlation_length(self) -> float:
        """Number of samples correlated by the low-pass."""
        return max(1.0, self.rate_hz / (2.0 * min(self.cutoff_hz, 0.5 * self.rate_hz)))

    @cached_property
    def summary(self) -> SampleSummary:
        total: SampleSummary = reduce(
            lambda a, b: a + b, self.map_parts(SampleSummary.from_samples)
        )
        return total

    @cached_property
    def excerpt(self) -> Samples:
        """Middle samples of runs, at most `MAX_EXCERPT_SAMPLES`; all samples if there are no more.

        The selection does not depend on the order of the recordings. The runs of an earlier fit's
        excerpt stay until a third more have been added.
        """
        summary = self.summary
        if summary.samples <= MAX_EXCERPT_SAMPLES:
            return self.part(0) if len(self) == 1 else self._join_parts(range(len(self)))
        # As many runs as possible, since each may move joints that others do not.
        used, samples_per_run = self._select_excerpt_runs()
        return self._join_parts(used, samples_per_run)

    def _select_excerpt_runs(self) -> tuple[list[int], int]:
        """Runs of an excerpt, drawn by content hash, and the number of samples of each."""
        summary = self.summary
        max_runs = max(MAX_EXCERPT_SAMPLES // _MIN_RUN_SAMPLES, 1)
        order = sorted(range(len(self)), key=lambda k: (hash_key(summary.part_keys[k]), k))
        order = [k for k in order if summary.used_part_lengths[k] > 0]
        drawn = [summary.part_keys[k] for k in order[:max_runs]], len(self)
        keys, _ = self.reuse_if_close("excerpt", drawn, self._is_same_excerpt)
        used = [k for k in order if summary.part_keys[k] in keys][:max_runs]
        return sorted(used), MAX_EXCERPT_SAMPLES // max(len(used), 1)

    def _is_same_excerpt(self, drawn: tuple[list[int], int], cached: tuple[list[int], int]) -> bool:
        """Whether an earlier excerpt's runs are all present, and few have been added since."""
        return set(cached[0]) <= set(self.summary.part_keys) and (
            cached[1] <= drawn[1] <= _EXCERPT_GROWTH * cached[1]
        )

    @property
    def excerpt_is_all(self) -> bool:
        return self.summary.samples <= MAX_EXCERPT_SAMPLES

    def gather(self) -> Samples:
        """All samples in memory, in the order of the recordings."""
        return self._join_parts(canonical_order(self.order))

    def gather_limited(self, purpose: str) -> Samples:
        """All samples in memory; raises if there are more than `MAX_GATHERED_SAMPLES`.

        Args:
            purpose: Method that needs all samples, for the message.
        """
        count = self.summary.samples
        if count > MAX_GATHERED_SAMPLES:
            minutes = MAX_GATHERED_SAMPLES / self.rate_hz / 60.0
            raise RecordingError(
                f"{purpose} looks at all samples at once: {count:,} are too many for that, "
                f"{MAX_GATHERED_SAMPLES:,} ({minutes:.0f} min at {self.rate_hz:g} Hz) are "
                "possible. Give fewer "
                "recordings, or shorter parts of them (--from, --to)."
            )
        return self.gather()

    def _join_parts(self, parts: Iterable[int], max_samples: int | None = None) -> Samples:
        """Concatenate parts under their names; only the middle of parts above `max_samples`."""
        size = None if max_samples is None else 1 << (max(max_samples, 1) - 1).bit_length()
        excerpts = [
            part
            if max_samples is None
            else part.rows(middle_samples(length, middle, max_samples, size))
            for part, length, middle in self.map_parts(PartExcerpt(size), parts=tuple(parts))
        ]
        return replace(
            Samples.concatenate(excerpts), findings=self.head.findings
        ).with_column_cache()


class SamplesInMemory(SampleSource):
    """Source of samples that are in memory."""

    def __init__(self, samples: Samples) -> None:
        self.samples = (
            samples if samples.valid_column_cache is not None else samples.with_column_cache()
        )
        self.head = samples.head()
        runs = samples.run_slices()
        self.order = canonical_order([content_hash(samples.torque[run]) for run in runs])
        self._parts = (
            (self.samples,)
            if len(runs) == 1
            else tuple(samples.rows(runs[k]).with_column_cache() for k in self.order)
        )

    def __len__(self) -> int:
        return len(self._parts)

    def part(self, k: int) -> Samples:
        return self._parts[k]

    def gather(self) -> Samples:
        return self.samples

    def map_parts(
        self, step: Step, arguments: Sequence[Any] | None = None, parts: Sequence[int] | None = None
    ) -> Iterator[Any]:
        for k in range(len(self)) if parts is None else parts:
            yield step(self.part(k)) if arguments is None else step(self.part(k), arguments[k])


@dataclass(frozen=True, slots=True)
class PartExcerpt:
    """Step that returns a part under its name, or its middle samples if it is long.

    With its number of samples and the middle one of those in use, from which fewer samples follow:
    the number that runs share differs with every further run, kept results do not.

    Attributes:
        max_samples: Largest number of samples; None for all.
    """

    max_samples: int | None = None

    @property
    def small(self) -> bool:
        """Whether the result is small enough to cache."""
        return self.max_samples is not None

    def __call__(self, part: Samples) -> tuple[Samples, int, int]:
        length, middle = len(part), 0
        if self.max_samples is not None:
            used = np.flatnonzero(part.keep.any(axis=1))
            middle = int(np.median(used)) if len(used) else 0
            part = part.rows(middle_samples(length, middle, self.max_samples))
        name = part.names[int(part.run[0])] if len(part) else part.names[0]
        run_index = np.zeros(len(part), np.int64)
        excerpt = replace(
            part, names=(name,), run=run_index, findings=(), column_cache=None, cached_motion=()
        )
        return excerpt, length, middle


def middle_samples(length: int, middle: int, count: int, excerpt: int | None = None) -> slice:
    """Indices of some samples about the middle one, in the part or in its longer excerpt."""
    first, offset = (
        max(0, min(middle - size // 2, length - size)) for size in (count, excerpt or length)
    )
    return slice(first - offset, first - offset + count)


def content_hash(torque: Float[Array, "n j"]) -> int:
    """Content hash of a part."""
    return (len(torque) << 32) + zlib.crc32(np.ascontiguousarray(torque).tobytes())


def canonical_order(keys: Sequence[int]) -> tuple[int, ...]:
    """Permutation that sorts the keys; independent of their given order."""
    return tuple(sorted(range(len(keys)), key=lambda k: (keys[k], k)))


def as_source(samples: Samples | SampleSource) -> SampleSource:
    """Convert samples to a source, if necessary."""
    return samples if isinstance(samples, SampleSource) else SamplesInMemory(samples)


def fold_plan(source: SampleSource, max_folds: int = 20, sections: int = 6) -> list[list[Fold]]:
    """Folds for cross-validation: runs, or sections if there are fewer than three runs.

    With three runs or more every run is a fold, or groups of runs if there are more than
    `max_folds`; groups do not depend on the order of the runs. Otherwise the samples in use are
    split into `sections`.
    """
    summary = source.summary
    parts = len(source)
    if parts >= 3:
        # Parts are sorted by content, so groups do not depend on the given order; hashed groups
        # stay equal when a part is added.
        group = [
            hash_key(key) % max_folds if parts > _HASHED_FOLD_RUNS else k % max_folds
            for k, key in enumerate(summary.part_keys)
        ]
        return [[Fold(group[k], 0.0, np.inf)] for k in range(parts)]
    edges = np.linspace(0, summary.used_samples, sections + 1)
    out = []
    before = 0
    for used in summary.used_part_lengths:
        out.append(
            [
                Fold(k, edges[k] - before if k else -np.inf, edges[k + 1] - before)
                for k in range(sections)
            ]
        )
        out[-1][-1] = replace(out[-1][-1], stop_count=np.inf)
        before += used
    return out


@dataclass(frozen=True, slots=True)
class Fold:
    """Section of a part, given by counts of its samples in use.

    Attributes:
        index: Number of the fold.
        start_count, stop_count: Counts of samples in use at which the section begins and ends.
    """

    index: int
    start_count: float
    stop_count: float

    @property
    def is_whole_part(self) -> bool:
        """Whether the section is the whole part."""
        return self.start_count <= 0.0 and self.stop_count == np.inf

    def index_range(self, used: Bool[Array, " n"]) -> tuple[int, int]:
        """Indices of the first sample and after the last one."""
        if self.is_whole_part:
            return 0, len(used)
        counts = np.cumsum(used)
        low = 0 if self.start_count <= 0.0 else int(np.searchsorted(counts, self.start_count))
        high = (
            len(used)
            if np.isinf(self.stop_count)
            else int(np.searchsorted(counts, self.stop_count))
        )
        return low, max(low, high)
