"""Cache of results of passes over parts.

A pass applies a step to every part. A result is determined by the step with its parameters and by
the
content of the part, a sum by those of its parts; the cache key is a digest of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taufit.core.compute.cache import MISSING, Cache, digest
from taufit.core.compute.engines.engine import ReductionNode

ComputeMissing = Callable[[Sequence[int]], Iterator[Any]]


def is_cacheable(step: Any) -> bool:
    """Whether the results of a step are small; steps that return samples set `small` to False."""
    inner = getattr(step, "step", None)
    return bool(getattr(step, "small", True)) and (inner is None or is_cacheable(inner))


class ResultCache:
    """Results for one set of conditioning settings.

    Args:
        cache: Storage of the results.
        context: Settings that determine conditioning.
    """

    def __init__(self, cache: Cache, *context: Any) -> None:
        self.cache, self._context = cache, cache.key(*context)

    def for_step(self, *key_data: Any) -> StepResultCache | None:
        """Cache of the results of one step; None if the step has no digest."""
        try:
            return StepResultCache(self.cache, self.cache.key(*key_data))
        except TypeError:
            return None

    def reuse_if_close(self, name: Any, value: Any, is_close: Callable[[Any, Any], bool]) -> Any:
        """Return the cached value if `value` is close to it; else store and return `value`."""
        try:
            key = digest(self._context, name)
        except TypeError:
            return value
        cached = self.cache.get(key)
        if cached is not MISSING and is_close(value, cached):
            return cached
        self.cache.put(key, value)
        return value


class StepResultCache:
    """Cached results of one step.

    Args:
        cache: Storage of the results.
        step: Digest of the step.
    """

    def __init__(self, cache: Cache, step: bytes) -> None:
        self._cache, self._step = cache, step

    def key(self, *key_data: Any) -> bytes:
        """Key of a result."""
        return digest(self._step, *key_data)

    def get_or_compute(self, keys: Sequence[bytes], compute: ComputeMissing) -> Iterator[Any]:
        """Iterate the results of keys, in order; missing ones are computed together."""
        stored_keys = self._cache.existing_keys(keys)
        missing = [i for i, key in enumerate(keys) if key not in stored_keys]
        computed = compute(missing) if missing else iter(())
        for i, (key, value) in enumerate(self._cache.in_order(keys, stored_keys)):
            if value is MISSING:
                # A damaged entry is computed again.
                value = next(computed if key not in stored_keys else compute([i]))
                self._cache.put(key, value)
            yield value

    def totals(
        self,
        nodes: Sequence[ReductionNode],
        keys: Sequence[bytes],
        map_parts: Callable[[Sequence[int]], Iterator[Any]],
        add: Callable[[Any, Any], Any],
    ) -> list[Any]:
        """Sum over each tree; sums over unchanged branches are cached."""
        node_keys: dict[ReductionNode, bytes] = {}
        missing: list[int] = []
        for node in nodes:
            self._find_missing(node, keys, node_keys, missing)
        if missing:
            # Computed together, to keep all workers busy; `map_parts` stores the results.
            for _ in map_parts(missing):
                pass
        return [self._sum(node, node_keys, map_parts, add) for node in nodes]

    def _find_missing(
        self,
        node: ReductionNode,
        keys: Sequence[bytes],
        node_keys: dict[ReductionNode, bytes],
        missing: list[int],
    ) -> None:
        node_keys[node] = self.key("sum", *(keys[k] for k in node.all_leaves()))
        if self._cache.existing_keys([node_keys[node]]):
            return
        missing += node.leaves
        for child in node.children:
            self._find_missing(child, keys, node_keys, missing)

    def _sum(
        self,
        node: ReductionNode,
        node_keys: dict[ReductionNode, bytes],
        map_parts: Callable[[Sequence[int]], Iterator[Any]],
        add: Callable[[Any, Any], Any],
    ) -> Any:
        value = self._cache.get(node_keys[node]) if node in node_keys else MISSING
        if value is not MISSING:
            return value
        total: Any = None
        parts = map_parts(node.leaves) if node.leaves else iter(())
        branches = (self._sum(child, node_keys, map_parts, add) for child in node.children)
        for number, part in enumerate([*parts, *branches]):
            total = part if number == 0 else add(total, part)
        if node in node_keys:
            self._cache.put(node_keys[node], total)
        return total
