"""TCP connection with bounded waits and readable errors."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from taufit.core.errors import WireError


class TcpConnection:
    """Open TCP connection.

    Args:
        host, port: Address of the controller.
        seconds: Longest wait for connecting and sending [s].
    """

    def __init__(self, host: str, port: int, *, seconds: float = 5.0) -> None:
        self.name = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), seconds)
        except (OSError, OverflowError) as error:
            raise WireError(
                f"{self.name} cannot be reached: {getattr(error, 'strerror', None) or error}. "
                "Is the robot on, and is this computer in its network?"
            ) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Buffer for seconds of samples.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.settimeout(seconds)

    @property
    def local_address(self) -> str:
        """Address of this computer as seen by the controller."""
        return str(self._socket.getsockname()[0])

    def send(self, data: bytes) -> None:
        """Send all bytes."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise WireError(f"{self.name} takes no data: {error.strerror or error}.") from None

    def receive(self, seconds: float, *, gather: float = 0.0) -> bytes:
        """Bytes received within `seconds`; empty if there are none.

        Args:
            seconds: Longest wait for the first byte [s].
            gather: Further wait after the first byte, for fewer, larger reads [s].
        """
        try:
            if not select.select([self._socket], [], [], max(seconds, 0.0))[0]:
                return b""
            if gather > 0.0:
                time.sleep(gather)
            data = self._socket.recv(1 << 18)
        except (OSError, ValueError) as error:
            text = getattr(error, "strerror", None) or error
            raise WireError(f"the connection to {self.name} broke: {text}.") from None
        if not data:
            raise WireError(f"{self.name} closed the connection.")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


def exchange(host: str, port: int, lines: list[str], *, seconds: float = 2.0) -> list[str]:
    """Send lines of text and return one line of answer each, after a greeting line."""
    connection = TcpConnection(host, port, seconds=seconds)
    pending = b""

    def answer() -> str:
        nonlocal pending
        end = time.monotonic() + seconds
        while b"\n" not in pending:
            if time.monotonic() > end or len(pending) > 1 << 16:
                raise WireError(f"{connection.name} does not answer.")
            pending += connection.receive(end - time.monotonic())
        text, _, pending = pending.partition(b"\n")
        return text.decode(errors="replace").strip()

    try:
        answer()
        out = []
        for text in lines:
            connection.send(text.encode() + b"\n")
            out.append(answer())
        return out
    finally:
        connection.close()
