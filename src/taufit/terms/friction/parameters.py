"""Parameters common to friction models."""

from __future__ import annotations

from taufit.terms.term import BREAKAWAY, DRAG, LEVEL, LOAD, Parameter

COULOMB = Parameter("coulomb", True, group=LEVEL)
STATIC = Parameter("static", True, group=BREAKAWAY)
# Load-dependent friction of a gear.
BY_LOAD = Parameter("load", True, "1", LOAD, optional="load")
_UNITS = ("N m s/rad", "N m s^2/rad^2", "N m s^3/rad^3")


def viscous_parameter(power: int, *, nonnegative: bool = False, unit: str = "") -> Parameter:
    """Coefficient of a power of speed: "viscous", "viscous2", "viscous3"; higher powers are
    optional.
    """
    name = "viscous" if power == 1 else f"viscous{power}"
    unit = unit or _UNITS[power - 1]
    return Parameter(name, nonnegative, unit, DRAG, "" if power == 1 else name, power)
