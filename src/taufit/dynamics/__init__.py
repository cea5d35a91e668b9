"""How the arm moves and what torque that takes. In: a `Robot` and states. Out: torques, matrices,
the regressor, base parameters.

Left to others: friction, drives and payload (torque_model).
"""

from taufit.dynamics.base_expressions import base_expressions
from taufit.dynamics.base_parameters import (
    BaseParameters,
    base_of_regressor,
    base_parameters,
)
from taufit.dynamics.batch import (
    Engine,
    coriolis_torque,
    engine,
    gravity_torque,
    inverse_dynamics,
    mass_matrix,
    regressor,
    regressor_adjoint,
    regressor_tiles,
)
from taufit.dynamics.recursion import forward_kinematics, jacobian

__all__ = [
    "BaseParameters",
    "Engine",
    "base_expressions",
    "base_of_regressor",
    "base_parameters",
    "coriolis_torque",
    "engine",
    "forward_kinematics",
    "gravity_torque",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "regressor",
    "regressor_adjoint",
    "regressor_tiles",
]
