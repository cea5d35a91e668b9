"""Base class of sources: ordering and counting of samples, reconnection."""

from __future__ import annotations

import time

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import WireError
from taufit.wire.source import Gap, SampleClock

# Largest number of stored messages.
_MAX_MESSAGES = 100


class ReconnectingSource:
    """Ordering, gaps, messages and reconnection of a source.

    A source sets `_clock` when it knows the rate, calls `_drop` when its connection is lost,
    `_reconnect`
    while it has none, and `_order_samples` with every block.

    Args:
        name: Name of the controller, used in messages.
        rate_hz: Sampling rate, if known [Hz].
        patience: Silence after which the connection is reopened [s].
        give_up: Silence after which `read` raises [s].
    """

    def __init__(self, name: str, rate_hz: float, *, patience: float, give_up: float) -> None:
        self.host, self.patience, self.give_up = name, patience, give_up
        self.messages: list[str] = []
        self._clock = SampleClock(rate_hz)
        self._last_received = self._last_ordered = time.monotonic()
        self._loss_reason = ""

    @property
    def gaps(self) -> list[Gap]:
        """Gaps in the received samples."""
        return self._clock.gaps

    @property
    def duplicated(self) -> int:
        """Number of samples received twice."""
        return self._clock.duplicated

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError

    def _open(self) -> None:
        """Connect; raises a `WireError` on failure."""
        raise NotImplementedError

    @property
    def _silence_s(self) -> float:
        """Time since the last sample [s]."""
        return time.monotonic() - self._last_received

    def _note(self, text: str, *, once: bool = False) -> None:
        if not (once and text in self.messages):
            self.messages.append(text)
            del self.messages[:-_MAX_MESSAGES]

    def _drop(self, reason: str) -> None:
        """Mark the connection as lost."""
        self.close()
        self._loss_reason = self._loss_reason or reason

    def _drop_if_silent(self, data_name: str) -> None:
        """Mark the connection as lost if nothing was received for `patience`."""
        if self._silence_s > self.patience:
            self._drop(f"no {data_name} for {self.patience:g} s")

    def _give_up_if_silent(self) -> None:
        silence_s = self._silence_s
        if silence_s > self.give_up:
            cause = f" ({self._loss_reason})" if self._loss_reason else ""
            raise WireError(
                f"{self.host} has sent nothing for {silence_s:.0f} s{cause}; what was recorded "
                "until "
                "then is kept."
            )

    def _reconnect(self, seconds: float) -> bool:
        """Reopen the connection, trying for `seconds`; returns whether it is open."""
        end = time.monotonic() + seconds
        while True:
            self._give_up_if_silent()
            try:
                self._open()
                return True
            except WireError as error:
                self._note(str(error))
                self.close()
            remaining_s = end - time.monotonic()
            if remaining_s <= 0.0:
                return False
            time.sleep(min(remaining_s, 0.2))

    def _order_samples(
        self, stamps: Float[Array, " n"], number: Array | None, lost: str = "samples missing"
    ) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
        """Apply `SampleClock.order` to new samples; a lost connection is the reason of the gap
        before.
        """
        current_time = time.monotonic()
        silence = current_time - self._last_ordered if self._loss_reason else None
        out = self._clock.order(
            stamps, number, reason_before=self._loss_reason or lost, silence=silence
        )
        self._loss_reason, self._last_ordered, self._last_received = "", current_time, current_time
        return out
