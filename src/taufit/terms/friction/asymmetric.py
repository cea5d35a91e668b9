"""Direction-dependent friction, as of worm and harmonic gears."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.parameters import COULOMB
from taufit.terms.input import TermInput
from taufit.terms.term import BREAKAWAY, DRAG, Parameter


@dataclass(frozen=True, slots=True)
class Asymmetric(Friction):
    """Fc s + Fv+ v for v > 0 and Fc s + Fv- v for v < 0, with the model's offset B.

    Coulomb friction is then Fc + B forwards and Fc - B backwards: a constant offset and
    direction-dependent Coulomb friction are confounded.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
        own_coulomb: Whether each direction has a separate Coulomb term, for models without offset.
    """

    width: float = 0.0
    own_coulomb: bool = False

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        viscous = (
            Parameter("viscous_forward", True, "N m s/rad", DRAG),
            Parameter("viscous_backward", True, "N m s/rad", DRAG),
        )
        if self.own_coulomb:
            names = ("coulomb_forward", "coulomb_backward")
            return (*(Parameter(way, True, group=BREAKAWAY) for way in names), *viscous)
        return (COULOMB, *viscous)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        forward = velocity > 0.0
        coulomb = (
            [np.where(forward, s, 0.0), np.where(forward, 0.0, s)] if self.own_coulomb else [s]
        )
        return np.stack(
            [*coulomb, np.where(forward, velocity, 0.0), np.where(forward, 0.0, velocity)], -1
        )
