"""One uninterrupted interval of a recording on a uniform grid, before any low-pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
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

    def without_torque_delay(self, delay_s: float | tuple[float, ...]) -> UniformRun:
        """Copy with motion and torque aligned.

        Motion is delayed by the longest delay, torque of each joint by what its delay lacks of it.

        Args:
            delay_s: Delay of torque behind motion [s]; one number or one per joint.
        """
        if not np.any(delay_s):
            return self
        longest = max(delay_s) if isinstance(delay_s, tuple) else delay_s
        shifted_time = self.time - longest

        def shift(columns: Float[Array, "n j"]) -> Float[Array, "n j"]:
            return interpolate(self.time, columns, shifted_time)

        return replace(
            self,
            position=shift(self.position),
            velocity=shift(self.velocity),
            acceleration=None if self.acceleration is None else shift(self.acceleration),
            torque=self._delay_columns(self.torque, longest - np.array(delay_s))
            if isinstance(delay_s, tuple)
            else self.torque,
        )

    def friction_velocity(self, delay_s: Float[Array, " j"]) -> Float[Array, "n j"]:
        """Velocity delayed by `delay_s` of each joint [s]."""
        return self._delay_columns(self.velocity, delay_s)

    def _delay_columns(
        self, columns: Float[Array, "n j"], delay_s: Float[Array, " j"]
    ) -> Float[Array, "n j"]:
        """Columns, each later by its delay [s]."""
        if not np.any(delay_s):
            return columns
        return np.concatenate(
            [
                interpolate(self.time, columns[:, j : j + 1], self.time - delay)
                for j, delay in enumerate(delay_s)
            ],
            axis=1,
        )
