"""RTDE session of one client of a simulated controller, without sockets."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from taufit.core.errors import WireError
from taufit.virtual.controllers.rtde_variables import input_types
from taufit.wire import rtde

if TYPE_CHECKING:
    from taufit.virtual.controllers.ur_controller import UrController


class RtdeSession:
    """State agreed between one client and the controller.

    Args:
        controller: Simulated controller.
        reserved: Input variables written by clients, shared by all sessions.
    """

    def __init__(self, controller: UrController, reserved: set[str]) -> None:
        self.controller, self._reserved = controller, reserved
        self._own_inputs: set[str] = set()
        self._frames = rtde.FrameParser()
        self._inputs: dict[int, rtde.Recipe] = {}
        self.outputs: rtde.Recipe | None = None
        self.output_interval = 1
        self.running = False

    def receive(self, data: bytes) -> bytes:
        """Process received bytes; return the answer."""
        answers = []
        for kind, body in self._frames.feed(data):
            answers.append(self._answer(kind, body))
        return b"".join(answers)

    def close(self) -> None:
        """Release the inputs."""
        self._reserved -= self._own_inputs
        self._own_inputs = set()
        self.running = False

    def sample(self) -> bytes:
        """Data frame of this control step; empty if none is due."""
        if not self.running or self.outputs is None:
            return b""
        if self.controller.steps % self.output_interval:
            return b""
        value = self.controller.output_value
        values = {name: value(name) for name in self.outputs.names}
        return rtde.frame(rtde.DATA, self.outputs.pack(values))

    def _answer(self, kind: int, body: bytes) -> bytes:
        if kind == rtde.PROTOCOL:
            version = int.from_bytes(body[:2], "big") if len(body) >= 2 else 0
            return rtde.frame(rtde.PROTOCOL, bytes([int(version == rtde.VERSION)]))
        if kind == rtde.URCONTROL:
            return rtde.version_reply(self.controller.version)
        if kind == rtde.OUTPUTS:
            return self._set_outputs(body)
        if kind == rtde.INPUTS:
            return self._set_inputs(body)
        if kind == rtde.START:
            self.running = self.outputs is not None
            return rtde.frame(rtde.START, bytes([int(self.running)]))
        if kind == rtde.PAUSE:
            self.running = False
            return rtde.frame(rtde.PAUSE, b"\x01")
        if kind == rtde.DATA:
            self._write(body)
        return b""

    def _set_outputs(self, body: bytes) -> bytes:
        rate, names = rtde.read_outputs_request(body)
        max_rate = self.controller.rate_hz
        if not 1.0 <= rate <= max_rate:
            text = f"a rate of {rate:g} Hz is not possible: 1 to {max_rate:g} Hz."
            return rtde.text_message(text, "RTDE", 1) + rtde.types_reply(rtde.OUTPUTS, 0, [])
        types = [self.controller.types.get(name, rtde.NOT_FOUND) for name in names]
        is_valid = bool(names) and rtde.NOT_FOUND not in types and len(set(names)) == len(names)
        if is_valid:
            self.outputs = rtde.Recipe(1, tuple(names), tuple(types))
            self.output_interval = max(1, round(max_rate / rate))
        return rtde.types_reply(rtde.OUTPUTS, int(is_valid), types)

    def _set_inputs(self, body: bytes) -> bytes:
        names = rtde.read_inputs_request(body)
        types = input_types(names, self._reserved - self._own_inputs)
        is_valid = (
            bool(names) and all(kind in rtde.TYPES for kind in types) and len(self._inputs) < 255
        )
        if not is_valid:
            return rtde.types_reply(rtde.INPUTS, 0, types)
        number = len(self._inputs) + 1
        self._inputs[number] = rtde.Recipe(number, tuple(names), tuple(types))
        self._own_inputs |= set(names)
        self._reserved |= self._own_inputs
        return rtde.types_reply(rtde.INPUTS, number, types)

    def _write(self, body: bytes) -> None:
        recipe = self._inputs.get(body[0]) if body else None
        if recipe is None:
            raise WireError("data for a recipe that was never agreed.")
        try:
            # Some clients append values beyond their recipe.
            self.controller.inputs.update(recipe.unpack(body[: recipe.size]))
        except struct.error as error:
            raise WireError(f"data that cannot be read: {error}.") from None
