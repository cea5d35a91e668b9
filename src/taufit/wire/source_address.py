"""Source addresses: HOST, ros2:/TOPIC, franka:HOST, egm:PORT, realtime:HOST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError
from taufit.wire import egm, franka
from taufit.wire.source import TORQUE_KINDS, Source
from taufit.wire.ur import UrPorts, UrRtde
from taufit.wire.ur_realtime import UrRealtime

KINDS = ("ur", "realtime", "ros2", "franka", "egm")


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """Address of a source of samples.

    Attributes:
        kind: One of KINDS.
        location: Host, topic or port.
    """

    kind: str
    location: str


def parse_address(text: str) -> SourceAddress:
    """Parse a source address; a bare host is a Universal Robots controller."""
    kind, colon, location = text.partition(":")
    if colon and kind in KINDS:
        if not location:
            raise WireError(f"{text!r} names no host, topic or port after the colon.")
        return SourceAddress(kind, location)
    if not text or text.startswith("-") or any(c.isspace() or c in "/\\" for c in text):
        raise WireError(
            f"{text!r} is not a source: give a host (Universal Robots), ros2:/TOPIC, franka:HOST, "
            "egm:PORT or realtime:HOST."
        )
    return SourceAddress("ur", text)


def parse_ports(text: str) -> UrPorts:
    """Parse nonstandard ports, as rtde=40004,secondary=40002."""
    ports, port_names = UrPorts(), [item.name for item in fields(UrPorts)]
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in port_names or not value.isdigit() or not 0 < int(value) < 65536:
            raise WireError(f"{part!r} is not a port: give NAME=NUMBER of {', '.join(port_names)}.")
        ports = replace(ports, **{name: int(value)})
    return ports


def open_source(
    address: SourceAddress,
    *,
    ports: UrPorts | None = None,
    rate_hz: float | None = None,
    torque_kind: str | None = None,
    joints: Sequence[str] | None = None,
) -> Source:
    """Create the source of an address, not yet connected.

    Args:
        address: Address from `parse_address`.
        ports: Ports of a Universal Robots controller.
        rate_hz: Sampling rate [Hz], if the source supports it.
        torque_kind: Kind of the torque channel; required for ros2.
        joints: Joint names in the required order (ros2).
    """
    if torque_kind is not None and torque_kind not in TORQUE_KINDS:
        raise WireError(
            f"effort {torque_kind!r} is not known; there are {', '.join(TORQUE_KINDS)}."
        )
    if address.kind == "ur":
        return UrRtde(address.location, ports=ports, rate_hz=rate_hz)
    if address.kind == "realtime":
        return UrRealtime(address.location, ports=ports)
    if address.kind == "franka":
        host, port = host_and_port(address.location, franka.PORT)
        return franka.FrankaState(host, port=port)
    if address.kind == "egm":
        host, port = host_and_port(address.location, egm.PORT)
        return egm.AbbEgm(host, port)
    from taufit.wire.ros import Ros2JointStates

    return Ros2JointStates(address.location, torque_kind, joints=joints)


def host_and_port(text: str, default_port: int) -> tuple[str, int]:
    """Parse HOST:PORT, HOST, or (for sources that listen) a PORT of this computer."""
    if text.isdigit():
        host, port = "127.0.0.1", text
    else:
        host, colon, port = text.rpartition(":")
        if not colon:
            host, port = text, str(default_port)
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise WireError(f"{text!r} is no HOST:PORT.")
    return host, int(port)
