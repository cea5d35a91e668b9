"""Constant torque offset of each joint."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.input import TermInput
from taufit.terms.term import CONSTANT, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class Offset(Term):
    """Torque that a sensor or drive indicates at zero torque."""

    kind: ClassVar[Kind] = CONSTANT
    block: ClassVar[str] = "offset"
    at_motor: ClassVar[bool] = False
    filtered: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("offset"),)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        return np.stack([np.ones_like(inputs.velocity)], -1)
