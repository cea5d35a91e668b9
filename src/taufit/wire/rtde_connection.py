"""RTDE connection: requests, recipes, data frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taufit.core.errors import WireError
from taufit.wire import rtde
from taufit.wire.tcp_connection import TcpConnection


class RtdeConnection:
    """Connection with RTDE version 2.

    Args:
        host, port: Address of the controller.
        text: Called with the body of every text message.

    Attributes:
        version: Version of the controller's software.
        pending: Data frames received but not yet returned.
    """

    def __init__(self, host: str, port: int, text: Callable[[bytes], None]) -> None:
        self._connection, self._frames, self._text = (
            TcpConnection(host, port),
            rtde.FrameParser(),
            text,
        )
        self.name = self._connection.name
        self.pending: list[bytes] = []
        try:
            if not rtde.is_accepted(self.request(rtde.PROTOCOL, (rtde.VERSION).to_bytes(2, "big"))):
                raise WireError(f"{self.name} does not speak RTDE version {rtde.VERSION}.")
            self.version = rtde.read_version_reply(self.request(rtde.URCONTROL))
        except WireError:
            self.close()
            raise

    @property
    def max_rate_hz(self) -> float:
        """Control rate [Hz]."""
        return 125.0 if self.version[0] < 5 else 500.0

    def request(self, kind: int, body: bytes = b"") -> bytes:
        """Send a request and return the body of its answer."""
        self._connection.send(rtde.frame(kind, body))
        end = time.monotonic() + 5.0
        answer: bytes | None = None
        while answer is None:
            remaining_s = end - time.monotonic()
            if remaining_s <= 0.0:
                raise WireError(f"{self.name} does not answer an RTDE request.")
            for answer_kind, answer_body in self._frames.feed(
                self._connection.receive(remaining_s)
            ):
                if answer_kind == rtde.TEXT:
                    self._text(answer_body)
                elif answer_kind == rtde.DATA:
                    self.pending.append(answer_body)
                elif answer_kind == kind and answer is None:
                    answer = answer_body
        return answer

    def outputs(self, rate_hz: float, names: Sequence[str]) -> rtde.Recipe:
        """Request output variables; unknown ones have type NOT_FOUND."""
        request = rtde.outputs_request(rate_hz, names)[rtde.HEADER.size :]
        return self._recipe(names, self.request(rtde.OUTPUTS, request))

    def inputs(self, names: Sequence[str]) -> rtde.Recipe:
        """Request input variables; raises if the controller or another client prevents it."""
        request = rtde.inputs_request(names)[rtde.HEADER.size :]
        recipe = self._recipe(names, self.request(rtde.INPUTS, request))
        in_use = [n for n, kind in zip(names, recipe.types, strict=True) if kind == rtde.IN_USE]
        if in_use:
            raise WireError(
                f"{self.name}: another client writes {', '.join(in_use)} already; end it first."
            )
        if recipe.number == 0 or any(kind not in rtde.TYPES for kind in recipe.types):
            raise WireError(f"{self.name} does not let {', '.join(names)} be written.")
        return recipe

    def _recipe(self, names: Sequence[str], answer: bytes) -> rtde.Recipe:
        number, types = rtde.read_types_reply(answer)
        if len(types) != len(names):
            raise WireError(f"{self.name} answers with {len(types)} types.")
        return rtde.Recipe(number, tuple(names), tuple(types))

    def start(self, recipe: rtde.Recipe) -> None:
        """Start the data stream."""
        if not rtde.is_accepted(self.request(rtde.START)):
            raise WireError(f"{self.name} refuses to start sending.")
        if any(len(body) != recipe.size for body in self.pending):
            raise WireError(f"{self.name} sends data of another size than agreed.")

    def receive(self, recipe: rtde.Recipe, seconds: float, *, gather: float = 0.0) -> list[bytes]:
        """Bodies of the data frames that arrive within `seconds`."""
        if not self.pending:
            for kind, body in self._frames.feed(self._connection.receive(seconds, gather=gather)):
                if kind == rtde.DATA:
                    self.pending.append(body)
                elif kind == rtde.TEXT:
                    self._text(body)
        valid_count = next(
            (i for i, body in enumerate(self.pending) if len(body) != recipe.size),
            len(self.pending),
        )
        if valid_count == 0 and self.pending:
            raise WireError(
                f"the size of the data changed mid-stream ({len(self.pending[0])} bytes, expected "
                f"{recipe.size})"
            )
        # Frames before one of another size are returned; the next call raises.
        bodies, self.pending = self.pending[:valid_count], self.pending[valid_count:]
        return bodies

    def write(self, recipe: rtde.Recipe, values: Mapping[str, Any]) -> None:
        """Send input values; they take effect together."""
        self._connection.send(rtde.frame(rtde.DATA, recipe.pack(values)))

    def close(self) -> None:
        """Close the connection; the controller stops sending and releases the inputs."""
        self._connection.close()
