"""Settings of payload estimation; the defaults suit any robot."""

from __future__ import annotations

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.names import renamed_keywords

# Upper limit of relative standard deviations of drive gains.
_LARGEST_GAIN_STD = 1.0


@dataclass(frozen=True, slots=True)
class PayloadSettings:
    """Settings of the payload filter.

    Attributes:
        mass_accuracy: Relative standard deviation of the mass, without the uncertainty of drive
            gains, at which `stopped_at` is set. Smaller values need longer motion.
        com_accuracy: Standard deviation of each coordinate of the centre of mass required as well
            [m].
        ready_mass: Standard deviation of the mass at which an estimate is ready, relative to the
            mass or to `light_mass`, whichever is larger.
        light_mass: Mass below which accuracies are absolute: relative to this mass [kg].
        box: Outer size of the payload along the last link's axes [m]; None if unknown.
        density: Density of the payload [kg/m^3]; None if unknown.
        com_std: Prior standard deviation of the centre of mass about `place`, or else about the
            frame's origin [m].
        place: Stated centre of mass in the last link's frame [m]; None if unknown.
        gain_std: Lower bound of the relative standard deviation of the drive gains. Larger values
            widen all intervals.
        gain_common: Relative standard deviation of an error common to all drive gains (motors
            warmer than at the time of the fit).
        lever_std: Standard deviation of the robot's geometry, as error of lever arms [m].
        friction_change: Relative standard deviation of the change of friction since the fit.
            Larger values widen the intervals.
        noise_factor: Factor on the noise density of the training data, for motion not fitted to.
        standstill_speed: Speed below which friction lies anywhere within its stiction band
            [rad/s or m/s].
        bins_per_update: Time bins processed together.
        max_rate_hz: Upper limit of the rate of the time grid [Hz].
        memory_s: Time constant of exponential forgetting [s]; infinite for none.
        detect_changes: Whether picks and drops are detected.
        change_threshold: Detection threshold of a payload change, as 2 ln of its Bayes factor
            against noise. Larger values give fewer false alarms and later detection.
        change_windows: Window lengths of the change detection [s]. Short windows detect quickly,
            long ones detect small changes.
    """

    mass_accuracy: float = 0.01
    com_accuracy: float = 0.005
    ready_mass: float = 0.05
    light_mass: float = 1.0
    box: tuple[float, float, float] | None = None
    density: float | None = None
    com_std: float = 0.2
    place: tuple[float, float, float] | None = None
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
        """Description of the accuracy at which an estimate is ready."""
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
        if self.place is not None and not (len(self.place) == 3 and np.isfinite(self.place).all()):
            raise TaufitError("the place of a payload is three coordinates in metres.")
        if self.density is not None and not 1.0 < self.density < 3e4:
            raise TaufitError(
                f"a density of {self.density:g} kg/m^3 is that of no payload; steel has 7850."
            )


# Former names of 0.1, accepted with a warning until 0.3.
PayloadSettings.__init__ = renamed_keywords(  # type: ignore[method-assign]
    light="light_mass",
    com_spread="com_std",
    standstill="standstill_speed",
    chunk="bins_per_update",
    fastest_hz="max_rate_hz",
    memory="memory_s",
    detect="detect_changes",
    alarm="change_threshold",
    windows="change_windows",
)(PayloadSettings.__init__)
