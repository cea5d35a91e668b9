"""Friction of a joint's bearings and gears: a term that takes energy."""

from __future__ import annotations

from typing import ClassVar

from taufit.terms.term import DISSIPATIVE, Kind, Term


class Friction(Term):
    """Dissipative torque; a model without memory has only `parameters` and `at` to write."""

    __slots__ = ()

    kind: ClassVar[Kind] = DISSIPATIVE

    @property
    def law(self) -> str:
        """How coefficients follow temperature: the name of a law, or "" where they do not."""
        return ""

    @property
    def has_smooth_sign(self) -> bool:
        """Whether its sign turns over along a range of speed."""
        return bool(getattr(self, "width", 0.0) > 0.0)

    def without_load(self) -> Friction | None:
        """The same curve for a joint that carries no load; None where there is no other."""
        return None

    def with_memory(self, widths: tuple[float, ...]) -> Friction:
        """The same friction with memory over other displacements."""
        raise TypeError(f"{type(self).__name__} has no memory")
