"""A source and a monitor that cost nothing, so that the page is tested without a fit."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from taufit.live.monitor import DROP_REASONS, SampleCounts
from taufit.wire.source import SampleBlock, SourceDescription


class Ticking:
    """A source of `rate_hz` samples per second by this computer's clock, up to `limit` of them."""

    def __init__(self, joints: int = 6, rate_hz: float = 500.0, limit: int | None = None) -> None:
        self.joints, self.rate_hz, self.limit = joints, rate_hz, limit
        self.gaps: list[Any] = []
        self.duplicated, self.messages, self.sent, self.closed = 0, list[str](), 0, False
        self._start = 0.0

    def connect(self) -> SourceDescription:
        self._start = clock.monotonic()
        fields = ("position", "velocity", "signal")
        return SourceDescription(self.joints, fields, "torque", "motor_torque", self.rate_hz)

    def read(self, seconds: float) -> SampleBlock | None:
        if self.limit is not None and self.sent >= self.limit:
            self.closed = True
            return None
        due = int((clock.monotonic() - self._start + seconds) * self.rate_hz)
        if self.limit is not None:
            due = min(due, self.limit)
        clock.sleep(max(0.0, due / self.rate_hz - (clock.monotonic() - self._start)))
        if due <= self.sent:
            return None
        time = np.arange(self.sent, due) / self.rate_hz
        self.sent = due
        j = np.arange(self.joints)
        q = np.sin(0.7 * time[:, None] + j) + 0.2 * j - 0.8
        tau = 20.0 * np.cos(1.3 * time[:, None] + j) + np.sin(60.0 * time[:, None] * (1 + j))
        values = {"position": q, "velocity": 0.7 * np.cos(0.7 * time[:, None] + j), "signal": tau}
        return SampleBlock(time, values)

    def close(self) -> None:
        self.closed = True


@dataclass
class Seen:
    """The attributes of a reading that the page uses."""

    time: float
    position: Any
    torque: Any
    filtered: Any
    predicted: Any
    half_width: Any
    external: Any
    external_half_width: Any
    threshold: float
    payload: Any = None
    contact: Any = None
    temperature: Any = None
    friction_index: Any = None
    events: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"time": self.time, "torque": np.asarray(self.torque).tolist()}


@dataclass
class Pretended:
    """A monitor whose readings follow from the sample and its time alone."""

    events: list[Any] = field(default_factory=list)
    samples: int = 0

    @property
    def sample_counts(self) -> SampleCounts:
        return SampleCounts(self.samples, self.samples, 0, 0, dict.fromkeys(DROP_REASONS, 0))

    def finish(self) -> list[Any]:
        return []

    def run(self, source: Any) -> Any:
        joints = source.connect().joints
        half, limit = np.full(joints, 1.5), np.full(joints, 4.0)
        try:
            while not source.closed if hasattr(source, "closed") else True:
                block = source.read(0.5)
                if block is None:
                    if getattr(getattr(source, "_source", source), "closed", False):
                        return
                    continue
                yield from self._block(block, half, limit)
        finally:
            source.close()

    def _block(self, block: SampleBlock, half: Any, limit: Any) -> Any:
        """Readings of a block; what changes slowly is that of its last sample."""
        q, tau = block.values["position"], block.values["signal"]
        t = float(block.time[-1])
        touching = 4.0 < t % 8.0 < 5.0
        filtered, predicted = tau * 0.98, tau * 0.95 + 0.3
        size = 1.5 * np.sin(0.5 * block.time) * (4.0 if touching else 1.0)
        external, wide = size[:, None] * np.ones_like(tau), 0.3 * limit
        payload, touch = _carried(t), _touched(t) if touching else None
        warm, index = 30.0 + np.arange(len(half)) + 0.01 * t, np.linspace(0.95, 1.3, len(half))
        for i, time in enumerate(block.time.tolist()):
            self.samples += 1
            yield Seen(
                time,
                q[i],
                tau[i],
                filtered[i],
                predicted[i],
                half,
                external[i],
                wide,
                20.0,
                payload,
                touch,
                warm,
                index,
                (_Told(time),) if round(time * 500) % 2000 == 1999 else (),
            )


def _carried(t: float) -> Any:
    spread = 0.02 + 1.0 / (1.0 + t)
    mass = 2.8 + 0.5 * np.exp(-t) * np.sin(3 * t)
    return SimpleNamespace(
        mass=mass,
        mass_interval=(mass - spread, mass + spread),
        centre=np.array([0.01, -0.02, 0.09]),
        centre_interval=(np.zeros(3), np.full(3, 0.1)),
        ready=bool(t > 2.0),
        empty=False,
    )


def _touched(t: float) -> Any:
    return SimpleNamespace(start_time=t - t % 8.0 + 4.0, link="link 5 or 6", kind="contact")


@dataclass
class _Told:
    time: float

    def to_dict(self) -> dict[str, Any]:
        return {"t": self.time, "kind": "contact", "text": "contact on link 5 or 6, 24 N"}
