"""Friction model with temperature-dependent coefficients."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.wrapper import Wrapper
from taufit.terms.input import TermInput
from taufit.terms.term import DRAG, SLOPE, Parameter, ShapeParameter

LAWS = ("linear", "exponential", "arrhenius")
_KELVIN = 273.15


@dataclass(frozen=True, slots=True)
class TemperatureDependent(Wrapper):
    """Temperature law f(T) of selected coefficients f0 of another model, T in degC.

    linear:       f0 + f1 (T - Tref)                 one more column per term, no shape
    exponential:  f0 exp(-k (T - Tref))              k > 0 by variable projection
    arrhenius:    f0 exp(B (1/(T+273.15) - 1/(Tref+273.15)))     B > 0 likewise

    With the last two friction decreases with temperature, like that of grease; the linear law has
    either sign and suits small temperature ranges.

    Attributes:
        model: Friction model at the reference temperature.
        law: Temperature law: "linear", "exponential" or "arrhenius".
        reference: Reference temperature Tref [degC].
        affected: Temperature-dependent coefficients; all viscous ones by default.
    """

    law: str = "linear"
    reference: float = 25.0
    affected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise ValueError(f"temperature law {self.law!r} is not known: use {', '.join(LAWS)}")
        names = [parameter.name for parameter in self.model.parameters]
        unknown = [name for name in self.affected if name not in names]
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)} is no parameter of the model: {', '.join(names)}"
            )

    @property
    def _affected_columns(self) -> tuple[int, ...]:
        """Columns of the inner model that depend on temperature."""
        return tuple(
            i
            for i, parameter in enumerate(self.model.parameters)
            if (parameter.name in self.affected if self.affected else parameter.group == DRAG)
        )

    @property
    def temperature_parameters(self) -> tuple[str, ...]:
        """Names of temperature-dependent parameters."""
        return tuple(self.model.parameters[i].name for i in self._affected_columns)

    @property
    def own_parameters(self) -> tuple[Parameter, ...]:
        if self.law != "linear":
            return ()
        affected = [self.model.parameters[i] for i in self._affected_columns]
        return tuple(
            Parameter(f"{x.name}_per_degree", False, f"{x.unit}/K", SLOPE, x.optional, 0, x.name)
            for x in affected
        )

    @property
    def own_shapes(self) -> tuple[ShapeParameter, ...]:
        return {
            "linear": (),
            "exponential": (
                ShapeParameter("temperature_rate", (0.005, 0.02, 0.06), 1e-4, 0.5, "1/K"),
            ),
            "arrhenius": (ShapeParameter("activation", (500.0, 2000.0, 5000.0), 10.0, 5e4, "K"),),
        }[self.law]

    @property
    def own_needs(self) -> frozenset[str]:
        return frozenset({"temperature"})

    @property
    def by_load(self) -> tuple[int, ...] | None:
        inner: tuple[int, ...] | None = self.model.by_load
        if inner is None or self.law != "linear":
            return inner
        first = len(self.model.parameters)
        slopes = (first + k for k, i in enumerate(self._affected_columns) if i in inner)
        return (*inner, *slopes)

    def typical_value(self, channel: str) -> float | None:
        inner: float | None = self.model.typical_value(channel)
        return self.reference if channel == "temperature" else inner

    def transform_columns(
        self, inner: Float[Array, "n k"], inputs: TermInput, wrapper_shape: Float[Array, " o"]
    ) -> Float[Array, "n m"]:
        difference = inputs.temperature - self.reference
        affected = list(self._affected_columns)
        if self.law == "linear":
            return np.concatenate([inner, inner[:, affected] * difference[:, None]], -1)
        if self.law == "exponential":
            factor = np.exp(-wrapper_shape[0] * difference)
        else:
            reference_kelvin = self.reference + _KELVIN
            factor = np.exp(
                -wrapper_shape[0]
                * difference
                / (reference_kelvin * (reference_kelvin + difference))
            )
        out = inner.astype(np.result_type(inner, factor))
        out[:, affected] *= factor[:, None]
        return out
