"""Source of samples of a Universal Robots controller over RTDE."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError
from taufit.wire import rtde
from taufit.wire.reconnection import ReconnectingSource
from taufit.wire.rtde_connection import RtdeConnection
from taufit.wire.source import SampleBlock, SampleClock, SourceDescription

# Field of a recording <- RTDE variable.
FIELDS = {
    "position": "actual_q",
    "velocity": "actual_qd",
    "signal": "actual_current",
    "commanded_position": "target_q",
    "commanded_velocity": "target_qd",
    "commanded_acceleration": "target_qdd",
    "target_current": "target_current",
    "target_torque": "target_moment",
    "temperature": "joint_temperatures",
}
REQUIRED_VARIABLES = ("timestamp", "actual_q", "actual_current")
# Status variables, requested and omitted if unknown to the controller.
STATUS = (
    "control_step",
    "runtime_state",
    "robot_mode",
    "safety_status",
    "safety_mode",
    "speed_scaling",
    "target_speed_fraction",
    "payload",
    "payload_cog",
    "target_gravity",
    "actual_TCP_pose",
    "tcp_offset",
    # Phase of programs of `taufit record`.
    "output_int_register_24",
)
PLAYING, NORMAL, RUNNING = 2, 1, 7


@dataclass(frozen=True, slots=True)
class UrPorts:
    """Ports of a Universal Robots controller."""

    dashboard: int = 29999
    primary: int = 30001
    secondary: int = 30002
    realtime: int = 30003
    rtde: int = 30004


class UrRtde(ReconnectingSource):
    """Source of samples of a controller with RTDE (CB3 from 3.3, e-Series, PolyScope X).

    Args:
        host: Address of the controller.
        ports: Ports of the controller.
        rate_hz: Sampling rate [Hz]; None for the control rate (125 Hz or 500 Hz).
        patience: Silence after which the connection is reopened [s].
        give_up: Silence after which `read` raises [s].
    """

    def __init__(
        self,
        host: str,
        *,
        ports: UrPorts | None = None,
        rate_hz: float | None = None,
        patience: float = 3.0,
        give_up: float = 30.0,
    ) -> None:
        super().__init__(host, 500.0, patience=patience, give_up=give_up)
        self.ports = ports or UrPorts()
        self.version = (0, 0, 0, 0)
        self._requested_hz = rate_hz
        self._unknown_variables: set[str] = set()
        self._connection: RtdeConnection | None = None
        self._recipe: rtde.Recipe | None = None

    def connect(self) -> SourceDescription:
        """Agree on the variables and start the stream."""
        self._open()
        assert self._recipe is not None and self._connection is not None
        names = self._recipe.names
        # e-Series controllers count 500 Hz steps at any requested rate.
        self._clock = SampleClock(
            self._rate, max(1, round(self._connection.max_rate_hz / self._rate))
        )
        version = ".".join(str(x) for x in self.version)
        meta: dict[str, Any] = {
            "controller": "Universal Robots",
            "controller_version": version,
            "rate_hz": self._rate,
            "source": "UR RTDE",
        }
        return SourceDescription(
            joints=6,
            fields=tuple(field for field, name in FIELDS.items() if name in names),
            torque_kind="current",
            torque_source="motor_current",
            rate_hz=self._rate,
            meta=meta,
        )

    def read(self, seconds: float) -> SampleBlock | None:
        """Samples received within `seconds`, or None; reopens a lost connection."""
        end = time.monotonic() + seconds
        bodies: list[bytes] = []
        while not bodies:
            remaining_s = end - time.monotonic()
            if remaining_s <= 0.0 and self._connection is not None:
                return None
            if self._connection is None:
                if not self._reconnect(remaining_s):
                    return None
                continue
            bodies = self._receive(min(remaining_s, 0.25))
        return self._block(bodies)

    def close(self) -> None:
        """Close the connection; the controller stops sending."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _receive(self, seconds: float) -> list[bytes]:
        """Bodies of received data frames; a lost connection is closed and noted."""
        assert self._connection is not None and self._recipe is not None
        bodies: list[bytes] = []
        try:
            bodies = self._connection.receive(self._recipe, seconds, gather=min(seconds, 0.02))
        except WireError as error:
            self._drop(str(error).rstrip("."))
        if bodies:
            self._last_received = (
                time.monotonic() if self._connection is not None else self._last_received
            )
        elif self._connection is not None:
            self._drop_if_silent("data")
        return bodies

    def _open(self) -> None:
        """Connect and start the stream; repeats without variables unknown to the controller."""
        for _ in range(3):
            self.close()
            self._connection = RtdeConnection(self.host, self.ports.rtde, self._add_text_message)
            self.version = self._connection.version
            self._rate = min(
                self._requested_hz or self._connection.max_rate_hz, self._connection.max_rate_hz
            )
            names = [
                name
                for name in ("timestamp", *FIELDS.values(), *STATUS)
                if name not in self._unknown_variables
            ]
            recipe = self._connection.outputs(self._rate, names)
            types = zip(names, recipe.types, strict=True)
            unknown_names = {name for name, kind in types if kind not in rtde.TYPES}
            if not unknown_names and recipe.number:
                if self._recipe is not None and recipe.names != self._recipe.names:
                    raise WireError(f"{self._connection.name} offers other variables than before.")
                self._recipe = recipe
                self._connection.start(recipe)
                return
            missing_required = unknown_names & set(REQUIRED_VARIABLES)
            if missing_required or not unknown_names:
                raise WireError(
                    f"{self._connection.name} does not know "
                    f"{', '.join(sorted(missing_required)) or 'the recipe'};"
                    " RTDE of software 3.3 or newer is needed (port 30003 serves older ones)."
                )
            # The controller keeps unknown variables in its recipe: request again on a new
            # connection.
            self._unknown_variables |= unknown_names
        raise WireError(f"{self.host} keeps refusing variables it has offered before.")

    def _add_text_message(self, body: bytes) -> None:
        text, source, level = rtde.read_text_message(body)
        names = ("exception", "error", "warning", "information")
        self._note(f"{names[min(level, 3)]}: {text}" + (f" ({source})" if source else ""))

    def _block(self, bodies: list[bytes]) -> SampleBlock | None:
        assert self._recipe is not None
        table = self._recipe.table(bodies)
        number = table["control_step"] if "control_step" in self._recipe.names else None
        stamps, keep = self._order_samples(table["timestamp"], number)
        if not len(stamps):
            return None
        return SampleBlock(stamps, _fields(table, keep, FIELDS), _status(table, keep))


def _fields(table: Array, keep: Array, names: Mapping[str, str]) -> dict[str, Array]:
    column_names = table.dtype.names or ()
    return {
        field: table[name][keep].astype(float)
        for field, name in names.items()
        if name in column_names
    }


def _status(table: Array, keep: Array) -> dict[str, Array]:
    column_names = table.dtype.names or ()
    return {
        name: np.asarray(table[name][keep], float)
        for name in STATUS
        if name in column_names and name != "control_step"
    }
