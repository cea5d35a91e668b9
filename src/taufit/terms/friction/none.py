"""No friction at all: what a link-side torque sensor sees of an ideal bearing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.friction.input import FrictionInput
from taufit.terms.friction.model import Friction, Term


@dataclass(frozen=True, slots=True)
class NoFriction(Friction):
    """tau_f = 0."""

    terms: ClassVar[tuple[Term, ...]] = ()

    def at(self, inputs: FrictionInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        return np.empty((len(inputs), 0))
