"""What the joints' bearings and gears cost. In: FrictionInput. Out: torque columns.

Left to others: fitting coefficients and shapes (estimation).
"""

from taufit.friction.asymmetric import Asymmetric
from taufit.friction.compensated import Compensated
from taufit.friction.fitted_width import FittedWidth
from taufit.friction.input import FrictionInput
from taufit.friction.linear import Linear
from taufit.friction.linear_load import LinearLoad
from taufit.friction.model import (
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
from taufit.friction.none import NoFriction
from taufit.friction.polynomial import Polynomial
from taufit.friction.power_law import PowerLaw
from taufit.friction.presliding import Presliding
from taufit.friction.ripple import Ripple
from taufit.friction.settings import friction_from_dict, friction_to_dict
from taufit.friction.stribeck import Stribeck
from taufit.friction.stribeck_load import StribeckLoad, StribeckLoadSmooth
from taufit.friction.temperature_dependent import TemperatureDependent
from taufit.friction.wrapper import Wrapper

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
