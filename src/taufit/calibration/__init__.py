"""What must be known before a fit. In: a `Robot` and recordings. Out: drive gains, mounting, sign
of gravity, joint zeros, friction tests.

Left to others: the fit (fitting), scores (validation).
"""

from taufit.calibration.excitation_check import excitation_findings
from taufit.calibration.friction_pairs import FrictionPairs, pairs_in, pairs_of, strokes_in
from taufit.calibration.friction_test import FrictionFit, fit_friction
from taufit.calibration.gravity_sign import gravity_findings
from taufit.calibration.joint_zeros import JointZeros, estimate_joint_zeros
from taufit.calibration.known_mass import identify_gains
from taufit.calibration.mounting import (
    Gravity,
    Moved,
    estimate_gravity,
    mounting_findings,
    move_model,
)

__all__ = [
    "FrictionFit",
    "FrictionPairs",
    "Gravity",
    "JointZeros",
    "Moved",
    "estimate_gravity",
    "estimate_joint_zeros",
    "excitation_findings",
    "fit_friction",
    "gravity_findings",
    "identify_gains",
    "mounting_findings",
    "move_model",
    "pairs_in",
    "pairs_of",
    "strokes_in",
]
