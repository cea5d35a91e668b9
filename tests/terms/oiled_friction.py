"""Drag that falls with the temperature of the motor, a channel of its own. For tests only."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.terms import DISSIPATIVE, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class OiledFriction(Term):
    reference: float = 40.0

    kind: ClassVar[Kind] = DISSIPATIVE
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("oiled", True, "N m s/rad"),)
    needs: ClassVar[frozenset[str]] = frozenset({"velocity", "motor_temperature"})

    def typical_value(self, channel):
        return self.reference if channel == "motor_temperature" else 25.0

    def columns_at(self, inputs, shape):
        cold = np.exp(-0.02 * (inputs.read("motor_temperature") - self.reference))
        return np.stack([inputs.velocity * cold], -1)
