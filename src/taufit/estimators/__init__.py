"""Estimators. In: `Information` and an `EstimationProblem`. Out: an `EstimatorSolution`.

Elsewhere: rows and weights (regression), model selection (fitting).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taufit.core.errors import TaufitError
from taufit.core.lazy import Registry, lazy_package

if TYPE_CHECKING:
    from taufit.estimators.consistent_sdp import ConsistentSdp as ConsistentSdp
    from taufit.estimators.constraints import (
        is_consistent as is_consistent,
        smallest_eigenvalues as smallest_eigenvalues,
    )
    from taufit.estimators.estimator import (
        EstimationProblem as EstimationProblem,
        Estimator as Estimator,
        EstimatorSolution as EstimatorSolution,
    )
    from taufit.estimators.irls import Irls as Irls
    from taufit.estimators.ols import Ols as Ols
    from taufit.estimators.pbpr import Pbpr as Pbpr
    from taufit.estimators.tls import Tls as Tls
    from taufit.estimators.wls import Wls as Wls

ESTIMATORS: Registry[type[Estimator]] = Registry(
    {
        "ols": "taufit.estimators.ols:Ols",
        "wls": "taufit.estimators.wls:Wls",
        "irls": "taufit.estimators.irls:Irls",
        "tls": "taufit.estimators.tls:Tls",
        "consistent_sdp": "taufit.estimators.consistent_sdp:ConsistentSdp",
        "pbpr": "taufit.estimators.pbpr:Pbpr",
    }
)


def as_estimator(estimator: Estimator | str | None) -> Estimator | None:
    """Estimator, given as object or by name; None and "auto" for the automatic choice."""
    if estimator is None or estimator == "auto":
        return None
    if not isinstance(estimator, str):
        return estimator
    if estimator not in ESTIMATORS:
        raise TaufitError(
            f"estimator {estimator!r} is not known; there are {', '.join(ESTIMATORS)}."
        )
    return ESTIMATORS[estimator]()


__all__ = ["ESTIMATORS", "as_estimator"]

lazy_package(__name__)
