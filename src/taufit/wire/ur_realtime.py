"""An old Universal Robots controller, read over its real-time port 30003 (or 30013)."""

from __future__ import annotations

import time

import numpy as np

from taufit.core.errors import WireError
from taufit.wire import ur_state
from taufit.wire.reconnection import ReconnectingSource
from taufit.wire.source import Block, Clock, Description
from taufit.wire.tcp_connection import TcpConnection
from taufit.wire.ur import FIELDS, UrPorts


class UrRealtime(ReconnectingSource):
    """Samples of a controller without RTDE; its packets' common beginning is what is read.

    Args:
        host, ports: Of the controller.
        patience, give_up: Silence after which the line is opened anew, and after which `read`
            raises [s].
    """

    def __init__(
        self,
        host: str,
        *,
        ports: UrPorts | None = None,
        patience: float = 3.0,
        give_up: float = 30.0,
    ) -> None:
        super().__init__(host, 125.0, patience=patience, give_up=give_up)
        self.ports = ports or UrPorts()
        self._line: TcpConnection | None = None
        self._waiting: list[bytes] = []
        self._size = 0

    def connect(self) -> Description:
        """Open the line; the first packets say what they hold and how fast they come."""
        self._open()
        end = time.monotonic() + 10.0
        while len(self._waiting) < 6:
            if time.monotonic() > end:
                raise WireError(f"{self.host} sends no packets on port {self.ports.realtime}.")
            self._waiting += self._receive(0.5)
        self._size = len(self._waiting[0])
        table = ur_state.read_realtime(self._waiting)
        rate = round(1.0 / max(float(np.median(np.diff(table["time"]))), 1e-4))
        self._clock = Clock(float(rate))
        return Description(
            joints=6,
            fields=tuple(field for field, name in FIELDS.items() if name in table),
            effort="current",
            torque_source="motor_current",
            rate_hz=float(rate),
            meta={
                "controller": "Universal Robots",
                "packet_bytes": self._size,
                "rate_hz": float(rate),
                "source": "UR real-time port",
            },
        )

    def read(self, seconds: float) -> Block | None:
        """Samples that arrive within `seconds`, or None; opens a dead line anew."""
        packets, self._waiting = self._waiting, []
        if not packets and self._line is None:
            self._mend(seconds)
        if not packets and self._line is not None:
            packets = self._receive(seconds)
        if not packets:
            return None
        table = ur_state.read_realtime(packets)
        stamps, keep = self._ordered(table["time"], None)
        if not len(stamps):
            return None
        values = {field: table[name][keep] for field, name in FIELDS.items() if name in table}
        modes = ("robot_mode", "safety_mode")
        return Block(stamps, values, {name: table[name][keep] for name in modes if name in table})

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _open(self) -> None:
        self.close()
        self._line = TcpConnection(self.host, self.ports.realtime)
        self._packages = ur_state.Packages(ur_state.SHORTEST)

    def _receive(self, seconds: float) -> list[bytes]:
        assert self._line is not None
        packets: list[bytes] = []
        try:
            packets = self._packages.feed(self._line.receive(seconds, gather=min(seconds, 0.02)))
            wrong = [p for p in packets if self._size and len(p) != self._size]
            if wrong:
                packets = packets[: packets.index(wrong[0])]
                raise WireError(
                    f"the size of the packets changed mid-stream ({len(wrong[0])} bytes, expected "
                    f"{self._size})"
                )
        except WireError as error:
            self._drop(str(error).rstrip("."))
        if packets:
            self._heard = time.monotonic()
        else:
            self._drop_if_silent("data")
        return packets
