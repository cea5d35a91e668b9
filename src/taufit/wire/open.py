"""The source a text names: a host, ros2:/TOPIC, franka:HOST, egm:PORT, realtime:HOST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from taufit.core.errors import WireError
from taufit.wire import egm, franka
from taufit.wire.source import EFFORTS, Source
from taufit.wire.ur import UrPorts, UrRtde
from taufit.wire.ur_realtime import UrRealtime

KINDS = ("ur", "realtime", "ros2", "franka", "egm")


@dataclass(frozen=True, slots=True)
class Address:
    """Where samples come from.

    Attributes:
        kind: One of KINDS.
        place: Host, topic or port.
    """

    kind: str
    place: str


def parse(text: str) -> Address:
    """What a source's text says; a bare host is a Universal Robots controller."""
    kind, colon, place = text.partition(":")
    if colon and kind in KINDS:
        if not place:
            raise WireError(f"{text!r} names no host, topic or port after the colon.")
        return Address(kind, place)
    if not text or text.startswith("-") or any(c.isspace() or c in "/\\" for c in text):
        raise WireError(
            f"{text!r} is not a source: give a host (Universal Robots), ros2:/TOPIC, franka:HOST, "
            "egm:PORT or realtime:HOST."
        )
    return Address("ur", text)


def parse_ports(text: str) -> UrPorts:
    """Ports other than the standard ones, as rtde=40004,secondary=40002."""
    ports, known = UrPorts(), [item.name for item in fields(UrPorts)]
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in known or not value.isdigit() or not 0 < int(value) < 65536:
            raise WireError(f"{part!r} is not a port: give NAME=NUMBER of {', '.join(known)}.")
        ports = replace(ports, **{name: int(value)})
    return ports


def open_source(
    address: Address,
    *,
    ports: UrPorts | None = None,
    rate_hz: float | None = None,
    effort: str | None = None,
    joints: Sequence[str] | None = None,
) -> Source:
    """The source itself, not connected yet.

    Args:
        address: As `parse` gives it.
        ports: Of a Universal Robots controller.
        rate_hz: Samples per second, where the source can be asked.
        effort: What the torque channel is; ros2 needs it, the others know.
        joints: Names of the joints in the order wanted, where the source has names (ros2).
    """
    if effort is not None and effort not in EFFORTS:
        raise WireError(f"effort {effort!r} is not known; there are {', '.join(EFFORTS)}.")
    if address.kind == "ur":
        return UrRtde(address.place, ports=ports, rate_hz=rate_hz)
    if address.kind == "realtime":
        return UrRealtime(address.place, ports=ports)
    if address.kind == "franka":
        host, port = host_and_port(address.place, franka.PORT)
        return franka.FrankaState(host, port=port)
    if address.kind == "egm":
        host, port = host_and_port(address.place, egm.PORT)
        return egm.AbbEgm(host, port)
    from taufit.wire.ros import Ros2JointStates

    return Ros2JointStates(address.place, effort, joints=joints)


def host_and_port(text: str, otherwise: int) -> tuple[str, int]:
    """HOST:PORT, a HOST, or (for sources that listen) a PORT of this computer."""
    if text.isdigit():
        host, port = "127.0.0.1", text
    else:
        host, colon, port = text.rpartition(":")
        if not colon:
            host, port = text, str(otherwise)
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise WireError(f"{text!r} is no HOST:PORT.")
    return host, int(port)
