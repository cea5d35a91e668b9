"""Motion through a table of positions: splines with their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError


@dataclass(frozen=True, slots=True, eq=False)
class SampledMotion:
    """Quintic splines through given positions; acceleration is twice differentiable.

    Attributes:
        time: Sample times [s], increasing, starting at 0.
        position: Positions at those times [rad or m].
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    _splines: tuple[Any, Any, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        time, position = np.asarray(self.time, float), np.asarray(self.position, float)
        if position.ndim != 2 or time.shape != position.shape[:1] or len(time) < 6:
            raise TaufitError(
                "a sampled motion has at least 6 rows, each with a time and a position per joint."
            )
        if not (np.all(np.isfinite(time)) and np.all(np.isfinite(position))):
            raise TaufitError("a sampled motion has a time or position that is not finite.")
        steps = np.diff(time)
        if np.any(steps <= 0.0):
            row = int(np.argmax(steps <= 0.0)) + 1
            raise TaufitError(f"the times of a sampled motion must increase; row {row} does not.")
        time = time - time[0]
        from scipy.interpolate import make_interp_spline

        spline = make_interp_spline(time, position, k=5)
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "_splines", (spline, spline.derivative(1), spline.derivative(2)))

    @property
    def joints(self) -> int:
        return self.position.shape[1]

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.time[-1])

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration at times [s]; standing before 0 and after `duration`."""
        t = np.asarray(time, float)
        inside = (t >= 0.0) & (t <= self.duration)
        position, velocity, acceleration = (
            spline(np.clip(t, 0.0, self.duration)) for spline in self._splines
        )
        velocity[~inside] = 0.0
        acceleration[~inside] = 0.0
        return position, velocity, acceleration

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` returns the same motion."""
        return {"time": self.time.tolist(), "position": self.position.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SampledMotion:
        """Inverse of `to_dict`."""
        return cls(np.array(data["time"], float), np.array(data["position"], float))
