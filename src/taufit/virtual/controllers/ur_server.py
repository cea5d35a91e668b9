"""Sockets of a simulated Universal Robots controller, and its real-time loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from taufit.core.errors import TaufitError, WireError
from taufit.virtual.controllers import ur_dashboard
from taufit.virtual.controllers.rtde_session import RtdeSession
from taufit.virtual.controllers.ur_controller import IDLE, NORMAL, PAUSED, PLAYING, UrController
from taufit.virtual.urscript import ScriptError, is_complete
from taufit.virtual.urscript.lexer import MAX_PROGRAM_LENGTH
from taufit.wire import rtde, ur_state
from taufit.wire.ur import UrPorts

# Clients with more unread data are disconnected, as by the real controller [bytes].
_MAX_UNREAD_BYTES = 1 << 21
_MAX_LINE_BYTES = 4096
_MAX_CLIENTS = 32

_REALTIME = (
    "target_q",
    "target_qd",
    "target_qdd",
    "target_current",
    "target_moment",
    "actual_q",
    "actual_qd",
    "actual_current",
    "joint_temperatures",
)
_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class VirtualUr:
    """Simulated controller on the network; use as a context manager, or call `serve`.

    with VirtualUr(UrController(twin)) as robot:
        ...  # clients talk to robot.host and robot.ports

    Args:
        controller: Simulated controller.
        host: Address to listen on.
        ports: Ports; 0 selects a free one.
        log: Called with every message of the controller and its level (0 exception, 1 error, ...).
        pace: Ratio of simulated time to real time, as far as the processor allows.
    """

    def __init__(
        self,
        controller: UrController,
        *,
        host: str = "127.0.0.1",
        ports: UrPorts | None = None,
        log: Callable[[str, int], None] | None = None,
        pace: float = 1.0,
    ) -> None:
        self.controller, self.host, self._log = controller, host, log
        self.ports = ports or UrPorts(0, 0, 0, 0, 0)
        self.late_steps, self.pace = 0, pace
        self._reserved: set[str] = set()
        self._sessions: dict[RtdeSession, asyncio.StreamWriter] = {}
        self._realtime: set[asyncio.StreamWriter] = set()
        self._state: set[asyncio.StreamWriter] = set()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._table = _dh_table(controller)

    # Running.

    def serve(
        self, *, seconds: float | None = None, ready: Callable[[], None] | None = None
    ) -> None:
        """Serve until stopped, or for some seconds; `ready` is called when all ports listen."""
        asyncio.run(self._main(seconds, ready))

    def __enter__(self) -> VirtualUr:
        is_ready = threading.Event()

        def run() -> None:
            try:
                self.serve(ready=is_ready.set)
            except BaseException as error:
                self._failure = error
            finally:
                is_ready.set()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        is_ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._thread.join(10.0)
        if self._failure is not None and error[0] is None:
            raise self._failure

    def stop(self) -> None:
        """End `serve`, from any thread."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)

    def call_between_steps(self, function: Callable[[UrController], object]) -> None:
        """Call a function with the controller between two control steps, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(function, self.controller)

    async def _main(self, seconds: float | None, ready: Callable[[], None] | None) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        handlers: dict[str, _Handler] = {
            "dashboard": self._serve_dashboard,
            "primary": self._serve_state,
            "secondary": self._serve_state,
            "realtime": self._serve_realtime,
            "rtde": self._serve_rtde,
        }
        values: dict[str, int] = {}
        try:
            for name, handler in handlers.items():
                port = getattr(self.ports, name)
                try:
                    server = await asyncio.start_server(
                        self._track_connection(handler), self.host, port
                    )
                except OSError as error:
                    raise TaufitError(
                        f"port {port} on {self.host} cannot be opened: {error.strerror or error}. "
                        "Take free ones with --ports free."
                    ) from None
                self._servers.append(server)
                values[name] = server.sockets[0].getsockname()[1]
            self.ports = UrPorts(**{**asdict(self.ports), **values})
            if ready is not None:
                ready()
            await self._run_steps(seconds)
        finally:
            await self._close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._servers.clear()

    def _track_connection(self, handler: _Handler) -> _Handler:
        """Handler whose connection is closed with the server."""

        async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            if len(self._tasks) >= _MAX_CLIENTS:
                writer.transport.abort()
                return
            self._tasks.add(task)
            try:
                await handler(reader, writer)
            except (OSError, WireError, asyncio.CancelledError, asyncio.IncompleteReadError):
                pass
            finally:
                self._tasks.discard(task)
                self._realtime.discard(writer)
                self._state.discard(writer)
                writer.transport.abort()

        return run

    # The clock.

    async def _run_steps(self, seconds: float | None) -> None:
        assert self._stop is not None
        robot, begun = self.controller, time.perf_counter()
        first = robot.steps
        while not self._stop.is_set():
            robot.tick()
            self._publish()
            simulated_s = (robot.steps - first) * robot.step
            if seconds is not None and simulated_s >= seconds:
                return
            ahead = begun + simulated_s / self.pace - time.perf_counter()
            if ahead > 0.0:
                await asyncio.sleep(ahead)
            else:
                # Late: let clients run; no step is skipped.
                self.late_steps += ahead < -robot.step / self.pace
                await asyncio.sleep(0)

    def _publish(self) -> None:
        robot = self.controller
        texts = b"".join(rtde.text_message(t, "controller", n) for t, n in robot.messages)
        if self._log is not None:
            for text, level in robot.messages:
                self._log(text, level)
        robot.messages.clear()
        for session, writer in list(self._sessions.items()):
            self._send(writer, (texts if session.running else b"") + session.sample())
        if self._realtime:
            packet = self._realtime_packet()
            for writer in list(self._realtime):
                self._send(writer, packet)
        if self._state and robot.steps % round(robot.rate_hz / 10) == 0:
            packet = self._state_package()
            for writer in list(self._state):
                self._send(writer, packet)

    def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not data or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            writer.transport.abort()
            return
        writer.write(data)

    # Clients.

    async def _serve_rtde(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = RtdeSession(self.controller, self._reserved)
        self._sessions[session] = writer
        try:
            while data := await reader.read(1 << 16):
                writer.write(session.receive(data))
        finally:
            session.close()
            self._sessions.pop(session, None)

    async def _serve_dashboard(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(ur_dashboard.GREETING.encode() + b"\n")
        pending = b""
        while data := await reader.read(4096):
            pending += data
            *lines, pending = pending.split(b"\n")
            for line in lines:
                reply = ur_dashboard.reply_to_line(self.controller, line.decode(errors="replace"))
                if reply is None:
                    writer.write(b"Disconnected\n")
                    await writer.drain()
                    return
                writer.write(reply.encode() + b"\n")
            if len(pending) > _MAX_LINE_BYTES:
                return

    async def _serve_state(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        version, sample_time = self.controller.version, self.controller.sample.time
        writer.write(ur_state.encode_version(sample_time, "URControl", version))
        self._state.add(writer)
        await self._read_programs(reader)

    async def _serve_realtime(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._realtime.add(writer)
        await self._read_programs(reader)

    async def _read_programs(self, reader: asyncio.StreamReader) -> None:
        """Start programs as they arrive; a program is complete when its blocks are."""
        pending = ""
        while data := await reader.read(1 << 16):
            pending += data.decode("utf-8", errors="replace")
            if len(pending) > MAX_PROGRAM_LENGTH:
                self.controller.add_message("a program that is too long was refused", 1)
                return
            if is_complete(pending):
                text, pending = pending, ""
                try:
                    # Steps and other connections continue meanwhile.
                    machine = await asyncio.to_thread(self.controller.compile_program, text)
                    self.controller.start(machine)
                except ScriptError as error:
                    self.controller.add_message(f"program refused: {error}", 1)

    # State messages.

    def _realtime_packet(self) -> bytes:
        robot = self.controller
        values = {name: robot.output_value(name) for name in _REALTIME}
        values.update(
            time=robot.sample.time,
            control_current=values["actual_current"],
            robot_mode=float(robot.robot_mode),
            joint_modes=[float(x) for x in robot.output_value("joint_mode")],
            safety_mode=float(robot.safety_mode),
        )
        return ur_state.encode_realtime(values, ur_state.realtime_size(robot.version))

    def _state_package(self) -> bytes:
        robot, sample = self.controller, self.controller.sample
        flags = {
            "power": robot.robot_mode >= IDLE,
            "protective": robot.safety_mode != NORMAL,
            "running": robot.runtime_state == PLAYING,
            "paused": robot.runtime_state == PAUSED,
        }
        rows = [
            (
                sample.position[i],
                robot.target[i],
                sample.velocity[i],
                sample.signal[i],
                48.0,
                sample.temperature[i],
                sample.temperature[i],
                253,
            )
            for i in range(6)
        ]
        mode = ur_state.encode_modes(
            sample.time, robot.robot_mode, flags, robot.slider, robot.speed_scaling
        )
        return ur_state.encode_package(
            ur_state.ROBOT_STATE,
            [
                (ur_state.MODE, mode),
                (ur_state.JOINTS, ur_state.encode_joints(rows)),
                (ur_state.KINEMATICS, ur_state.encode_kinematics(self._table)),
            ],
        )


def _dh_table(controller: UrController) -> ur_state.DhTable:
    from taufit.virtual.controllers.dh_table import dh_table

    theta, a, d, alpha = dh_table(controller.twin.robot)
    return ur_state.DhTable(theta, a, d, alpha, calibrated=True)


__all__ = ["VirtualUr"]
