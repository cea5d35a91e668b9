"""Torsional spring at each joint: cables, hoses and rubber boots."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.input import TermInput
from taufit.terms.term import CONSERVATIVE, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class Spring(Term):
    """Torque k (q - rest) of a spring of stiffness k about its rest position.

    With an offset in the model the rest position may be 0: k (q - rest) = k q - k rest.

    Attributes:
        rest: Position without torque [rad or m].
    """

    rest: float = 0.0

    kind: ClassVar[Kind] = CONSERVATIVE
    at_motor: ClassVar[bool] = False
    filtered: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("stiffness", True, "N m/rad"),)
    needs: ClassVar[frozenset[str]] = frozenset({"position"})

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        return np.stack([inputs.position - self.rest], -1)
