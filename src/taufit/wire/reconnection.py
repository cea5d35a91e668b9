"""What sources share: samples put in order and counted, and a line that is opened anew."""

from __future__ import annotations

import time

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import WireError
from taufit.wire.source import Clock, Gap

# Messages kept, the latest.
_MESSAGES = 100


class ReconnectingSource:
    """Order, gaps and messages of a source, and when its line counts as dead.

    A source sets `_clock` once it knows the rate, calls `_drop` when its line broke, `_mend` while
    it has none, `_ordered` with every block.

    Args:
        name: Of the controller, for messages.
        rate_hz: Samples per second, as far as known.
        patience: Silence after which the line is taken for dead and opened anew [s].
        give_up: Silence after which `read` raises [s].
    """

    def __init__(self, name: str, rate_hz: float, *, patience: float, give_up: float) -> None:
        self.host, self.patience, self.give_up = name, patience, give_up
        self.messages: list[str] = []
        self._clock = Clock(rate_hz)
        self._heard = self._ordered_at = time.monotonic()
        self._broken = ""

    @property
    def gaps(self) -> list[Gap]:
        """What was not received."""
        return self._clock.gaps

    @property
    def duplicated(self) -> int:
        """How many samples came twice."""
        return self._clock.duplicated

    def close(self) -> None:
        """Hang up."""
        raise NotImplementedError

    def _open(self) -> None:
        """Connect; a WireError where that fails."""
        raise NotImplementedError

    @property
    def _silent(self) -> float:
        """Since when nothing was heard [s]."""
        return time.monotonic() - self._heard

    def _note(self, text: str, *, once: bool = False) -> None:
        if not (once and text in self.messages):
            self.messages.append(text)
            del self.messages[:-_MESSAGES]

    def _drop(self, why: str) -> None:
        """The line is dead."""
        self.close()
        self._broken = self._broken or why

    def _drop_if_silent(self, what: str) -> None:
        """The line is dead where nothing came for longer than is patient."""
        if self._silent > self.patience:
            self._drop(f"no {what} for {self.patience:g} s")

    def _give_up_if_silent(self) -> None:
        silent = self._silent
        if silent > self.give_up:
            why = f" ({self._broken})" if self._broken else ""
            raise WireError(
                f"{self.host} has sent nothing for {silent:.0f} s{why}; what was recorded until "
                "then is kept."
            )

    def _mend(self, seconds: float) -> bool:
        """Open the line anew, at least once, for as long as `seconds`; whether it is open."""
        end = time.monotonic() + seconds
        while True:
            self._give_up_if_silent()
            try:
                self._open()
                return True
            except WireError as error:
                self._note(str(error))
                self.close()
            left = end - time.monotonic()
            if left <= 0.0:
                return False
            time.sleep(min(left, 0.2))

    def _ordered(
        self, stamps: Float[Array, " n"], number: Array | None, lost: str = "samples missing"
    ) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
        """`Clock.order` of what has just arrived; a broken line is the reason of the gap before."""
        now = time.monotonic()
        silence = now - self._ordered_at if self._broken else None
        out = self._clock.order(stamps, number, why=self._broken or lost, silence=silence)
        self._broken, self._ordered_at, self._heard = "", now, now
        return out
