"""The signs whose best physically possible model fits best, proven.

Let c(s) be the least-squares cost of signs s when the parameters must belong to a possible arm.
Without that demand the cost is s'Qs, so s'Qs <= c(s): going through sign vectors in order of
increasing s'Qs and stopping at the first whose s'Qs exceeds the smallest c met so far leaves out
nothing better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.estimator import EstimationProblem, Estimator
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.signs.search import sign_candidates


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedSigns:
    """The best sign vector under constraints.

    Attributes:
        signs: The minimiser of c.
        cost: c there.
        margins: Per sign, how much more the cheapest vector met with that sign reversed costs.
        certified: Whether the search ended by its bound.
        solved: Constrained problems solved.
    """

    signs: Int[Array, " s"]
    cost: float
    margins: Float[Array, " s"]
    certified: bool
    solved: int


def search_constrained(
    quadratic: Float[Array, "s s"],
    cost: Callable[[Int[Array, " s"]], float],
    *,
    anchor: int | None = None,
    lower_bound: Callable[[Int[Array, " s"]], float] | None = None,
    radius: float = 25.0,
    most: int = 200,
) -> ConstrainedSigns:
    """Minimise c(s) by going through sign vectors in order of s'Qs.

    Args:
        quadratic: Q.
        cost: c, never below s'Qs.
        anchor: A variable whose sign is +1, if there is one.
        lower_bound: A cheap bound s'Qs <= lower_bound(s) <= c(s) that saves solving c.
        radius: Go on this far beyond the best, so that margins up to it are found.
        most: Constrained problems to solve at most.
    """
    best, least = np.zeros(len(quadratic), np.int64), np.inf
    met: list[tuple[float, Int[Array, " s"]]] = []
    certified, solved = False, 0
    for plain, signs in sign_candidates(quadratic, anchor=anchor, most=1 << 14):
        if plain > least + radius:
            certified = True
            break
        vector = signs.astype(np.int64)
        if lower_bound is not None and lower_bound(vector) > least + radius:
            continue
        if solved == most:
            # Nothing left out costs less than this vector, so the best may still be proven.
            certified = plain >= least
            break
        value = max(cost(vector), plain)
        solved += 1
        met.append((value, vector))
        if value < least:
            best, least = vector, value
    else:
        certified = len(quadratic) <= 14
    margins = np.full(len(quadratic), np.inf)
    for value, vector in met:
        if value - least < radius:
            changed = vector != best
            margins[changed] = np.minimum(margins[changed], value - least)
    return ConstrainedSigns(best, float(least), margins, certified, solved)


class ConsistentCost:
    """c(s): least squares over physically possible arms, for any signs of the same data.

    One QR of the weighted rows serves every sign vector: only the right-hand side, Q'D s, changes.

    Args:
        model: Whose parameters.
        rows: Weighted rows of all the model's parameters that take part.
        values: Their weighted magnitudes.
        label: Which sign each row has.
        count: How many signs there are.
        estimator: What "possible" means.
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
        # Q'D, summed segment by segment.
        self._moments = np.zeros((len(self._factor), count))
        np.add.at(self._moments.T, label, orthogonal * values[:, None])
        self._energy = float(values @ values)
        self._rows = len(rows)
        self._problem = EstimationProblem.from_model(model)
        self._estimator = estimator or ConsistentSdp(margin=0.0)

    def information(self, signs: Int[Array, " s"]) -> Information:
        """What the data say about the parameters if these were the signs."""
        target = self._moments @ signs
        residual = max(self._energy - float(target @ target), 0.0)
        names = self._problem.model.names
        return Information(names, self._factor, target, residual, self._rows)

    def parameters(self, signs: Int[Array, " s"]) -> Float[Array, " p"]:
        """The best possible arm for these signs."""
        return self._estimator.solve(self.information(signs), self._problem).values

    def __call__(self, signs: Int[Array, " s"]) -> float:
        return self.information(signs).cost(self.parameters(signs))
