"""A UDP socket as sources use it: everything that has arrived, in order, within a bounded wait."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from taufit.core.errors import WireError

# Read this much at most at a time: then samples are handed on.
_MAX_DATAGRAMS = 2000


class Datagrams:
    """One bound UDP socket.

    Args:
        address, port: To listen on; port 0 takes a free one.
    """

    def __init__(self, address: str, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # The system caps this at its own limit; a fraction of a second of samples in any case.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
        try:
            self._socket.bind((address, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise WireError(
                f"cannot listen on UDP {address}:{port}: "
                f"{getattr(error, 'strerror', None) or error}."
            ) from None
        self._socket.setblocking(False)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def receive(self, seconds: float, *, gather: float = 0.0) -> list[bytes]:
        """All datagrams there are; waits for the first one, then `gather` for more."""
        if not select.select([self._socket], [], [], max(seconds, 0.0))[0]:
            return []
        if gather > 0.0:
            time.sleep(gather)
        out: list[bytes] = []
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while len(out) < _MAX_DATAGRAMS:
                out.append(self._socket.recv(65536))
        return out

    def close(self) -> None:
        self._socket.close()
