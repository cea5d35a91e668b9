"""What a torque is made of: the contract of a term, sums of terms, the layout of their parameters.

In: motion, load, recorded channels (`TermInput`). Out: columns, one per parameter, whose sum is a
torque. Left to others: the links, whose columns are the regressor of `dynamics`; fitting.
"""

from typing import Any

from taufit.core.errors import TaufitError
from taufit.terms.friction import FRICTION_MODELS, Friction
from taufit.terms.friction.states import FAST, STATES, FrictionStates, StateSettings
from taufit.terms.gravity_compensator import GravityCompensator
from taufit.terms.input import COMPILED, MOTION, TermInput
from taufit.terms.layout import ParameterLayout
from taufit.terms.offset import Offset
from taufit.terms.ripple import Ripple
from taufit.terms.rotor import Rotor
from taufit.terms.settings import term_from_dict, term_to_dict
from taufit.terms.spring import Spring
from taufit.terms.sum import TermSum, sum_of, terms_in
from taufit.terms.term import (
    BREAKAWAY,
    CONSERVATIVE,
    CONSTANT,
    DISSIPATIVE,
    DRAG,
    INERTIAL,
    LEVEL,
    LOAD,
    MEMORY,
    SLOPE,
    WAVE,
    Group,
    Kind,
    Parameter,
    Shape,
    State,
    Term,
    level,
    level_columns,
    needs,
    remembers,
    start_shape,
    usual_channels,
)

# Terms beside friction, by the names of files and `--term`.
TERMS: dict[str, type[Term]] = {
    "rotor": Rotor,
    "offset": Offset,
    "ripple": Ripple,
    "gravity_compensator": GravityCompensator,
    "spring": Spring,
}


def friction_model(name: str, *settings: Any, **named: Any) -> Friction:
    """The friction model of a name, with these settings.

    Raises:
        TaufitError: There is none of that name.
    """
    if name not in FRICTION_MODELS:
        known = ", ".join(FRICTION_MODELS)
        raise TaufitError(f"there is no friction model {name!r}: use one of {known}.")
    return FRICTION_MODELS[name](*settings, **named)


def further_term(name: str, *settings: Any, **named: Any) -> Term:
    """The term of a name, with these settings.

    Raises:
        TaufitError: There is none of that name.
    """
    if name not in TERMS:
        raise TaufitError(f"there is no term {name!r}: use one of {', '.join(TERMS)}.")
    return TERMS[name](*settings, **named)


__all__ = [
    "BREAKAWAY",
    "COMPILED",
    "CONSERVATIVE",
    "CONSTANT",
    "DISSIPATIVE",
    "DRAG",
    "FAST",
    "FRICTION_MODELS",
    "INERTIAL",
    "LEVEL",
    "LOAD",
    "MEMORY",
    "MOTION",
    "SLOPE",
    "STATES",
    "TERMS",
    "WAVE",
    "FrictionStates",
    "GravityCompensator",
    "Group",
    "Kind",
    "Offset",
    "Parameter",
    "ParameterLayout",
    "Ripple",
    "Rotor",
    "Shape",
    "Spring",
    "State",
    "StateSettings",
    "Term",
    "TermInput",
    "TermSum",
    "friction_model",
    "further_term",
    "level",
    "level_columns",
    "needs",
    "remembers",
    "start_shape",
    "sum_of",
    "term_from_dict",
    "term_to_dict",
    "terms_in",
    "usual_channels",
]
