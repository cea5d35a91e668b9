"""A payload filter that is read out ten times a second of its samples' own time."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.payload_filter import PayloadFilter

READ_PERIOD_S = 0.1


class PayloadReader:
    """Feeds a filter and reads it, the same for files and for robots that are on.

    Attributes:
        filter: What is fed.
        newest: The newest estimate, or None before the first.
        ready_at, stopped_at: When the first payload was first worth reading, and as well known as
            wanted [s], or None.
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
        """One clean sample; the estimate where it is time for one."""
        bins_before = self.filter.bins
        self.filter.feed(time, position, velocity, torque, temperature)
        if self._origin is None:
            self._origin = time
        elapsed = time - self._origin
        # Nothing is read twice from the same cells: the first chunk after the time is read.
        if elapsed < self._due or self.filter.bins == bins_before:
            return None
        self._due = float(np.floor(elapsed / READ_PERIOD_S) + 1.0) * READ_PERIOD_S
        return self._read()

    def finish(self) -> PayloadEstimate:
        """The estimate with what still waits for a next sample or chunk."""
        self.filter.flush()
        return self._read()

    def _read(self) -> PayloadEstimate:
        payload_filter = self.filter
        self.newest = payload_filter.estimate()
        self.ready_at = payload_filter.ready_at if self.ready_at is None else self.ready_at
        self.stopped_at = payload_filter.stopped_at if self.stopped_at is None else self.stopped_at
        return self.newest
