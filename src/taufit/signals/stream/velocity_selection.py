"""Selection between measured velocity and differentiated position, per joint."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.signals.noise import is_velocity_too_noisy, noise_std
from taufit.signals.stream.sample import CleanSample

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Samples before the first noise estimate, and between further ones.
_FIRST_BLOCK, _BLOCK = 64, 128
# Number of blocks in the average.
_MEMORY = 10
# Noise ratio below the limit at which measured velocity is used again.
_RETURN_RATIO = 2.0


class VelocitySelection:
    """Per joint, decides from the samples so far whether velocity is differentiated position.

    Args:
        joints: Number of joints.

    Attributes:
        derived: Joints whose velocity is differentiated position.
        any_derived: Whether there are such joints.
        lacking: Joints without measured velocity.
        measured: Whether velocity of all joints is measured.
    """

    __slots__ = (
        "_blocks",
        "_filled",
        "_power",
        "_rows",
        "any_derived",
        "derived",
        "lacking",
        "measured",
    )

    def __init__(self, joints: int) -> None:
        self._rows = np.empty((_BLOCK, 2 * joints))
        self._filled = self._blocks = 0
        self._power = np.zeros(2 * joints)
        self.lacking = np.zeros(joints, bool)
        self.measured = True
        self.derived: Bool[Array, " j"] = np.zeros(joints, bool)
        self.any_derived = False

    def mark_unmeasured(self, joints: Bool[Array, " j"]) -> None:
        """Mark joints as having no measured velocity."""
        self.lacking = joints
        self.measured = not joints.any()
        self.derived = self.derived | joints
        self.any_derived = bool(self.derived.any())

    def fill_unmeasured(self, velocity: Float[Array, " j"]) -> Float[Array, " j"]:
        """Measured velocities, zero for joints without."""
        return np.where(self.lacking, 0.0, velocity)

    def add_sample(self, motion: Float[Array, " c"]) -> None:
        """Add position and velocity of the newest sample, side by side."""
        self._rows[self._filled] = motion
        self._filled += 1
        if self._filled >= (_FIRST_BLOCK if self._blocks == 0 else _BLOCK):
            self._update()

    def _update(self) -> None:
        joints = len(self.derived)
        self._blocks += 1
        power = noise_std(self._rows[: self._filled]) ** 2
        self._filled = 0
        self._power += (power - self._power) / min(self._blocks, _MEMORY)
        noise = np.sqrt(self._power)
        position, velocity = noise[:joints], noise[joints:]
        worse = is_velocity_too_noisy(velocity, position)
        better = ~is_velocity_too_noisy(_RETURN_RATIO * velocity, position)
        self.derived = np.where(better, False, self.derived | worse) | self.lacking
        self.any_derived = bool(self.derived.any())


def derived_velocity(
    sample: CleanSample,
    derived: Bool[Array, " j"],
    before: tuple[float, Array] | None,
    after: tuple[float, Array] | None,
) -> Float[Array, " j"]:
    """Velocity of a sample: slope of its position where it is derived, else as measured.

    Args:
        sample: Sample.
        derived: Joints whose velocity is differentiated position.
        before, after: Times and positions of the neighbours, if there are any.
    """
    if _kernel is None or before is None or after is None:
        slope = three_point_slope(sample.time, sample.position, before, after)
        return np.where(derived, slope, sample.velocity)
    out = np.empty(len(derived))
    _kernel.derived_velocity(
        *(before[1], sample.position, after[1], sample.time - before[0], after[0] - sample.time),
        *(derived, sample.velocity, out),
    )
    return out


def three_point_slope(
    time: float,
    value: Float[Array, " j"],
    before: tuple[float, Array] | None,
    after: tuple[float, Array] | None,
) -> Float[Array, " j"]:
    """Derivative at the middle of three samples, second order for unequal steps.

    With one neighbour it is the one-sided difference, without any zero.
    """
    if before is None and after is None:
        return np.zeros_like(value)
    if before is None or after is None:
        neighbour_time, neighbour_value = before or after  # type: ignore[misc]
        return (value - neighbour_value) / (time - neighbour_time)
    back, ahead = time - before[0], after[0] - time
    backward, forward = (value - before[1]) / back, (after[1] - value) / ahead
    return np.asarray((ahead * backward + back * forward) / (back + ahead))
