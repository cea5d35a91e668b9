"""Parameters from information. In: a `Problem` with its `Information`. Out: a `Solution`.

Left to others: rows and weights (regression), which terms to fit (selection).
"""

from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.constraints import is_consistent, smallest_eigenvalues
from taufit.estimators.estimator import Estimator, Problem, Solution
from taufit.estimators.irls import Irls
from taufit.estimators.ols import Ols
from taufit.estimators.pbpr import Pbpr
from taufit.estimators.tls import Tls
from taufit.estimators.wls import Wls

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
    "ConsistentSdp",
    "Estimator",
    "Irls",
    "Ols",
    "Pbpr",
    "Problem",
    "Solution",
    "Tls",
    "Wls",
    "is_consistent",
    "smallest_eigenvalues",
]
