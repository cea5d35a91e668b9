"""A torsional spring per joint. For tests only."""

from dataclasses import dataclass
from typing import ClassVar

from taufit.terms import CONSERVATIVE, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class HingeSpring(Term):
    kind: ClassVar[Kind] = CONSERVATIVE
    at_motor: ClassVar[bool] = False
    filtered: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("hinge", True, "N m/rad"),)
    needs: ClassVar[frozenset[str]] = frozenset({"position"})

    def columns_at(self, inputs, shape):
        return inputs.position[:, None]
