"""Simulated robot that repeats one motion, for read-only interfaces."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.excitation import Motion
from taufit.sim.payload import CarriedPayload
from taufit.sim.plant import OperatingRange
from taufit.sim.stepped_twin import ControlSample
from taufit.sim.twin import Twin

Command = tuple[Float[Array, " j"], Float[Array, " j"], Float[Array, " j"]]


class RepeatingRobot:
    """Twin on a periodic motion, one control step at a time.

    Args:
        twin: Simulated robot.
        motion: Motion, repeated without end; it must end at its start.
        rate_hz: Control rate [Hz].
        seed, payload: Passed to `Twin.start`.
    """

    def __init__(
        self,
        twin: Twin,
        motion: Motion,
        rate_hz: float,
        *,
        seed: int = 0,
        payload: tuple[CarriedPayload, ...] = (),
    ) -> None:
        ends = motion.at(np.array([0.0, motion.duration]))
        if np.abs(ends[0][0] - ends[0][1]).max() > 1e-6 or np.abs(ends[1]).max() > 1e-3:
            raise TaufitError("a motion that is played again and again starts and ends at rest.")
        self.twin, self.motion, self.rate_hz = twin, motion, rate_hz
        sample_times = np.linspace(0.0, motion.duration, 2000)
        max_speed = np.abs(motion.at(sample_times)[1]).max(0)
        self.arm = twin.start(
            ends[0][0],
            seed=seed,
            payload=payload,
            rate_hz=rate_hz,
            envelope=OperatingRange.of_motion(motion, max_speed),
        )
        self.steps = 0

    def step(self) -> tuple[ControlSample, Command]:
        """Next sample, and the command at that time."""
        ticks = self.steps * self.arm.ticks + np.arange(self.arm.ticks)
        motion_time = np.mod(ticks * 1e-3, self.motion.duration)
        q, v, a = self.motion.at(motion_time)
        self.steps += 1
        return self.arm.step(q, v, a), (q[0], v[0], a[0])


class PeriodicThread:
    """Thread that calls a function at a steady rate, catching up if late."""

    def __init__(self, rate_hz: float, function: Callable[[], None], *, pace: float = 1.0) -> None:
        self._step, self._function = 1.0 / (rate_hz * pace), function
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def _run(self) -> None:
        start_time, count = time.perf_counter(), 0
        try:
            while not self._stop.is_set():
                self._function()
                count += 1
                remaining_s = start_time + count * self._step - time.perf_counter()
                if remaining_s > 0.0:
                    time.sleep(remaining_s)
        except BaseException as error:
            self.failure = error
