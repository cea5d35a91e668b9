"""Terms of a torque model: interface of a term, sums of terms, layout of their parameters.

In: motion, load, recorded channels (`TermInput`). Out: torque columns, one per parameter.
Elsewhere: the links, whose columns are the regressor of `dynamics`; fitting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taufit.core.lazy import Registry, lazy_package
from taufit.terms.friction import FRICTION_MODELS

if TYPE_CHECKING:
    from taufit.terms.friction.states import (
        FAST as FAST,
        STATES as STATES,
        FrictionStates as FrictionStates,
        StateSettings as StateSettings,
    )
    from taufit.terms.friction_places import FrictionPlaces as FrictionPlaces
    from taufit.terms.gravity_compensator import GravityCompensator as GravityCompensator
    from taufit.terms.input import COMPILED as COMPILED, MOTION as MOTION, TermInput as TermInput
    from taufit.terms.layout import ParameterLayout as ParameterLayout
    from taufit.terms.offset import Offset as Offset
    from taufit.terms.ripple import Ripple as Ripple
    from taufit.terms.rotor import Rotor as Rotor
    from taufit.terms.settings import (
        friction_model as friction_model,
        further_term as further_term,
        selectable_terms as selectable_terms,
        term_from_dict as term_from_dict,
        term_to_dict as term_to_dict,
    )
    from taufit.terms.spring import Spring as Spring
    from taufit.terms.sum import TermSum as TermSum, sum_of as sum_of, terms_in as terms_in
    from taufit.terms.term import (
        BREAKAWAY as BREAKAWAY,
        CONSERVATIVE as CONSERVATIVE,
        CONSTANT as CONSTANT,
        DISSIPATIVE as DISSIPATIVE,
        DRAG as DRAG,
        INERTIAL as INERTIAL,
        LEVEL as LEVEL,
        LOAD as LOAD,
        MEMORY as MEMORY,
        SLOPE as SLOPE,
        WAVE as WAVE,
        Group as Group,
        Kind as Kind,
        Parameter as Parameter,
        ShapeParameter as ShapeParameter,
        State as State,
        Term as Term,
        has_memory as has_memory,
        level_columns as level_columns,
        needs as needs,
        start_shape as start_shape,
        steady_friction_model as steady_friction_model,
        typical_channels as typical_channels,
    )

# Terms beside friction, by the names of files and `--term`.
TERMS: Registry[type[Term]] = Registry(
    {
        "rotor": "taufit.terms.rotor:Rotor",
        "offset": "taufit.terms.offset:Offset",
        "ripple": "taufit.terms.ripple:Ripple",
        "gravity_compensator": "taufit.terms.gravity_compensator:GravityCompensator",
        "spring": "taufit.terms.spring:Spring",
        "friction_places": "taufit.terms.friction_places:FrictionPlaces",
    }
)
__all__ = ["FRICTION_MODELS", "TERMS"]

lazy_package(__name__)
