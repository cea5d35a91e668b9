"""Total least squares: columns have errors, too, since motion is noisy."""

from __future__ import annotations

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.estimators.estimator import EstimationProblem, EstimatorSolution, column_scale
from taufit.estimators.ols import base_least_squares
from taufit.regression.estimate import nearest_parameters
from taufit.regression.information import Information


@dataclass(frozen=True, slots=True)
class Tls:
    """Minimise |dW D^-1|^2 + |dy|^2 / s^2 subject to (W + dW) base = y + dy.

    Errors of a column are proportional to its size by `column_noise`; s is the torque noise of
    ordinary least squares. Constant columns (offsets) are exact. The smallest singular vector of
    the scaled [R z] is the solution, so p rows suffice.

    Attributes:
        weighting: Weighting of the rows, see `WEIGHTINGS`.
        column_noise: Errors of the columns relative to their root mean square.
    """

    weighting: str = "joint"
    column_noise: float = 0.003

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        if not 0 < self.column_noise < 1:
            raise InfeasibleError("column_noise is a share between 0 and 1.")
        base, names = problem.base, information.names
        least_squares = base_least_squares(information, problem)
        count = max(information.count, 1)
        exact = np.array([names[i].endswith(".offset") for i in base.columns])
        factor = information.factor[:, base.columns]
        order = np.concatenate([np.flatnonzero(exact), np.flatnonzero(~exact)])
        stacked = np.vstack(
            [
                np.column_stack([factor[:, order], information.target]),
                np.zeros((1, base.rank + 1)),
            ]
        )
        stacked[-1, -1] = np.sqrt(information.residual)
        upper = np.asarray(np.linalg.qr(stacked, mode="r"))
        exact_count = int(exact.sum())
        size = np.linalg.norm(upper[:, :-1], axis=0) / np.sqrt(count)
        column_std = self.column_noise * np.where(size > 0, size, 1.0)
        noise = np.sqrt(information.residual / count)
        noise = max(noise, 1e-9 * np.linalg.norm(upper[:, -1]) / np.sqrt(count))
        # Columns with errors, in units of those errors, after the exact ones are projected out.
        scale = np.append(column_std[exact_count:], noise)
        _, _, right = np.linalg.svd(upper[exact_count:, exact_count:] / scale)
        vector = right[-1]
        if abs(vector[-1]) < 1e-8:
            values = least_squares
            messages: tuple[str, ...] = ("total least squares has no solution; least squares kept",)
        else:
            noisy_values = -vector[:-1] / vector[-1] * scale[-1] / scale[:-1]
            values = np.empty(base.rank)
            values[order[exact_count:]] = noisy_values
            if exact_count:
                exact_target = (
                    upper[:exact_count, -1] - upper[:exact_count, exact_count:-1] @ noisy_values
                )
                values[order[:exact_count]] = np.linalg.solve(
                    upper[:exact_count, :exact_count], exact_target
                )
            messages = ()
        scale_guess = column_scale(information, problem)
        return EstimatorSolution(
            nearest_parameters(base, values, problem.model.nominal, scale_guess), messages
        )
