"""What a user may set about contact; the defaults fit any arm."""

from __future__ import annotations

from dataclasses import dataclass

from taufit.core.errors import TaufitError


@dataclass(frozen=True, slots=True)
class ContactSettings:
    """How contacts are found.

    Attributes:
        alarms_per_hour: False alarms that are accepted.
        tool: Where forces are taken to act, in the frame of the tip [m].
        threshold_factor: Factor on the evidence that an alarm needs, for motion unlike any seen so
            far.
        standstill_wait: At standstill an alarm waits this long: motors push before an arm starts
            [s].
        first_sign: That wait begins at this share of the evidence that an alarm needs.
        min_standstill_change: In friction levels: smaller changes at standstill are friction that
            unwinds.
        max_start_change: In friction levels: at standstill a change beyond this is no start of a
            motion.
        max_duration: A change that lasts longer becomes the new level [s].
        averaging_time: Over which the change of a contact is averaged [s].
        end_window: Over which its end is looked for [s].
        vertical_chi_square: Evidence against a vertical force that excludes a pick: chi-squared.
        force_std: Of forces before anything is known [N].
        unobservable_std: Directions in which a force is known no better than this are blind [N].
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
                f"a rate of {self.alarms_per_hour:g} false alarms per hour cannot be kept; "
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
