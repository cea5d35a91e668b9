"""UDP socket that returns all received datagrams, in order, within a bounded wait."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from taufit.core.errors import WireError

# Largest number of datagrams per read.
_MAX_DATAGRAMS = 2000


class Datagrams:
    """Bound UDP socket.

    Args:
        address, port: Address and port to listen on; port 0 selects a free one.
    """

    def __init__(self, address: str, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # The system limits this; it holds at least a fraction of a second of samples.
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
        """Return all received datagrams; waits for the first one, then `gather` for more [s]."""
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
