"""Kinematics and dynamics. In: a `Robot` and states. Out: torques, matrices, the regressor, base
parameters.

Elsewhere: friction, drives and payload (torque_model).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.dynamics.base_expressions import base_expressions as base_expressions
    from taufit.dynamics.base_parameters import (
        BaseParameters as BaseParameters,
        base_from_regressor as base_from_regressor,
        base_parameters as base_parameters,
    )
    from taufit.dynamics.batch import (
        RegressorEngine as RegressorEngine,
        coriolis_torque as coriolis_torque,
        engine as engine,
        gravity_torque as gravity_torque,
        inverse_dynamics as inverse_dynamics,
        mass_matrix as mass_matrix,
        regressor as regressor,
        regressor_adjoint as regressor_adjoint,
        regressor_tiles as regressor_tiles,
    )
    from taufit.dynamics.recursion import (
        forward_kinematics as forward_kinematics,
        jacobian as jacobian,
        link_poses as link_poses,
    )

lazy_package(__name__)
