"""Playback on a Universal Robots controller by set points streamed over the network.

A small program on the controller moves to the start, then passes every set point from the input
registers to servoj. Set points are paced by the controller's control steps. Without a new one for
0.1 s
the program stops the robot and ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import WireError
from taufit.wire import rtde
from taufit.wire.player import APPROACH, FINISHED, PREPARATION, Approach, Playback
from taufit.wire.rtde_connection import RtdeConnection
from taufit.wire.source import SampleBlock
from taufit.wire.ur import UrPorts
from taufit.wire.ur_player import PHASE, UrPlayer, approach_lines

# Phase written by the program when set points stop arriving.
STARVED = 5
# First input register for network clients; lower ones belong to field buses.
_FIRST_REGISTER = 24
_NUMBER, _PHASE = (
    f"input_int_register_{_FIRST_REGISTER}",
    f"input_int_register_{_FIRST_REGISTER + 1}",
)
_JOINTS = tuple(f"input_double_register_{_FIRST_REGISTER + i}" for i in range(6))
# Longest time between set points, and until the first one [s].
_PATIENCE_S, _FIRST_POINT_S = 0.1, 5.0
# Largest number of steps caught up at once, to avoid jumps.
_MAX_CATCH_UP = 2
_CHUNK_S = 1.0


def stream_program(approach: Approach, step_s: float) -> str:
    """URScript program that runs on the controller."""
    row = "[" + ", ".join(f"{float(x) + 0.0:.9g}" for x in approach.poses[-1]) + "]"
    register = f"write_output_integer_register({_FIRST_REGISTER}, "
    lines = [
        "def taufit_stream():",
        *approach_lines(approach),
        f"  local q = {row}",
        "  sleep(0.5)",
        f"  local last = read_input_integer_register({_FIRST_REGISTER})",
        f"  local silent = {-round(_FIRST_POINT_S / step_s)}",
        f"  local phase = {PREPARATION}",
        f"  {register}phase)",
        f"  while phase < {FINISHED}:",
        f"    local number = read_input_integer_register({_FIRST_REGISTER})",
        "    if number != last:",
        "      silent = 0",
        "      last = number",
        f"      phase = read_input_integer_register({_FIRST_REGISTER + 1})",
    ]
    lines += [f"      q[{i}] = read_input_float_register({_FIRST_REGISTER + i})" for i in range(6)]
    lines += [
        "    else:",
        "      silent = silent + 1",
        f"      if silent > {round(_PATIENCE_S / step_s)}:",
        f"        phase = {STARVED}",
        "      end",
        "    end",
        f"    {register}phase)",
        f"    servoj(q, t={step_s:.9g}, lookahead_time=0.03, gain=1000)",
        "  end",
        "  stopj(2.0)",
        "end",
    ]
    return "\n".join(lines) + "\n"


class UrStreamPlayer(UrPlayer):
    """Streams a playback to a controller and monitors it by the received samples.

    Args:
        host, ports: Address and ports of the controller.
        playback: Playback of the motion.
        approach: Legs from the current pose to the start.
        begin_within: Time limit for the controller to start the program [s].
    """

    def __init__(
        self,
        host: str,
        playback: Playback,
        approach: Approach,
        *,
        ports: UrPorts | None = None,
        begin_within: float = 5.0,
    ) -> None:
        super().__init__(host, "", ports=ports, begin_within=begin_within)
        self.playback, self.approach, self.step_s = playback, approach, 0.002
        self._failure = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._stream: RtdeConnection | None = None
        self._outputs = self._inputs = rtde.Recipe(0, (), ())

    def prepare(self) -> None:
        """Reserve the registers, and agree on the control steps."""
        super().prepare()
        stream = RtdeConnection(self.host, self.ports.rtde, lambda body: None)
        self._stream = stream
        self.step_s = 1.0 / stream.max_rate_hz
        self.program = stream_program(self.approach, self.step_s)
        self._outputs = stream.outputs(stream.max_rate_hz, ("timestamp", PHASE))
        self._inputs = stream.inputs((_NUMBER, _PHASE, *_JOINTS))
        stream.start(self._outputs)
        # Reset the number, since the program detects set points by its changes.
        stream.write(self._inputs, _values(0, PREPARATION, self.playback.start))

    def start(self) -> None:
        """Send the program, and stream set points in a thread."""
        assert self._stream is not None
        super().start()
        self._thread = threading.Thread(
            target=self._follow, args=(self._stream,), name="taufit stream", daemon=True
        )
        self._thread.start()

    def _follow(self, stream: RtdeConnection) -> None:
        """Send one set point per control step once the program requests them."""
        outputs, inputs = self._outputs, self._inputs
        points, last = self._points(), self.playback.at(_END_TIME)[1][0]
        number, approached, ready = 0, False, False
        try:
            while not self._ended.is_set():
                bodies = stream.receive(outputs, 0.5)
                if not ready:
                    for body in bodies:
                        phase = outputs.unpack(body)[PHASE]
                        # The register may contain the phase of an earlier program.
                        approached = approached or phase == APPROACH
                        ready = ready or (approached and phase == PREPARATION)
                    continue
                if len(bodies) > _MAX_CATCH_UP:
                    self.notices.add(
                        "set points came late at times; the recording shows what the arm did, but "
                        "a program on the controller (without --stream) plays more smoothly"
                    )
                point = None
                for _ in range(min(len(bodies), _MAX_CATCH_UP)):
                    point = next(points, None)
                    if point is None:
                        break
                if bodies and point is None:
                    stream.write(inputs, _values(number + 1, FINISHED, last))
                    return
                if point is not None:
                    number += 1
                    stream.write(inputs, _values(number, int(point[0]), point[1]))
        except WireError as error:
            self._failure = str(error)

    def _points(self) -> Iterator[tuple[int, Float[Array, " 6"]]]:
        """Phase and position of each control step."""
        count = int(np.ceil(self.playback.duration / self.step_s))
        chunk = max(1, round(_CHUNK_S / self.step_s))
        for first in range(0, count, chunk):
            time = self.step_s * np.arange(first, min(count, first + chunk))
            phase, q, _, _ = self.playback.at(time)
            yield from zip(phase.tolist(), q, strict=True)

    def check_progress(self, block: SampleBlock) -> str | None:
        """Check as the base class does, and detect a failed stream."""
        ended = super().check_progress(block)
        starved = block.last(PHASE, 0) == STARVED
        if self._failure or (ended == "" and starved):
            return (
                "no set points reached the controller for "
                f"{_PATIENCE_S:g} s, and it stopped the arm ({self._failure or 'a busy computer'})"
            )
        return ended

    def stop(self) -> None:
        """End the stream, so that the program stops the robot; then as the base class."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None
        super().stop()

    def close(self) -> None:
        """Close the connections."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        super().close()


# Time after any playback, at the end of the motion.
_END_TIME = np.array([np.inf])


def _values(number: int, phase: int, position: Float[Array, " 6"]) -> dict[str, float | int]:
    return {
        _NUMBER: number,
        _PHASE: phase,
        **dict(zip(_JOINTS, np.asarray(position, float).tolist(), strict=True)),
    }


__all__ = ["STARVED", "UrStreamPlayer", "stream_program"]
