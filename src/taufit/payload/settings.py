"""What a user may set about payload estimation; the defaults fit any arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.errors import TaufitError

# Gains that are wrong by more than themselves say nothing about torque.
_LARGEST_GAIN_STD = 1.0


@dataclass(frozen=True, slots=True)
class PayloadSettings:
    """How a payload is estimated.

    Attributes:
        mass_accuracy: Stop when the mass has this relative standard deviation, drive gains apart.
        com_accuracy: ... and every coordinate of the centre of mass this one [m].
        ready_mass: Ready when the mass is known to this share of itself or of `light_mass`.
        light_mass: Below this mass accuracies count as if the payload weighed this [kg].
        box: Outer size of the payload along the last link's axes [m], or None.
        density: Of the payload [kg/m^3], or None where unknown.
        com_std: Prior standard deviation of the centre of mass about the frame's origin [m].
        gain_std: Relative standard deviation of the drive gains, at least: drives of one type
            differ from each other by that much.
        gain_common: Relative standard deviation of what all drive gains have in common (motors that
            are warmer than when the model was fitted).
        lever_std: Standard deviation of the arm's geometry: levers differ by that much [m].
        friction_change: Relative change of friction since the model was fitted (one sigma).
        noise_factor: Factor on the noise density of the training data: new motion is not fitted.
        standstill_speed: Slower than this friction is anywhere in its band [rad/s or m/s].
        bins_per_update: Cells of the grid worked on at a time.
        max_rate_hz: Of the grid.
        memory_s: Time after which old samples count 1/e [s]; infinite for ever.
        detect_changes: Whether picks and drops are looked for.
        change_threshold: Evidence for a changed payload that counts: twice the logarithm of how
            much better
            a change explains the last moments than noise does.
        change_windows: Over which a change is looked for: the short ones are quick, the long ones
            see
            small changes [s].
    """

    mass_accuracy: float = 0.01
    com_accuracy: float = 0.005
    ready_mass: float = 0.05
    light_mass: float = 1.0
    box: tuple[float, float, float] | None = None
    density: float | None = None
    com_std: float = 0.2
    gain_std: float = 0.015
    gain_common: float = 0.015
    lever_std: float = 0.0007
    friction_change: float = 0.04
    noise_factor: float = 1.15
    standstill_speed: float = 0.02
    bins_per_update: int = 3
    max_rate_hz: float = 125.0
    memory_s: float = np.inf
    detect_changes: bool = True
    change_threshold: float = 8.0
    change_windows: tuple[float, ...] = (0.1, 0.2, 0.4, 0.8)

    @property
    def ready_means(self) -> str:
        """In words, how well the mass is known when an estimate is ready."""
        share, light = 100.0 * self.ready_mass, self.light_mass
        return (
            f"the mass has a standard deviation of at most {share:g} % of itself, or of "
            f"{1e3 * self.ready_mass * light:.0f} g for payloads below {light:g} kg; the joints "
            "that carry it were seen in both directions"
        )

    def __post_init__(self) -> None:
        positive = (
            "mass_accuracy",
            "com_accuracy",
            "ready_mass",
            "light_mass",
            "com_std",
            "memory_s",
        )
        for name in positive:
            if not getattr(self, name) > 0.0:
                raise TaufitError(f"payload setting {name} is positive, not {getattr(self, name)}.")
        for name in ("gain_std", "gain_common"):
            value = getattr(self, name)
            if not 0.0 <= value <= _LARGEST_GAIN_STD:
                raise TaufitError(
                    f"payload setting {name} is a relative standard deviation between 0 and "
                    f"{_LARGEST_GAIN_STD:g}, not {value:g}. Drives of one type differ by some "
                    "per cent."
                )
        if self.box is not None and not (len(self.box) == 3 and min(self.box) > 0.0):
            raise TaufitError("a bounding box is three positive lengths in metres.")
        if self.density is not None and not 1.0 < self.density < 3e4:
            raise TaufitError(
                f"a density of {self.density:g} kg/m^3 is that of no payload; steel has 7850."
            )
