"""What the joints' bearings and gears cost. In: FrictionInput. Out: torque columns.

Left to others: fitting coefficients and shapes (estimation).
"""

from taufit.terms.friction.asymmetric import Asymmetric
from taufit.terms.friction.compensated import Compensated
from taufit.terms.friction.fitted_width import FittedWidth
from taufit.terms.friction.input import FrictionInput
from taufit.terms.friction.linear import Linear
from taufit.terms.friction.linear_load import LinearLoad
from taufit.terms.friction.model import (
    Friction,
    FrictionModel,
    Shape,
    State,
    Term,
    level,
    level_columns,
    needs,
    of_joint,
    remembers,
    start_shape,
)
from taufit.terms.friction.none import NoFriction
from taufit.terms.friction.polynomial import Polynomial
from taufit.terms.friction.power_law import PowerLaw
from taufit.terms.friction.presliding import Presliding
from taufit.terms.friction.ripple import Ripple
from taufit.terms.friction.settings import friction_from_dict, friction_to_dict
from taufit.terms.friction.stribeck import Stribeck
from taufit.terms.friction.stribeck_load import StribeckLoad, StribeckLoadSmooth
from taufit.terms.friction.temperature_dependent import TemperatureDependent
from taufit.terms.friction.wrapper import Wrapper

FRICTION_MODELS = {
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
    "ripple": Ripple,
    "compensated": Compensated,
}

__all__ = [
    "FRICTION_MODELS",
    "Asymmetric",
    "Compensated",
    "FittedWidth",
    "Friction",
    "FrictionInput",
    "FrictionModel",
    "Linear",
    "LinearLoad",
    "NoFriction",
    "Polynomial",
    "PowerLaw",
    "Presliding",
    "Ripple",
    "Shape",
    "State",
    "Stribeck",
    "StribeckLoad",
    "StribeckLoadSmooth",
    "TemperatureDependent",
    "Term",
    "Wrapper",
    "friction_from_dict",
    "friction_to_dict",
    "level",
    "level_columns",
    "needs",
    "of_joint",
    "remembers",
    "start_shape",
]
