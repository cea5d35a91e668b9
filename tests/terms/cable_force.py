"""Cables that pull harder the further a joint turns: b q^2 + c q^3. For tests only."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.terms import CONSERVATIVE, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class CableForce(Term):
    kind: ClassVar[Kind] = CONSERVATIVE
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("cable2", unit="N m/rad^2"),
        Parameter("cable3", unit="N m/rad^3"),
    )
    needs: ClassVar[frozenset[str]] = frozenset({"position"})

    def columns_at(self, inputs, shape):
        return np.stack([inputs.position**2, inputs.position**3], -1)
