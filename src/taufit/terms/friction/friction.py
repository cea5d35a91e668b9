"""Friction of a joint's bearings and gears: a dissipative term."""

from __future__ import annotations

from typing import ClassVar

from taufit.terms.term import DISSIPATIVE, Kind, Term


class Friction(Term):
    """Dissipative torque; a model without memory implements only `parameters` and `columns_at`."""

    __slots__ = ()

    kind: ClassVar[Kind] = DISSIPATIVE

    @property
    def law(self) -> str:
        """Name of the temperature law of the coefficients, or "" without one."""
        return ""

    @property
    def has_smooth_sign(self) -> bool:
        """Whether the sign changes smoothly over a range of speed."""
        return bool(getattr(self, "width", 0.0) > 0.0)

    def without_load(self) -> Friction | None:
        """Friction model without load dependence; None if there is no other."""
        return None

    def with_memory(self, widths: tuple[float, ...]) -> Friction:
        """Friction model with other pre-sliding displacements."""
        raise TypeError(f"{type(self).__name__} has no memory")
