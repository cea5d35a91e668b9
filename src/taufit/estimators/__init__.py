"""Parameters from information. In: a `Problem` with its `Information`. Out: a `Solution`.

Left to others: rows and weights (regression), which terms to fit (selection).
"""

from taufit.core.errors import TaufitError
from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.constraints import is_consistent, smallest_eigenvalues
from taufit.estimators.estimator import Estimator, Problem, Solution
from taufit.estimators.irls import Irls
from taufit.estimators.ols import Ols
from taufit.estimators.pbpr import Pbpr
from taufit.estimators.tls import Tls
from taufit.estimators.wls import Wls

ESTIMATORS: dict[str, type[Estimator]] = {
    "ols": Ols,
    "wls": Wls,
    "irls": Irls,
    "tls": Tls,
    "consistent_sdp": ConsistentSdp,
    "pbpr": Pbpr,
}


def as_estimator(given: Estimator | str | None) -> Estimator | None:
    """An estimator, or the one of a name; None and "auto" stand for the automatic choice."""
    if given is None or given == "auto":
        return None
    if not isinstance(given, str):
        return given
    if given not in ESTIMATORS:
        raise TaufitError(f"estimator {given!r} is not known; there are {', '.join(ESTIMATORS)}.")
    return ESTIMATORS[given]()


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
    "as_estimator",
    "is_consistent",
    "smallest_eigenvalues",
]
