"""Motion of quintic B-splines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError


@dataclass(frozen=True, slots=True, eq=False)
class Spline:
    """Quintic B-splines, one control point per row and joint.

    Attributes:
        knots: Knot times from 0 to the duration [s], ends repeated six times.
        control: Control points [rad or m].
    """

    knots: Float[Array, " k"]
    control: Float[Array, "m j"]

    def __post_init__(self) -> None:
        knots, control = np.asarray(self.knots, float), np.asarray(self.control, float)
        if control.ndim != 2 or len(knots) != len(control) + 6 or np.any(np.diff(knots) < 0):
            raise TaufitError(
                "a spline motion has increasing knots, six more of them than control points."
            )
        if not (np.all(np.isfinite(knots)) and np.all(np.isfinite(control))):
            raise TaufitError("a spline motion has a knot or control point that is not finite.")
        if np.any(knots[:6] != 0.0) or np.any(knots[-6:] != knots[-1]):
            raise TaufitError(
                "a spline motion's knots begin with six zeros and end with six times its duration."
            )
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "control", control)

    @property
    def joints(self) -> int:
        return self.control.shape[1]

    @property
    def duration(self) -> float:
        return float(self.knots[-1])

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration at times [s]; standing before 0 and after `duration`."""
        from scipy.interpolate import BSpline

        t = np.asarray(time, float)
        inside = (t >= 0.0) & (t <= self.duration)
        spline = BSpline(self.knots, self.control, 5)
        clipped = np.clip(t, 0.0, self.duration)
        position = spline(clipped)
        velocity = spline.derivative(1)(clipped) * inside[:, None]
        acceleration = spline.derivative(2)(clipped) * inside[:, None]
        return position, velocity, acceleration

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` returns the same motion."""
        return {"knots": self.knots.tolist(), "control": self.control.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spline:
        """Inverse of `to_dict`."""
        return cls(np.array(data["knots"], float), np.array(data["control"], float))
