"""Distribution of numbered batches from one thread to all open pages, without loss.

The last batches are stored, so that a page whose connection broke for a few seconds gets the missed
ones with the number it had, and a page that is opened late shows the last 20 s; a slower page
recognises lost batches by the gap in the numbers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator

STORED_BATCHES = 500
MAX_LISTENERS = 8


class BatchHub:
    """Numbered batches, stored for a while.

    Args:
        stored: Number of batches stored.
    """

    def __init__(self, stored: int = STORED_BATCHES) -> None:
        self._stored: deque[tuple[int, bytes]] = deque(maxlen=stored)
        self._number = 0
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self.listeners = 0
        self.is_ended = False

    def publish(self, data: str) -> None:
        """Send a batch to all listeners; from any thread."""
        with self._lock:
            self._number += 1
            event = f"id: {self._number}\ndata: {data}\n\n".encode()
            self._stored.append((self._number, event))
            self._wake()

    def end(self) -> None:
        """End the stream; from any thread."""
        with self._lock:
            self.is_ended = True
            self._wake()

    def _wake(self) -> None:
        for event, loop in self._waiting.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def _batches_after(self, number: int) -> list[tuple[int, bytes]]:
        with self._lock:
            return [item for item in self._stored if item[0] > number]

    async def listen(self, last: int | None) -> AsyncIterator[bytes]:
        """Batches as server-sent events until the end, after number `last`; None: all stored."""
        batch_event = asyncio.Event()
        with self._lock:
            number = 0 if last is None else min(last, self._number)
            self._waiting[batch_event] = asyncio.get_running_loop()
            self.listeners += 1
        try:
            yield b"retry: 500\n\n"
            while True:
                batch_event.clear()
                batches = self._batches_after(number)
                if batches:
                    number = batches[-1][0]
                    yield b"".join(event for _, event in batches)
                elif self.is_ended:
                    yield b"event: end\ndata: {}\n\n"
                    return
                else:
                    try:
                        await asyncio.wait_for(batch_event.wait(), 1.0)
                    except TimeoutError:
                        yield b": still here\n\n"
        finally:
            with self._lock:
                del self._waiting[batch_event]
                self.listeners -= 1
