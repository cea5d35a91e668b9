"""How the arm moves and what torque that takes. In: a `Robot` and states. Out: torques, matrices,
the regressor, base parameters.

Left to others: friction, drives and payload (torque_model).
"""

from taufit.dynamics.recursion import (
    coriolis_torque,
    forward_kinematics,
    gravity_torque,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    regressor,
)

__all__ = [
    "coriolis_torque",
    "forward_kinematics",
    "gravity_torque",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "regressor",
]
