"""Rows into information. In: a `TorqueModel` and `Samples`. Out: `Information`, weights,
covariance.

Left to others: solving for parameters under constraints (estimators), choosing terms (selection).
"""

from taufit.regression.accumulate import Batch, accumulate, accumulate_by_joint
from taufit.regression.estimate import Estimate
from taufit.regression.information import Information
from taufit.regression.regression import Regression, RowsInMemory
from taufit.regression.rows import ArrayRows, SampleRows
from taufit.regression.weights import WEIGHTINGS

__all__ = [
    "WEIGHTINGS",
    "ArrayRows",
    "Batch",
    "Estimate",
    "Information",
    "Regression",
    "RowsInMemory",
    "SampleRows",
    "accumulate",
    "accumulate_by_joint",
]
