"""From samples to parameters. In: a `TorqueModel` and `Samples`. Out: an `Estimate`.

Left to others: whether to believe it (validation), what an arm carries (payload).
"""

from taufit.estimation.accumulate import Batch, accumulate, accumulate_by_joint
from taufit.estimation.consistent_sdp import ConsistentSdp
from taufit.estimation.constraints import is_consistent, smallest_eigenvalues
from taufit.estimation.estimate import Estimate
from taufit.estimation.estimator import Estimator, Problem, Solution
from taufit.estimation.fit import automatic_model, fit, fitted_model
from taufit.estimation.fit_samples import fit_samples
from taufit.estimation.friction_test import (
    FrictionFit,
    FrictionPairs,
    fit_friction,
    pairs_in,
    pairs_of,
)
from taufit.estimation.information import Information
from taufit.estimation.irls import Irls
from taufit.estimation.ols import Ols
from taufit.estimation.pbpr import Pbpr
from taufit.estimation.prediction import predicted_rows, predicted_torque, rigid_torque
from taufit.estimation.rows import ArrayRows, SampleRows
from taufit.estimation.support import unsupported_terms
from taufit.estimation.tls import Tls
from taufit.estimation.variable_projection import fit_shapes
from taufit.estimation.weights import WEIGHTINGS
from taufit.estimation.wls import Wls

ESTIMATORS = {
    "ols": Ols,
    "wls": Wls,
    "irls": Irls,
    "tls": Tls,
    "consistent_sdp": ConsistentSdp,
    "pbpr": Pbpr,
}

__all__ = [
    "ESTIMATORS",
    "WEIGHTINGS",
    "ArrayRows",
    "Batch",
    "ConsistentSdp",
    "Estimate",
    "Estimator",
    "FrictionFit",
    "FrictionPairs",
    "Information",
    "Irls",
    "Ols",
    "Pbpr",
    "Problem",
    "SampleRows",
    "Solution",
    "Tls",
    "Wls",
    "accumulate",
    "accumulate_by_joint",
    "automatic_model",
    "fit",
    "fit_friction",
    "fit_samples",
    "fit_shapes",
    "fitted_model",
    "is_consistent",
    "pairs_in",
    "pairs_of",
    "predicted_rows",
    "predicted_torque",
    "rigid_torque",
    "smallest_eigenvalues",
    "unsupported_terms",
]
