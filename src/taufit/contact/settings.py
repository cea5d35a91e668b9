"""Settings of contact detection; the defaults suit any robot."""

from __future__ import annotations

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError


@dataclass(frozen=True, slots=True)
class ContactSettings:
    """Settings of contact detection.

    Attributes:
        alarms_per_hour: Accepted false alarm rate [1/h]. A larger rate lowers the threshold: weaker
            contacts are detected, and sooner.
        tool: Assumed point of contact at the tool, in the tip frame [m].
        threshold_factor: Factor on the detection threshold, for motion unlike the training data.
        standstill_wait: Delay of alarms at standstill [s]: motor torque rises before a robot
            starts. Larger values avoid false alarms at slow starts.
        first_sign: Fraction of the threshold at which that delay begins.
        min_standstill_change: Smallest change of torque at standstill, in friction levels; smaller
            ones are relaxing friction.
        max_start_change: Largest change of torque before a start of motion, in friction levels;
            larger ones are contacts at once.
        max_duration: Duration after which a lasting change becomes the new torque level [s].
        averaging_time: Time over which the torque of a contact is averaged [s].
        end_window: Time over which the end of a contact is tested [s].
        vertical_chi_square: Chi-square of a vertical force above which a pick is excluded.
        force_std: Prior standard deviation of each force component [N].
        unobservable_std: Standard deviation of a force component above which its direction is
            unobservable [N].
    """

    alarms_per_hour: float = 1.0
    tool: tuple[float, float, float] = (0.0, 0.0, 0.0)
    threshold_factor: float = 1.0
    standstill_wait: float = 0.08
    first_sign: float = 0.4
    min_standstill_change: float = 0.45
    max_start_change: float = 3.2
    max_duration: float = 10.0
    averaging_time: float = 0.2
    end_window: float = 0.08
    vertical_chi_square: float = 12.0
    force_std: float = 60.0
    unobservable_std: float = 100.0

    def __post_init__(self) -> None:
        if not 1e-4 <= self.alarms_per_hour <= 3600.0:
            raise TaufitError(
                f"a rate of {alarm_rate_text(self.alarms_per_hour)} cannot be kept; "
                "choose between 0.0001 and 3600."
            )
        if len(self.tool) != 3:
            raise TaufitError("a tool point is three lengths in metres, X,Y,Z.")
        for name in (
            "threshold_factor",
            "max_duration",
            "averaging_time",
            "end_window",
            "force_std",
            "unobservable_std",
        ):
            if not getattr(self, name) > 0.0:
                raise TaufitError(f"contact setting {name} is positive, not {getattr(self, name)}.")


def alarm_rate_text(rate: float) -> str:
    """False alarm rate in words, with the noun in singular for one."""
    return f"{rate:g} false alarm{'' if rate == 1.0 else 's'} per hour"
