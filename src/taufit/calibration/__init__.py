"""Calibration before a fit. In: a `Robot` and recordings. Out: drive gains, mounting, sign of
gravity torque, joint zeros, friction tests.

Left to others: the fit (fitting), scores (validation).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.calibration.excitation_check import (
        excitation_findings as excitation_findings,
        gravity_findings as gravity_findings,
    )
    from taufit.calibration.friction_pairs import (
        FrictionPairs as FrictionPairs,
        find_strokes as find_strokes,
        pairs_in as pairs_in,
        pairs_of as pairs_of,
    )
    from taufit.calibration.friction_test import (
        FrictionFit as FrictionFit,
        fit_friction as fit_friction,
    )
    from taufit.calibration.joint_zeros import (
        JointZeros as JointZeros,
        estimate_joint_zeros as estimate_joint_zeros,
    )
    from taufit.calibration.known_mass import identify_gains as identify_gains
    from taufit.calibration.mounting import (
        GravityEstimate as GravityEstimate,
        RemountedModel as RemountedModel,
        estimate_gravity as estimate_gravity,
        mounting_findings as mounting_findings,
        move_model as move_model,
    )

lazy_package(__name__)
