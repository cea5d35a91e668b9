"""Simulated ABB controller: one EGM datagram per cycle."""

from __future__ import annotations

import contextlib
import socket
import threading

import numpy as np

from taufit.virtual.controllers.repeating_robot import PeriodicThread, RepeatingRobot
from taufit.wire.egm import EgmState, encode


class VirtualEgm:
    """Simulated robot that sends its state to a UDP port by EGM.

    Args:
        arm: Moving simulated robot; ABB's default rate is 250 Hz.
        host, port: Destination of the datagrams.
        pace: Ratio of simulated time to real time.
    """

    def __init__(self, arm: RepeatingRobot, host: str, port: int, *, pace: float = 1.0) -> None:
        self.arm, self.destination = arm, (host, port)
        self.gain = arm.twin.robot.drives.gain
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._ticker = PeriodicThread(arm.rate_hz, self._tick, pace=pace)
        self.sent = 0
        self.ended = threading.Event()

    def __enter__(self) -> VirtualEgm:
        self._ticker.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self._ticker.stop()
        self._udp.close()
        if self._ticker.failure is not None and error[0] is None:
            raise self._ticker.failure

    def _tick(self) -> None:
        sample, (q, _, _) = self.arm.step()
        # EGM sends joint torque, not the drive's signal.
        torque = np.asarray(sample.signal * self.gain, float)
        state = EgmState(
            self.arm.steps,
            sample.time,
            tuple(sample.position.tolist()),
            tuple(q.tolist()),
            tuple(torque.tolist()),
        )
        with contextlib.suppress(OSError):
            self._udp.sendto(encode(state), self.destination)
            self.sent += 1
