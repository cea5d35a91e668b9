"""Interface of sources of live samples."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError
from taufit.recording.channels import Channels
from taufit.recording.quantity import channel_names

# Kinds of torque channels. "torque_without_gravity": the controller has subtracted the gravity
# torque
# of its robot model.
TORQUE_KINDS = ("torque", "current", "torque_without_gravity", "raw")
UNITS = {
    "position": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s^2",
    **{name: Channels.unit(name) for name in channel_names()},
}


@dataclass(frozen=True, slots=True, eq=False)
class SourceDescription:
    """Description of the samples of a source.

    Attributes:
        joints: Number of joints.
        fields: Fields of `Recording` in every block, besides time.
        torque_kind: Kind of the torque channel ("signal"), one of TORQUE_KINDS.
        torque_source: Torque source as in `Recording`.
        rate_hz: Sampling rate [Hz]; 0 if unknown.
        meta: Provenance: controller, version, serial number, joint names, mounting, ...
    """

    joints: int
    fields: tuple[str, ...]
    torque_kind: str
    torque_source: str
    rate_hz: float
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def signal_unit(self) -> str:
        return {"current": "A", "raw": ""}.get(self.torque_kind, "N m")

    def units(self) -> dict[str, str]:
        """Unit of every field."""
        return {name: self.signal_unit if name == "signal" else UNITS[name] for name in self.fields}


@dataclass(frozen=True, slots=True)
class Gap:
    """Samples that were not received.

    Attributes:
        after, until: Time of the last sample before and of the first one after it [s].
        lost: Number of missing samples; counted by the controller if `exact`, else estimated from
            this computer's clock.
        exact: Whether `lost` is exact.
        why: Reason.
    """

    after: float
    until: float
    lost: int
    exact: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: getattr(self, name) for name in ("after", "until", "lost", "exact", "why")}


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """Samples in order.

    Attributes:
        time: Time [s], increasing from block to block.
        values: The fields of the description, rows as `time`.
        status: Controller status per row (`runtime_state`, `safety_status`, `speed_scaling`, ...).
    """

    time: Float[Array, " n"]
    values: Mapping[str, Float[Array, "n j"]]
    status: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time)

    def last(self, name: str, default: float) -> float:
        """Latest value of a status, or `default`."""
        values = self.status.get(name)
        return default if values is None or not len(values) else float(values[-1])


@runtime_checkable
class Source(Protocol):
    """Source of live samples of a robot.

    `connect` opens the connection and returns a description; `read` returns samples received within
    a time and reconnects if necessary, until it raises a `WireError`.
    """

    @property
    def gaps(self) -> list[Gap]: ...

    @property
    def duplicated(self) -> int: ...

    @property
    def messages(self) -> list[str]: ...

    def connect(self) -> SourceDescription: ...

    def read(self, seconds: float) -> SampleBlock | None:
        """Samples received within `seconds`; None if there are none."""
        ...

    def close(self) -> None: ...


def newest_block(source: Source, seconds: float = 10.0) -> SampleBlock:
    """Samples received from now on: current position and state of the robot.

    Samples received before are discarded, since they may be old.
    """
    end = time.monotonic() + seconds
    while source.read(0.0) is not None and time.monotonic() < end:
        pass
    while time.monotonic() < end:
        block = source.read(0.5)
        if block is not None:
            return block
    raise WireError(f"connected, but no sample came within {seconds:g} s.")


@dataclass(slots=True)
class SampleClock:
    """Monotonic time of samples from time stamps and numbers; counts missing samples.

    Attributes:
        rate_hz: Sampling rate [Hz].
        stride: Increment of the sample number between consecutive samples.
    """

    rate_hz: float
    stride: int = 1
    gaps: list[Gap] = field(default_factory=list)
    duplicated: int = 0
    last_time: float | None = None
    last_number: int | None = None
    offset: float = 0.0

    def order(
        self,
        time: Float[Array, " n"],
        number: Array | None = None,
        *,
        reason_before: str = "samples missing",
        silence: float | None = None,
    ) -> tuple[Float[Array, " k"], Bool[Array, " n"]]:
        """Recording time of every new sample, and a mask of new samples.

        Args:
            time: Time stamps of the controller [s].
            number: Sample numbers of the controller, if available.
            reason_before: Reason of a gap before the first of these samples.
            silence: Time since the last sample on this computer's clock [s] after a lost
                connection; used if the controller restarted its clock.
        """
        time = np.asarray(time, float)
        keep = np.ones(len(time), bool)
        out = np.empty(len(time))
        step = 1.0 / self.rate_hz
        for i, stamp in enumerate(time):
            reason = reason_before if i == 0 else "samples missing"
            sample_time = float(stamp) + self.offset
            count = None if number is None else int(number[i])
            if self.last_time is not None:
                time_step = sample_time - self.last_time
                number_step = None if count is None else count - (self.last_number or 0)
                if (number_step is not None and number_step == 0) or abs(time_step) < 0.25 * step:
                    self.duplicated += 1
                    keep[i] = False
                    continue
                if time_step < 0.0 or (number_step is not None and number_step < 0):
                    # The controller's clock restarted: continue with this computer's.
                    missed_steps = max(1, round((silence or step) * self.rate_hz))
                    sample_time = self.last_time + missed_steps * step
                    self.offset = sample_time - float(stamp)
                    reason = f"{reason}; the controller's clock started anew"
                    self._gap(sample_time, missed_steps - 1, False, reason)
                elif number_step is not None:
                    self._gap(sample_time, round(number_step / self.stride) - 1, True, reason)
                else:
                    self._gap(sample_time, round(time_step * self.rate_hz) - 1, True, reason)
            out[i] = self.last_time = sample_time
            self.last_number = count
        return out[keep], keep

    def _gap(self, until: float, lost: int, exact: bool, why: str) -> None:
        if lost > 0 and self.last_time is not None:
            self.gaps.append(Gap(self.last_time, until, lost, exact, why))
