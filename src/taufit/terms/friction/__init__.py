"""What the joints' bearings and gears cost: dissipative terms, one model per file.

In: TermInput. Out: torque columns. Left to others: fitting coefficients and shapes.
"""

from taufit.terms.friction.asymmetric import Asymmetric
from taufit.terms.friction.fitted_width import FittedWidth
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import Linear
from taufit.terms.friction.linear_load import LinearLoad
from taufit.terms.friction.none import NoFriction
from taufit.terms.friction.polynomial import Polynomial
from taufit.terms.friction.power_law import PowerLaw
from taufit.terms.friction.presliding import Presliding
from taufit.terms.friction.stribeck import Stribeck
from taufit.terms.friction.stribeck_load import StribeckLoad, StribeckLoadSmooth
from taufit.terms.friction.temperature_dependent import TemperatureDependent
from taufit.terms.friction.wrapper import Wrapper

FRICTION_MODELS: dict[str, type[Friction]] = {
    "none": NoFriction,
    "linear": Linear,
    "power_law": PowerLaw,
    "polynomial": Polynomial,
    "stribeck": Stribeck,
    "stribeck_load": StribeckLoad,
    "stribeck_load_smooth": StribeckLoadSmooth,
    "linear_load": LinearLoad,
    "presliding": Presliding,
    "asymmetric": Asymmetric,
    "fitted_width": FittedWidth,
    "temperature_dependent": TemperatureDependent,
}

__all__ = [
    "FRICTION_MODELS",
    "Asymmetric",
    "FittedWidth",
    "Friction",
    "Linear",
    "LinearLoad",
    "NoFriction",
    "Polynomial",
    "PowerLaw",
    "Presliding",
    "Stribeck",
    "StribeckLoad",
    "StribeckLoadSmooth",
    "TemperatureDependent",
    "Wrapper",
]
