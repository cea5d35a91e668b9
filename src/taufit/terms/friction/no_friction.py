"""No friction: for ideal link-side torque sensors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.input import TermInput
from taufit.terms.term import Parameter


@dataclass(frozen=True, slots=True)
class NoFriction(Friction):
    """tau_f = 0."""

    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        return np.empty((len(inputs), 0))
