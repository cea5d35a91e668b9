"""Weighing the payload of a running robot until it is accurate, and telling its controller.

Samples pass the same conditioning and payload filter as those of the monitor. The controller gets
mass, centre and inertia in the axes of the flange, and what it holds afterwards is read back.
"""

from __future__ import annotations

import time

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError
from taufit.live.monitor_source import block_rows, matching_conditioner
from taufit.model.fitted_model import FittedModel
from taufit.payload import PayloadEstimate, PayloadFilter, PayloadSettings
from taufit.payload.controller_commands import FlangePayload
from taufit.payload.identification import minimum_gain_std
from taufit.payload.periodic_reader import PayloadReader
from taufit.wire.franka import FrankaState
from taufit.wire.source import SampleBlock, Source, SourceDescription
from taufit.wire.tcp_connection import TcpConnection
from taufit.wire.ur import UrPorts, UrRtde

# Largest difference between a payload that was set and the one read back [kg, m]; time limit [s].
_MASS_TOLERANCE, _CENTRE_TOLERANCE, _READ_BACK_S = 1e-3, 1e-3, 5.0
# Shortest motion at an accuracy of 0.5 % [s], inversely proportional to the square of the accuracy:
# the standard deviation at which the filter stops takes drive gains as known, but it estimates
# them, and the error of both falls with the time. Chosen on simulated Pandas and UR10s (seeds 801
# to 806): deviation 0.4 to 0.6 % after 3 s, 0.3 % after 15 s.
_SHORTEST_S, _REFERENCE_ACCURACY = 15.0, 0.005


class PayloadWatch:
    """Payload of a running robot, sample by sample.

    Args:
        model: Fitted model of the robot without payload.
        description: Description of the connected source.
        settings: Accuracy at which the payload counts as weighed.

    Attributes:
        reader: Payload filter and its estimates.
        first_time, last_time: Times of the first and last sample [s].
    """

    def __init__(
        self, model: FittedModel, description: SourceDescription, settings: PayloadSettings
    ) -> None:
        self._conditioner, gain_std = matching_conditioner(model, description)
        minimum_std = minimum_gain_std(gain_std, settings, model.robot.joints)
        self.reader = PayloadReader(PayloadFilter(model, settings, gain_std=minimum_std))
        self._shortest_s = _SHORTEST_S * (_REFERENCE_ACCURACY / settings.mass_accuracy) ** 2
        self.first_time: float | None = None
        self.last_time = 0.0

    def add(self, block: SampleBlock) -> bool:
        """Process samples; True when the payload has the required accuracy."""
        for row in block_rows(block):
            for sample in self._conditioner.push(*row):
                self.reader.feed(*sample[:5])
                self.last_time = sample[0]
                self.first_time = sample[0] if self.first_time is None else self.first_time
        return self.is_accurate

    @property
    def is_accurate(self) -> bool:
        """Whether the required accuracy was reached."""
        first = self.last_time if self.first_time is None else self.first_time
        return self.reader.stopped_at is not None and self.last_time - first >= self._shortest_s

    def estimate(self) -> PayloadEstimate:
        """Payload from all samples so far; WireError if there were none."""
        if not self.reader.filter.samples:
            raise WireError("no samples of the motion were received.")
        return self.reader.finish()


@dataclass(frozen=True, slots=True, eq=False)
class ControllerPayload:
    """Payload that a controller holds.

    Attributes:
        mass: Mass [kg].
        centre: Centre of mass in the axes of the flange [m]; NaN if it is not reported.
    """

    mass: float
    centre: Float[Array, " 3"]

    def equals(self, payload: FlangePayload) -> bool:
        """Whether it is this payload, within a gram and a millimetre."""
        is_known = np.isfinite(self.centre)
        error = np.abs(self.centre - payload.centre)[is_known]
        return bool(
            abs(self.mass - payload.mass) < _MASS_TOLERANCE
            and error.max(initial=0.0) < _CENTRE_TOLERANCE
        )


def flange_payload(estimate: PayloadEstimate, model: FittedModel) -> FlangePayload:
    """Estimate in the axes of the flange."""
    return FlangePayload.from_last_link(
        estimate.mass, estimate.centre, estimate.inertia, model.robot.tip
    )


def set_controller_payload(
    source: Source, payload: FlangePayload, ports: UrPorts | None = None
) -> ControllerPayload:
    """Set the payload of a connected UR or Franka controller and return what it then holds.

    Raises WireError if the controller refuses or keeps another payload.
    """
    if isinstance(source, FrankaState):
        source.set_load(payload.mass, payload.centre, payload.inertia)
    elif isinstance(source, UrRtde):
        program = f"def taufit_payload():\n  {payload.lines()['ur']}\n  sleep(0.1)\nend\n"
        connection = TcpConnection(source.host, (ports or UrPorts()).secondary)
        connection.send(program.encode())
        time.sleep(0.2)
        connection.close()
    else:
        raise WireError("this source cannot be given a payload; UR and Franka controllers can.")
    end = time.monotonic() + _READ_BACK_S
    held = ControllerPayload(np.nan, np.full(3, np.nan))
    while time.monotonic() < end:
        block = source.read(0.2)
        if block is None:
            continue
        held = controller_payload(block)
        if held.equals(payload):
            return held
    raise WireError(
        f"the controller holds {held.mass:.3f} kg after {payload.mass:.3f} kg were set. Is it in "
        "remote control?"
    )


def controller_payload(block: SampleBlock) -> ControllerPayload:
    """Payload that the controller reports."""
    names = ("payload", "payload_cog") if "payload" in block.status else ("m_load", "F_x_Cload")
    centre: Array | None = block.status.get(names[1])
    return ControllerPayload(
        block.last(names[0], np.nan),
        np.full(3, np.nan) if centre is None else np.asarray(centre[-1], float),
    )
