"""Ordinary least squares of the base parameters."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.estimators.estimator import EstimationProblem, EstimatorSolution, column_scale
from taufit.regression.estimate import nearest_parameters
from taufit.regression.information import Information


def base_least_squares(information: Information, problem: EstimationProblem) -> Float[Array, " b"]:
    """Base parameters that minimise |z - R theta|^2."""
    factor = information.factor[:, problem.base.columns]
    norms = np.linalg.norm(factor, axis=0)
    scale = 1.0 / np.where(norms > 0, norms, 1.0)
    solution, *_ = np.linalg.lstsq(factor * scale, information.target, rcond=1e-13)
    return np.asarray(scale * solution)


@dataclass(frozen=True, slots=True)
class Ols:
    """Minimise |y - W theta|^2, with equal weight of all rows.

    Base parameters are estimated; the returned standard parameters are those nearest to the nominal
    robot with these base values, and need not be physically consistent.
    """

    weighting: str = "none"

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        base = base_least_squares(information, problem)
        scale = column_scale(information, problem)
        return EstimatorSolution(
            nearest_parameters(problem.base, base, problem.model.nominal, scale)
        )
