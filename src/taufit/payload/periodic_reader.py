"""A payload filter that is evaluated ten times per second of sample time."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.payload_filter import PayloadFilter, finish_steps

READ_PERIOD_S = 0.1
# Fewest samples in a time bin with which an evaluation is spread over the samples after it.
_MIN_SAMPLES_PER_BIN = 4


class PayloadReader:
    """Feeds a payload filter and evaluates it periodically; for recordings and live robots.

    Args:
        payload_filter: The filter.
        spread: Whether to spread an evaluation over the five or six samples after the one that
            made it due, for control loops. Estimates are the same, and come before the next time
            bin is processed.

    Attributes:
        filter: The payload filter.
        newest: Newest estimate, None before the first.
        ready_at: Time when the first payload was first ready [s], or None.
        stopped_at: Time when it first had the required accuracy [s], or None.
    """

    def __init__(self, payload_filter: PayloadFilter, *, spread: bool = False) -> None:
        self.filter = payload_filter
        self.newest: PayloadEstimate | None = None
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self._origin: float | None = None
        self._due = READ_PERIOD_S
        self._spread, self._last_time = spread, np.inf
        self._pending: Generator[None, None, PayloadEstimate] | None = None

    def feed(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> PayloadEstimate | None:
        """Process one conditioned sample; return an estimate if one is due, else None."""
        is_dense = _MIN_SAMPLES_PER_BIN * (time - self._last_time) <= 1.01 * self.filter.step
        self._last_time = time
        estimate = None if self._pending is None else self._advance(is_dense)
        bins_before = self.filter.bins
        self.filter.feed(time, position, velocity, torque, temperature)
        if self._origin is None:
            self._origin = time
        elapsed = time - self._origin
        # An estimate needs new time bins: the first update after the due time is evaluated.
        if elapsed < self._due or self.filter.bins == bins_before:
            return estimate
        self._due = float(np.floor(elapsed / READ_PERIOD_S) + 1.0) * READ_PERIOD_S
        self._pending = self.filter.estimate_steps()
        return estimate if self._spread and is_dense else self._advance(False)

    def finish(self) -> PayloadEstimate:
        """Process all samples that still wait for the next time bin and return the estimate."""
        if self._pending is not None:
            self._advance(False)
        self.filter.flush()
        return self._store(self.filter.estimate())

    def _advance(self, by_one: bool) -> PayloadEstimate | None:
        """Go on with the pending evaluation, by one part or to its end; return its estimate."""
        assert self._pending is not None
        if not by_one:
            estimate = finish_steps(self._pending)
        else:
            try:
                return next(self._pending)
            except StopIteration as stop:
                estimate = stop.value
        self._pending = None
        return self._store(estimate)

    def _store(self, estimate: PayloadEstimate) -> PayloadEstimate:
        payload_filter = self.filter
        self.newest = estimate
        self.ready_at = payload_filter.ready_at if self.ready_at is None else self.ready_at
        self.stopped_at = payload_filter.stopped_at if self.stopped_at is None else self.stopped_at
        return estimate
