"""Source of samples of an old Universal Robots controller over its real-time port 30003 (or
30013)."""

from __future__ import annotations

import time

import numpy as np

from taufit.core.errors import WireError
from taufit.wire import ur_state
from taufit.wire.reconnection import ReconnectingSource
from taufit.wire.source import SampleBlock, SampleClock, SourceDescription
from taufit.wire.tcp_connection import TcpConnection
from taufit.wire.ur import FIELDS, UrPorts


class UrRealtime(ReconnectingSource):
    """Source of samples of a controller without RTDE; reads the common beginning of its packets.

    Args:
        host, ports: Address and ports of the controller.
        patience, give_up: Silence after which the connection is reopened, and after which `read`
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
        self._connection: TcpConnection | None = None
        self._pending: list[bytes] = []
        self._size = 0

    def connect(self) -> SourceDescription:
        """Connect; the first packets give content and rate."""
        self._open()
        end = time.monotonic() + 10.0
        while len(self._pending) < 6:
            if time.monotonic() > end:
                raise WireError(f"{self.host} sends no packets on port {self.ports.realtime}.")
            self._pending += self._receive(0.5)
        self._size = len(self._pending[0])
        table = ur_state.read_realtime(self._pending)
        rate = round(1.0 / max(float(np.median(np.diff(table["time"]))), 1e-4))
        self._clock = SampleClock(float(rate))
        return SourceDescription(
            joints=6,
            fields=tuple(field for field, name in FIELDS.items() if name in table),
            torque_kind="current",
            torque_source="motor_current",
            rate_hz=float(rate),
            meta={
                "controller": "Universal Robots",
                "packet_bytes": self._size,
                "rate_hz": float(rate),
                "source": "UR real-time port",
            },
        )

    def read(self, seconds: float) -> SampleBlock | None:
        """Samples received within `seconds`, or None; reopens a lost connection."""
        packets, self._pending = self._pending, []
        if not packets and self._connection is None:
            self._reconnect(seconds)
        if not packets and self._connection is not None:
            packets = self._receive(seconds)
        if not packets:
            return None
        table = ur_state.read_realtime(packets)
        stamps, keep = self._order_samples(table["time"], None)
        if not len(stamps):
            return None
        values = {field: table[name][keep] for field, name in FIELDS.items() if name in table}
        modes = ("robot_mode", "safety_mode")
        return SampleBlock(
            stamps, values, {name: table[name][keep] for name in modes if name in table}
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> None:
        self.close()
        self._connection = TcpConnection(self.host, self.ports.realtime)
        self._packages = ur_state.PackageParser(ur_state.MIN_PACKET_BYTES)

    def _receive(self, seconds: float) -> list[bytes]:
        assert self._connection is not None
        packets: list[bytes] = []
        try:
            packets = self._packages.feed(
                self._connection.receive(seconds, gather=min(seconds, 0.02))
            )
            wrong_size = [p for p in packets if self._size and len(p) != self._size]
            if wrong_size:
                packets = packets[: packets.index(wrong_size[0])]
                raise WireError(
                    f"the size of the packets changed mid-stream ({len(wrong_size[0])} bytes, "
                    "expected "
                    f"{self._size})"
                )
        except WireError as error:
            self._drop(str(error).rstrip("."))
        if packets:
            self._last_received = time.monotonic()
        else:
            self._drop_if_silent("data")
        return packets
