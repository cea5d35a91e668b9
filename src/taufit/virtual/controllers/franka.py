"""Simulated Franka robot: state at 1 kHz to every connected client."""

from __future__ import annotations

import contextlib
import socket
import threading
from xml.sax.saxutils import quoteattr

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError, WireError
from taufit.robot import Robot
from taufit.robot.inertia import to_centre_of_mass
from taufit.sim.stepped_twin import ControlSample
from taufit.sim.twin import Twin
from taufit.virtual.controllers.kinematics import Kinematics
from taufit.virtual.controllers.repeating_robot import PeriodicThread, RepeatingRobot
from taufit.wire import franka

_MAX_CLIENTS = 8
_MAX_MESSAGE_BYTES = 1 << 16


def motor_minus_link(twin: Twin, sample: ControlSample) -> Float[Array, " 7"]:
    """Motor minus link position of elastic joints [rad]; 0 if positions are the motors'."""
    elasticity = twin.effects.elasticity
    if elasticity is None or elasticity.encoder != "link":
        return np.zeros(7)
    return sample.signal / elasticity.stiffness


class VirtualFranka:
    """Simulated robot of seven joints with Franka's interface: its state is read, its load set.

    Args:
        arm: Moving simulated robot, at 1000 Hz.
        host: Address to listen on.
        port: TCP port; 0 selects a free one.
        pace: Ratio of simulated time to real time.
    """

    def __init__(
        self,
        arm: RepeatingRobot,
        *,
        host: str = "127.0.0.1",
        port: int = franka.PORT,
        pace: float = 1.0,
    ) -> None:
        if arm.twin.robot.joints != 7:
            raise TaufitError(f"{arm.twin.robot.name} has no seven joints; a Franka robot has.")
        self.arm, self.host, self.port = arm, host, port
        self._model = urdf_text(arm.twin.robot).encode()
        self._kinematics = Kinematics(arm.twin.robot)
        self._clients: dict[socket.socket, tuple[str, int]] = {}
        self._lock = threading.Lock()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._ticker = PeriodicThread(1000.0, self._tick, pace=pace)
        self._server: socket.socket | None = None
        self.ended = threading.Event()
        self.load: dict[str, list[float]] = {}

    def __enter__(self) -> VirtualFranka:
        try:
            self._server = socket.create_server((self.host, self.port))
        except OSError as error:
            self._udp.close()
            raise TaufitError(
                f"port {self.port} on {self.host} cannot be opened: {error.strerror or error}."
            ) from None
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        self._ticker.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self._ticker.stop()
        if self._server is not None:
            with contextlib.suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        self._udp.close()
        if self._ticker.failure is not None and error[0] is None:
            raise self._ticker.failure

    def _tick(self) -> None:
        sample, (q, v, a) = self.arm.step()
        with self._lock:
            client_addresses = [
                client_address for client_address in self._clients.values() if client_address[1]
            ]
        if not client_addresses:
            return
        pose = self._kinematics.flange(sample.position).T.ravel()
        state = franka.pack_state(
            self.arm.steps,
            {
                "q": sample.position.tolist(),
                "dq": sample.velocity.tolist(),
                "tau_J": sample.signal.tolist(),
                "theta": (sample.position + motor_minus_link(self.arm.twin, sample)).tolist(),
                "dtheta": sample.velocity.tolist(),
                "q_d": q.tolist(),
                "dq_d": v.tolist(),
                "ddq_d": a.tolist(),
                "O_T_EE": pose.tolist(),
                "O_T_EE_d": pose.tolist(),
                **self.load,
            },
        )
        for client_address in client_addresses:
            with contextlib.suppress(OSError):
                self._udp.sendto(state, client_address)

    def _accept(self) -> None:
        assert self._server is not None
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with self._lock:
                is_full = len(self._clients) >= _MAX_CLIENTS
                if not is_full:
                    self._clients[client] = ("", 0)
            if is_full:
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        pending = b""
        try:
            with client:
                while data := client.recv(4096):
                    pending += data
                    while len(pending) >= franka.HEADER.size:
                        kind, number, size = franka.HEADER.unpack_from(pending)
                        if not franka.HEADER.size <= size <= _MAX_MESSAGE_BYTES:
                            return
                        if len(pending) < size:
                            break
                        body = pending[franka.HEADER.size : size]
                        pending = pending[size:]
                        client.sendall(self._answer(client, kind, number, body))
        except (OSError, WireError):
            return
        finally:
            with self._lock:
                self._clients.pop(client, None)

    def _answer(self, client: socket.socket, kind: int, number: int, body: bytes) -> bytes:
        if kind == franka.CONNECT:
            version, port = franka.read_connect_request(body)
            accepted = version == franka.VERSION
            if accepted:
                with self._lock:
                    self._clients[client] = (client.getpeername()[0], port)
            return franka.connect_reply(number, accepted)
        if kind == franka.GET_MODEL:
            return franka.encode_message(kind, number, b"\0" + self._model)
        if kind == franka.SET_LOAD:
            self.load = franka.read_load_request(body)
            return franka.encode_message(kind, number, b"\0")
        # Other settings are accepted without effect; motion commands are rejected.
        return franka.encode_message(kind, number, b"\0" if kind > 2 else b"\x02")


def urdf_text(robot: Robot) -> str:
    """URDF of a robot as the interface sends it: links with inertia, joints with limits."""
    parts = [f"<robot name={quoteattr(robot.name)}>", '<link name="link0"/>']
    for i, link in enumerate(robot.links, 1):
        mass, centre, tensor = to_centre_of_mass(link.parameters)
        parts.append(
            f'<link name="link{i}"><inertial><origin xyz="{_row(centre)}" rpy="0 0 0"/>'
            f'<mass value="{mass:.9g}"/><inertia ixx="{tensor[0, 0]:.9g}" ixy="{tensor[0, 1]:.9g}" '
            f'ixz="{tensor[0, 2]:.9g}" iyy="{tensor[1, 1]:.9g}" iyz="{tensor[1, 2]:.9g}" '
            f'izz="{tensor[2, 2]:.9g}"/></inertial></link>'
        )
        limits = robot.limits
        kind = "prismatic" if link.is_prismatic else "revolute"
        axis = link.screw[3:] if link.is_prismatic else link.screw[:3]
        parts.append(
            f'<joint name="joint{i}" type="{kind}"><parent link="link{i - 1}"/>'
            f'<child link="link{i}"/><origin xyz="{_row(link.placement[:3, 3])}" '
            f'rpy="{_row(_angles(link.placement[:3, :3]))}"/><axis xyz="{_row(axis)}"/>'
            f'<limit lower="{limits.lower[i - 1]:.9g}" upper="{limits.upper[i - 1]:.9g}" '
            f'velocity="{limits.velocity[i - 1]:.9g}" effort="{limits.torque[i - 1]:.9g}"/>'
            '<position_based_velocity_limits kinematic_limit="2.62" velocity_offset="0.3" '
            'deceleration_limit="6.0"/></joint>'
        )
    return '<?xml version="1.0"?>' + "".join([*parts, "</robot>"])


def _row(values: np.ndarray) -> str:
    return " ".join(f"{float(value):.12g}" for value in values)


def _angles(rotation: np.ndarray) -> np.ndarray:
    """Roll, pitch and yaw of Rz Ry Rx."""
    return np.array(
        [
            np.arctan2(rotation[2, 1], rotation[2, 2]),
            np.arcsin(np.clip(-rotation[2, 0], -1.0, 1.0)),
            np.arctan2(rotation[1, 0], rotation[0, 0]),
        ]
    )
