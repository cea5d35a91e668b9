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
        margin: Factor on the evidence that an alarm needs, for motion unlike any seen so far.
        wait: At standstill an alarm waits this long: motors push before an arm starts [s].
        sign: That wait begins at this share of the evidence that an alarm needs.
        least: In friction levels: smaller changes at standstill are friction that unwinds.
        band: In friction levels: at standstill a change beyond this is no start of a motion.
        longest: A change that lasts longer becomes the new level [s].
        look_back: Over which the change of a contact is averaged [s].
        end: Over which its end is looked for [s].
        off_vertical: Evidence against a vertical force that excludes a pick: chi-squared.
        force_std: Of forces before anything is known [N].
        blind_std: Directions in which a force is known no better than this are blind [N].
    """

    alarms_per_hour: float = 1.0
    tool: tuple[float, float, float] = (0.0, 0.0, 0.0)
    margin: float = 1.0
    wait: float = 0.08
    sign: float = 0.4
    least: float = 0.45
    band: float = 3.2
    longest: float = 10.0
    look_back: float = 0.2
    end: float = 0.08
    off_vertical: float = 12.0
    force_std: float = 60.0
    blind_std: float = 100.0

    def __post_init__(self) -> None:
        if not 1e-4 <= self.alarms_per_hour <= 3600.0:
            raise TaufitError(
                f"a rate of {self.alarms_per_hour:g} false alarms per hour cannot be kept; "
                "choose between 0.0001 and 3600."
            )
        if len(self.tool) != 3:
            raise TaufitError("a tool point is three lengths in metres, X,Y,Z.")
        for name in ("margin", "longest", "look_back", "end", "force_std", "blind_std"):
            if not getattr(self, name) > 0.0:
                raise TaufitError(f"contact setting {name} is positive, not {getattr(self, name)}.")
