"""A payload filter that is evaluated ten times per second of sample time."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.payload_filter import PayloadFilter

READ_PERIOD_S = 0.1


class PayloadReader:
    """Feeds a payload filter and evaluates it periodically; for recordings and live robots.

    Attributes:
        filter: The payload filter.
        newest: Newest estimate, None before the first.
        ready_at: Time when the first payload was first ready [s], or None.
        stopped_at: Time when it first had the required accuracy [s], or None.
    """

    def __init__(self, payload_filter: PayloadFilter) -> None:
        self.filter = payload_filter
        self.newest: PayloadEstimate | None = None
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self._origin: float | None = None
        self._due = READ_PERIOD_S

    def feed(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> PayloadEstimate | None:
        """Process one conditioned sample; return an estimate if one is due, else None."""
        bins_before = self.filter.bins
        self.filter.feed(time, position, velocity, torque, temperature)
        if self._origin is None:
            self._origin = time
        elapsed = time - self._origin
        # An estimate needs new time bins: the first update after the due time is evaluated.
        if elapsed < self._due or self.filter.bins == bins_before:
            return None
        self._due = float(np.floor(elapsed / READ_PERIOD_S) + 1.0) * READ_PERIOD_S
        return self._read()

    def finish(self) -> PayloadEstimate:
        """Process all samples that still wait for the next time bin and return the estimate."""
        self.filter.flush()
        return self._read()

    def _read(self) -> PayloadEstimate:
        payload_filter = self.filter
        self.newest = payload_filter.estimate()
        self.ready_at = payload_filter.ready_at if self.ready_at is None else self.ready_at
        self.stopped_at = payload_filter.stopped_at if self.stopped_at is None else self.stopped_at
        return self.newest
