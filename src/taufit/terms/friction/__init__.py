"""Friction models of bearings and gears: dissipative terms, one model per file.

In: TermInput. Out: torque columns. Elsewhere: fitting of coefficients and shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taufit.core.lazy import Registry, lazy_package

if TYPE_CHECKING:
    from taufit.terms.friction.asymmetric import Asymmetric as Asymmetric
    from taufit.terms.friction.fitted_width import FittedWidth as FittedWidth
    from taufit.terms.friction.friction import Friction as Friction
    from taufit.terms.friction.linear import Linear as Linear
    from taufit.terms.friction.linear_load import LinearLoad as LinearLoad
    from taufit.terms.friction.no_friction import NoFriction as NoFriction
    from taufit.terms.friction.polynomial import Polynomial as Polynomial
    from taufit.terms.friction.power_law import PowerLaw as PowerLaw
    from taufit.terms.friction.presliding import Presliding as Presliding
    from taufit.terms.friction.stribeck import Stribeck as Stribeck
    from taufit.terms.friction.stribeck_load import (
        StribeckLoad as StribeckLoad,
        StribeckLoadSmooth as StribeckLoadSmooth,
    )
    from taufit.terms.friction.temperature_dependent import (
        TemperatureDependent as TemperatureDependent,
    )
    from taufit.terms.friction.wrapper import Wrapper as Wrapper

FRICTION_MODELS: Registry[type[Friction]] = Registry(
    {
        "none": "taufit.terms.friction.no_friction:NoFriction",
        "linear": "taufit.terms.friction.linear:Linear",
        "power_law": "taufit.terms.friction.power_law:PowerLaw",
        "polynomial": "taufit.terms.friction.polynomial:Polynomial",
        "stribeck": "taufit.terms.friction.stribeck:Stribeck",
        "stribeck_load": "taufit.terms.friction.stribeck_load:StribeckLoad",
        "stribeck_load_smooth": "taufit.terms.friction.stribeck_load:StribeckLoadSmooth",
        "linear_load": "taufit.terms.friction.linear_load:LinearLoad",
        "presliding": "taufit.terms.friction.presliding:Presliding",
        "asymmetric": "taufit.terms.friction.asymmetric:Asymmetric",
        "fitted_width": "taufit.terms.friction.fitted_width:FittedWidth",
        "temperature_dependent": (
            "taufit.terms.friction.temperature_dependent:TemperatureDependent"
        ),
    }
)
__all__ = ["FRICTION_MODELS"]

lazy_package(__name__)
