"""One uninterrupted interval of a recording on a uniform grid, before any low-pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.recording.channels import Channels
from taufit.recording.finding import Finding
from taufit.signals.resampling import interpolate


@dataclass(frozen=True, slots=True, eq=False)
class UniformRun:
    """Attributes:
    name: Of the recording.
    time: Since the recording's first sample [s].
    position: Of the joints.
    velocity: As measured, or the derivative of the position.
    velocity_measured: Per joint, whether `velocity` was measured.
    acceleration: As measured, or None.
    torque: At the joints [N m].
    signed: Per joint, whether `torque` carries its sign.
    channels: Slow sensors, such as temperatures.
    bad: Per joint, rows that bridge missing data.
    torque_noise, velocity_noise: Standard deviations per sample of the grid.
    findings: What happened on the way here.
    """

    name: str
    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    velocity_measured: Bool[Array, " j"]
    acceleration: Float[Array, "n j"] | None
    torque: Float[Array, "n j"]
    signed: Bool[Array, " j"]
    channels: Channels
    bad: Bool[Array, "n j"]
    torque_noise: Float[Array, " j"]
    velocity_noise: Float[Array, " j"]
    findings: tuple[Finding, ...] = ()

    def with_motion_delay(self, delay_s: float) -> UniformRun:
        """The same run with its motion `delay_s` later, where torque lags by that much."""
        if delay_s == 0.0:
            return self
        shifted_time = self.time - delay_s

        def shift(columns: Float[Array, "n j"]) -> Float[Array, "n j"]:
            return interpolate(self.time, columns, shifted_time)

        return replace(
            self,
            position=shift(self.position),
            velocity=shift(self.velocity),
            acceleration=None if self.acceleration is None else shift(self.acceleration),
        )

    def friction_velocity(self, delay_s: Float[Array, " j"]) -> Float[Array, "n j"]:
        """The velocity, each joint's `delay_s` later."""
        if not np.any(delay_s):
            return self.velocity
        return np.concatenate(
            [
                interpolate(self.time, self.velocity[:, j : j + 1], self.time - delay)
                for j, delay in enumerate(delay_s)
            ],
            axis=1,
        )
