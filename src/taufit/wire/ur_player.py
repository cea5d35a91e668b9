"""Playback on a Universal Robots controller: upload of a program, monitoring of its phases."""

from __future__ import annotations

import contextlib
import time

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import WireError
from taufit.wire import ur_state
from taufit.wire.player import (
    APPROACH,
    RECORDED,
    WRONG_START,
    Approach,
    PlaybackNotices,
    select_rows,
)
from taufit.wire.source import SampleBlock
from taufit.wire.tcp_connection import TcpConnection, exchange_lines
from taufit.wire.ur import NORMAL, PLAYING, RUNNING, UrPorts

# Program that stops the robot; it replaces the running one.
STOP_PROGRAM = "def taufit_stop():\n  stopj(2.0)\nend\n"
PHASE = "output_int_register_24"
# Register for the phase of a program; largest position error [rad] and speed [rad/s] at its start.
_REGISTER = 24
_MAX_START_ERROR, _MAX_START_SPEED = 0.02, 0.05
# Runtime states: pausing, paused.
_PAUSED_STATES = (3, 4)
_SAFETY_NAMES = {
    2: "reduced mode",
    3: "protective stop",
    4: "recovery mode",
    5: "safeguard stop",
    6: "system emergency stop",
    7: "robot emergency stop",
    8: "emergency stop",
    9: "violation",
    10: "fault",
    11: "stopped by safety",
}


def approach_lines(approach: Approach) -> list[str]:
    """URScript of an approach: check of the start pose, then straight legs.

    A program that finds the robot at another pose, or moving, writes WRONG_START and ends, since
    the
    clearance was proved for the given start only.
    """
    start_pose, *legs = [_row(pose) for pose in approach.poses]
    lines = [
        f"  write_output_integer_register({_REGISTER}, {APPROACH})",
        "  sleep(0.05)",
        "  # The arm must stand where it was cleared to start.",
        f"  local cleared = {start_pose}",
        "  local here = get_actual_joint_positions()",
        "  local speed = get_actual_joint_speeds()",
        "  local i = 0",
        "  while i < 6:",
        f"    if norm(here[i] - cleared[i]) > {_MAX_START_ERROR} or norm(speed[i]) > "
        f"{_MAX_START_SPEED}:",
        f"      write_output_integer_register({_REGISTER}, {WRONG_START})",
        "      sleep(0.05)",
        "      halt",
        "    end",
        "    i = i + 1",
        "  end",
    ]
    move_arguments = f"a={approach.acceleration:.9g}, v={approach.speed:.9g}"
    return lines + [f"  movej({leg}, {move_arguments})" for leg in legs]


def _row(values: Float[Array, " n"]) -> str:
    return "[" + ", ".join(f"{float(x) + 0.0:.9g}" for x in values) + "]"


class UrPlayer:
    """Uploads a program and monitors it by the received samples.

    Args:
        host, ports: Address and ports of the controller.
        program: URScript text.
        begin_within: Time limit for the controller to start it [s].
    """

    def __init__(
        self, host: str, program: str, *, ports: UrPorts | None = None, begin_within: float = 5.0
    ) -> None:
        self.host, self.ports, self.program = host, ports or UrPorts(), program
        self.begin_within = begin_within
        self.notices = PlaybackNotices()
        self._connection: TcpConnection | None = None
        self._sent_time = 0.0
        self._has_started = self._is_over = self._approach_seen = self._phase_valid = False

    def prepare(self) -> None:
        """Open the connection for programs."""
        self._connection = TcpConnection(self.host, self.ports.secondary)

    def start(self) -> None:
        """Send the program; the controller runs it immediately."""
        assert self._connection is not None
        self._connection.send(self.program.encode())
        self._sent_time = time.monotonic()

    def check_progress(self, block: SampleBlock) -> str | None:
        """Reason to end the recording ("" when the program is over), or None to continue."""
        safety = block.last("safety_status", block.last("safety_mode", NORMAL))
        if safety != NORMAL:
            self._is_over = True
            return f"the robot is in {_SAFETY_NAMES.get(int(safety), f'safety mode {int(safety)}')}"
        if block.last("robot_mode", RUNNING) != RUNNING:
            self._is_over = True
            return "the robot was switched off or lost its power"
        scaling = block.status.get("speed_scaling")
        if self._has_started and scaling is not None and float(scaling.min()) < 0.995:
            self.notices.add(
                f"the controller slowed the motion down to {100 * float(scaling.min()):.0f} %; set "
                "the speed slider to 100 %"
            )
        phase = block.status.get(PHASE)
        if phase is not None:
            # The register may contain a value of an earlier program.
            self._phase_valid = self._phase_valid or bool(np.any(phase == APPROACH))
            if self._phase_valid and phase[-1] == WRONG_START:
                self._is_over = True
                return "the arm was moved after it had been cleared, and the program ended itself"
        state = int(block.last("runtime_state", PLAYING))
        if self._has_started and state in _PAUSED_STATES:
            # Resumed later, it would move the robot without monitoring, so the recording ends it.
            return "the program was paused at the controller"
        if state == PLAYING:
            self._has_started = True
        elif self._has_started:
            self._is_over = True
            return ""
        elif time.monotonic() - self._sent_time > self.begin_within:
            self._is_over = True
            return (
                f"the controller did not start the program within {self.begin_within:g} s; it must "
                "be in remote control, with its brakes released"
            )
        return None

    def rows_to_record(self, block: SampleBlock) -> SampleBlock | None:
        """Rows of the recorded phase; all rows if the controller reports no phases."""
        phase = block.status.get(PHASE)
        if phase is None:
            return block
        # The register contains the value of an earlier program until this one starts.
        if not self._approach_seen:
            approach = np.flatnonzero(phase == APPROACH)
            if not len(approach):
                return None
            self._approach_seen = True
            keep = (phase == RECORDED) & (np.arange(len(phase)) > approach[0])
            return select_rows(block, keep)
        return select_rows(block, phase == RECORDED)

    def stop(self) -> None:
        """Stop the robot: a program that stops it, then the dashboard's stop."""
        if self._is_over or not self._sent_time:
            # No program was sent from here, or it is over.
            self.close()
            return
        with contextlib.suppress(WireError):
            connection = TcpConnection(self.host, self.ports.secondary, seconds=2.0)
            connection.send(STOP_PROGRAM.encode())
            time.sleep(1.0)
            connection.close()
        with contextlib.suppress(WireError):
            exchange_lines(self.host, self.ports.dashboard, ["stop"])
        self._is_over = True
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def blocking_reasons(block: SampleBlock) -> list[str]:
    """Reasons why the robot cannot move; empty if there are none."""
    out = []
    safety = int(block.last("safety_status", block.last("safety_mode", NORMAL)))
    if safety != NORMAL:
        out.append(
            f"the robot is in {_SAFETY_NAMES.get(safety, f'safety mode {safety}')}; resolve that"
        )
    mode = int(block.last("robot_mode", RUNNING))
    if mode != RUNNING:
        out.append(f"the robot is in mode {mode}; power it on and release its brakes")
    if block.last("runtime_state", 1) == PLAYING:
        out.append("a program is running on the controller; stop it first")
    fraction = block.last("target_speed_fraction", 1.0)
    if fraction < 0.995:
        out.append(f"the speed slider is at {100 * fraction:.0f} %; set it to 100 %")
    return out


def controller_info(host: str, ports: UrPorts) -> dict[str, str]:
    """Model, serial number and control mode from the dashboard; empty if unavailable."""
    commands = ("get robot model", "get serial number", "is in remote control")
    try:
        model, serial, remote = exchange_lines(host, ports.dashboard, list(commands))
    except WireError:
        return {}
    answers = {"robot_model": model, "serial_number": serial, "remote_control": remote}
    return {name: text for name, text in answers.items() if "understand" not in text and text}


def read_dh_table(host: str, ports: UrPorts, *, seconds: float = 2.0) -> ur_state.DhTable | None:
    """Denavit-Hartenberg table of this robot; None if the controller does not report it."""
    connection = None
    try:
        connection = TcpConnection(host, ports.secondary, seconds=seconds)
        packages, end = ur_state.PackageParser(), time.monotonic() + seconds
        while time.monotonic() < end:
            for data in packages.feed(connection.receive(end - time.monotonic())):
                _, parts = ur_state.read_package(data)
                if ur_state.KINEMATICS in parts:
                    return ur_state.read_kinematics(parts[ur_state.KINEMATICS])
    except WireError:
        return None
    finally:
        if connection is not None:
            connection.close()
    return None


def mounting_from_gravity(gravity: Float[Array, " 3"]) -> tuple[float, float, float] | None:
    """Roll, pitch and yaw of the base from its gravity vector; yaw is unobservable and set to 0."""
    size = float(np.linalg.norm(gravity))
    if not 9.0 < size < 10.5:
        return None
    x, y, z = (np.asarray(gravity, float) / size).tolist()
    return float(np.arctan2(-y, -z)), float(np.arcsin(np.clip(x, -1.0, 1.0))), 0.0


__all__ = [
    "STOP_PROGRAM",
    "UrPlayer",
    "blocking_reasons",
    "controller_info",
    "mounting_from_gravity",
    "read_dh_table",
]
