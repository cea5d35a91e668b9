"""Friction that is not the same both ways, as worm and harmonic gears have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.parameters import COULOMB
from taufit.terms.input import TermInput
from taufit.terms.term import BREAKAWAY, DRAG, Parameter


@dataclass(frozen=True, slots=True)
class Asymmetric(Friction):
    """Fc s + Fv+ v for v > 0 and Fc s + Fv- v for v < 0, with the model's offset B.

    Coulomb friction is then Fc + B forwards and Fc - B backwards: a constant offset and a
    direction-dependent Coulomb level are the same torque, and only their sum can be found.

    Attributes:
        width: Velocity over which the sign turns over [rad/s]; 0 is a hard sign.
        own_coulomb: Gives each direction its own Coulomb term, for torque models without offset.
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

    def at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        forward = velocity > 0.0
        coulomb = (
            [np.where(forward, s, 0.0), np.where(forward, 0.0, s)] if self.own_coulomb else [s]
        )
        return np.stack(
            [*coulomb, np.where(forward, velocity, 0.0), np.where(forward, 0.0, velocity)], -1
        )
