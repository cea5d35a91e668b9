"""Information matrices of regression rows. In: a `TorqueModel` and `Samples`. Out: `Information`,
weights, covariance.

Elsewhere: solving for parameters under constraints (estimators), model selection (fitting).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.regression.accumulate import (
        Batch as Batch,
        accumulate as accumulate,
        accumulate_by_joint as accumulate_by_joint,
    )
    from taufit.regression.estimate import Estimate as Estimate
    from taufit.regression.information import Information as Information
    from taufit.regression.regression import Regression as Regression, RowsInMemory as RowsInMemory
    from taufit.regression.rows import ArrayRows as ArrayRows, SampleRows as SampleRows
    from taufit.regression.weights import WEIGHTINGS as WEIGHTINGS

lazy_package(__name__)
