"""Sign vector whose best physically consistent model fits best, with proof of optimality.

Let c(s) be the least-squares cost of signs s over physically consistent parameters. Without that
constraint the cost is s'Qs, so s'Qs <= c(s): enumerating sign vectors in order of increasing s'Qs
and stopping at the first whose s'Qs exceeds the smallest c so far misses nothing better.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.estimator import EstimationProblem, Estimator
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.signs.search import sign_candidates


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedSigns:
    """Best sign vector under physical constraints.

    Attributes:
        signs: Minimiser of c.
        cost: Minimum of c.
        margins: Per sign, extra cost of the cheapest evaluated vector with that sign reversed.
        certified: Whether optimality is proven by the bound.
        solved: Number of constrained problems solved.
    """

    signs: Int[Array, " s"]
    cost: float
    margins: Float[Array, " s"]
    certified: bool
    solved: int


def search_constrained_signs(
    quadratic: Float[Array, "s s"],
    cost: Callable[[Int[Array, " s"]], float],
    *,
    anchor: int | None = None,
    lower_bound: Callable[[Int[Array, " s"]], float] | None = None,
    radius: float = 25.0,
    maximum_solved: int = 200,
) -> ConstrainedSigns:
    """Minimise c(s) by enumerating sign vectors in order of s'Qs.

    Args:
        quadratic: Q.
        cost: c, never below s'Qs.
        anchor: Index of a variable whose sign is +1, if there is one.
        lower_bound: Cheap bound s'Qs <= lower_bound(s) <= c(s) that saves evaluations of c.
        radius: Margins up to this value are found; larger values take longer.
        maximum_solved: Maximum number of constrained problems.
    """
    best, best_cost = np.zeros(len(quadratic), np.int64), np.inf
    evaluated: list[tuple[float, Int[Array, " s"]]] = []
    certified, solved = False, 0
    for quadratic_cost, signs in sign_candidates(quadratic, anchor=anchor, maximum_count=1 << 14):
        if quadratic_cost > best_cost + radius:
            certified = True
            break
        vector = signs.astype(np.int64)
        if lower_bound is not None and lower_bound(vector) > best_cost + radius:
            continue
        if solved == maximum_solved:
            # Every remaining vector costs at least this one, so the best may still be proven.
            certified = quadratic_cost >= best_cost
            break
        value = max(cost(vector), quadratic_cost)
        solved += 1
        evaluated.append((value, vector))
        if value < best_cost:
            best, best_cost = vector, value
    else:
        certified = len(quadratic) <= 14
    margins = np.full(len(quadratic), np.inf)
    for value, vector in evaluated:
        if value - best_cost < radius:
            changed = vector != best
            margins[changed] = np.minimum(margins[changed], value - best_cost)
    return ConstrainedSigns(best, float(best_cost), margins, certified, solved)


class ConsistentCost:
    """Cost c(s): least squares over physically consistent robots, for any signs of the same data.

    One QR of the weighted rows serves every sign vector: only the right-hand side, Q'D s, changes.

    Args:
        model: Model to be fitted.
        rows: Weighted regressor rows of all parameters.
        values: Weighted torque magnitudes.
        label: Index of the sign of each row.
        count: Number of signs.
        estimator: Estimator with the consistency constraints.
    """

    def __init__(
        self,
        model: TorqueModel,
        rows: Float[Array, "r p"],
        values: Float[Array, " r"],
        label: Int[Array, " r"],
        count: int,
        estimator: Estimator | None = None,
    ) -> None:
        orthogonal, self._factor = np.linalg.qr(rows)
        # Q'D, summed by segment.
        self._moments = np.zeros((len(self._factor), count))
        np.add.at(self._moments.T, label, orthogonal * values[:, None])
        self._energy = float(values @ values)
        self._rows = len(rows)
        self._problem = EstimationProblem.from_model(model)
        self._estimator = estimator or ConsistentSdp(margin=0.0)

    def information(self, signs: Int[Array, " s"]) -> Information:
        """Information about the parameters for these signs."""
        target = self._moments @ signs
        residual = max(self._energy - float(target @ target), 0.0)
        names = self._problem.model.names
        return Information(names, self._factor, target, residual, self._rows)

    def parameters(self, signs: Int[Array, " s"]) -> Float[Array, " p"]:
        """Best consistent parameters for these signs."""
        return self._estimator.solve(self.information(signs), self._problem).values

    def __call__(self, signs: Int[Array, " s"]) -> float:
        return self.information(signs).cost(self.parameters(signs))
