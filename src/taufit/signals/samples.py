"""Conditioned motion and torque on a uniform grid: what every fit works on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taufit.arrays import Array, Bool, Float, Int


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """One or several runs, resampled uniformly and filtered alike.

    Torque at the joints [N m], rows in time order, run after run. The low-pass that shaped
    `velocity`, `acceleration` and `torque` must shape any further column of the regressor too;
    `signals.lowpass(samples, columns)` does that and never filters across the end of a run.

    Attributes:
        time: Of each sample within its run [s].
        position, velocity, acceleration: Of the joints, filtered, SI.
        torque: At the joints, filtered; absolute values where `signed` is false.
        friction_velocity: Velocity before the low-pass, shifted by the drive's delay: friction
            columns are built from this and then low-passed, because friction is not linear in
            velocity.
        keep: Rows that belong in a fit, per sample and joint (in motion, not an outlier).
        run: Index of the run each sample belongs to, nondecreasing.
        rate_hz: Of the grid.
        cutoff_hz: Of the zero-phase low-pass; infinite for none.
        noise: Standard deviation of the torque noise per joint, before the low-pass [N m].
        signed: Per joint, whether the torque carries its sign.
        temperature: Of the joints [degC], or None.
        names: Of the runs (file names), for messages.
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    friction_velocity: Float[Array, "n j"]
    keep: Bool[Array, "n j"]
    run: Int[Array, " n"]
    rate_hz: float
    cutoff_hz: float = np.inf
    noise: Float[Array, " j"] | None = None
    signed: Bool[Array, " j"] | None = None
    temperature: Float[Array, "n j"] | None = None
    names: tuple[str, ...] = field(default=("run",))

    @property
    def joints(self) -> int:
        return self.position.shape[1]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def from_arrays(
        cls,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        torque: Float[Array, "n j"],
        *,
        rate_hz: float = 100.0,
    ) -> Samples:
        """Samples that are already clean: simulations and tests."""
        n = len(position)
        return cls(
            time=np.arange(n) / rate_hz,
            position=position,
            velocity=velocity,
            acceleration=acceleration,
            torque=torque,
            friction_velocity=velocity,
            keep=np.ones_like(position, dtype=bool),
            run=np.zeros(n, dtype=np.int64),
            rate_hz=rate_hz,
        )
