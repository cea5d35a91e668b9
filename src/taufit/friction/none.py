"""No friction at all: what a link-side torque sensor sees of an ideal bearing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.arrays import Array, Float
from taufit.friction.model import Shape, Term


@dataclass(frozen=True, slots=True)
class NoFriction:
    """tau_f = 0."""

    terms: ClassVar[tuple[Term, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = ()
    uses_load: ClassVar[bool] = False
    uses_temperature: ClassVar[bool] = False

    def columns(
        self,
        velocity: Float[Array, " n"],
        shape: Float[Array, " s"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n k"]:
        return np.empty((len(velocity), 0))
