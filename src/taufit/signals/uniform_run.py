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
    """Uninterrupted run on a uniform grid, unfiltered.

    Attributes:
        name: Name of the recording.
        time: Time since the first sample of the recording [s].
        position: Joint positions.
        velocity: Measured velocity, or differentiated position.
        measured: Per joint, whether `velocity` was measured.
        acceleration: Measured acceleration, or None.
        torque: Joint torque [N m].
        signed: Per joint, whether `torque` has a sign.
        channels: Slow channels, such as temperatures.
        bad: Per joint, rows interpolated over missing data.
        torque_noise, velocity_noise: Standard deviations of white noise on the grid.
        findings: Findings of cleaning and resampling.
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
        """Copy with its motion delayed by `delay_s` [s]."""
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
        """Velocity delayed by `delay_s` of each joint [s]."""
        if not np.any(delay_s):
            return self.velocity
        return np.concatenate(
            [
                interpolate(self.time, self.velocity[:, j : j + 1], self.time - delay)
                for j, delay in enumerate(delay_s)
            ],
            axis=1,
        )
