"""Penalty-based parameter retrieval with arbitrary, possibly non-convex constraints.

    phi1 = |B theta - base_hat|^2    or    phi2 = |R (B theta - base_hat)|^2

subject to physical consistency, boxes and user functions c(theta) >= 0. Violations of the latter
have an exact penalty; each step minimises the objective with c linearised, which keeps every convex
constraint exact, followed by a line search on the penalised objective. Without user functions it is
the convex problem of `ConsistentSdp`, which is also the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.estimators.cone_least_squares import consistent_least_squares
from taufit.estimators.constraints import Constraints, make_constraints, project_to_feasible
from taufit.estimators.estimator import (
    EstimationProblem,
    EstimatorSolution,
    column_scale,
    noise_level,
)
from taufit.estimators.ols import base_least_squares
from taufit.regression.information import Information

Constraint = Callable[[Mapping[str, float]], float]
RIDGE = 1e-4


@dataclass(frozen=True, slots=True)
class Pbpr:
    """Feasible parameters nearest to the base parameters.

    Attributes:
        weighting: Weighting of the rows, see `WEIGHTINGS`.
        objective: "phi2" measures in torque, "phi1" in base parameters.
        boxes: Smallest and largest value per parameter name.
        constraints: Functions of a dict of parameters by name; satisfied where >= 0. They may be
            nonlinear, non-convex and conditional.
        margin: Smallest eigenvalue of every pseudo-inertia.
        starts: Number of starting points around the convex solution, with user functions.
        rounds: Largest number of linearised steps from each start.
        seed: Seed of the starting points.
    """

    weighting: str = "joint"
    objective: str = "phi2"
    boxes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    margin: float = 1e-6
    starts: int = 4
    rounds: int = 25
    seed: int = 0

    def solve(self, information: Information, problem: EstimationProblem) -> EstimatorSolution:
        if self.objective not in ("phi1", "phi2"):
            raise InfeasibleError(f"objective {self.objective!r} is not known: use phi1 or phi2.")
        if self.objective == "phi1":
            information = _parameter_information(information, problem)
        model = problem.model
        limits = self._with_boxes(make_constraints(model, margin=self.margin), problem)
        theta, messages = consistent_least_squares(information, problem, limits, RIDGE)
        if self.constraints:
            theta = self._search_feasible(theta, information, problem, limits)
        return EstimatorSolution(
            project_to_feasible(model, theta, margin=self.margin), tuple(messages)
        )

    def _search_feasible(
        self,
        convex: Float[Array, " p"],
        information: Information,
        problem: EstimationProblem,
        limits: Constraints,
    ) -> Float[Array, " p"]:
        """Best point of several starts around the convex solution."""
        names, rng = problem.model.names, np.random.default_rng(self.seed)
        # Wide enough to cross a constraint that splits the feasible set.
        width = np.maximum(np.abs(convex), 1e-2 * column_scale(information, problem))
        candidates = []
        for start in range(self.starts):
            theta = convex if start == 0 else convex + width * rng.normal(size=len(convex))
            theta = self._descend(theta, information, problem, limits)
            violation = -np.minimum(0.0, self._constraint_values(names, theta)).min(initial=0.0)
            candidates.append((violation > 1e-6, information.cost(theta), violation, theta))
        is_infeasible, _, violation, theta = min(candidates, key=lambda candidate: candidate[:2])
        if is_infeasible:
            worst = int(np.argmin(self._constraint_values(names, theta)))
            raise InfeasibleError(
                f"constraint {worst + 1} cannot be met together with the others: the best point "
                f"is short by {violation:.3g}. Widen the boxes or drop a constraint."
            )
        return theta

    def _descend(
        self,
        theta: Float[Array, " p"],
        information: Information,
        problem: EstimationProblem,
        limits: Constraints,
    ) -> Float[Array, " p"]:
        """Linearised steps from one point until the penalised objective stops decreasing."""
        names = problem.model.names
        scale = column_scale(information, problem)
        penalty = 10.0 * max(information.cost(theta), noise_level(information, problem) ** 2)

        def penalised_cost(x: Float[Array, " p"]) -> float:
            return information.cost(x) - penalty * float(
                np.minimum(0.0, self._constraint_values(names, x)).sum()
            )

        first = True
        for _ in range(self.rounds):
            values = self._constraint_values(names, theta)
            slope = self._constraint_gradients(names, theta, values, scale)
            tangent = replace(
                limits,
                matrix=np.vstack([limits.matrix, slope]),
                bound=np.concatenate([limits.bound, slope @ theta - values]),
                labels=(*limits.labels, *(f"constraint {i + 1}" for i in range(len(values)))),
            )
            try:
                goal, _ = consistent_least_squares(information, problem, tangent, RIDGE)
            except InfeasibleError:
                # Infeasible linearisation: halve the required change.
                relaxed = replace(
                    tangent, bound=np.concatenate([limits.bound, slope @ theta - 0.5 * values])
                )
                try:
                    goal, _ = consistent_least_squares(information, problem, relaxed, RIDGE)
                except InfeasibleError:
                    return theta
            # The first step may leave an infeasible start; later ones stay feasible.
            length = 1.0
            while (
                not first
                and length > 1e-3
                and penalised_cost(theta + length * (goal - theta)) > penalised_cost(theta)
            ):
                length *= 0.5
            step = length * (goal - theta)
            change = np.abs(step / scale).max()
            if not first and length <= 1e-3:
                break
            theta, first = theta + step, False
            if change < 1e-9:
                break
        return theta

    def _with_boxes(self, limits: Constraints, problem: EstimationProblem) -> Constraints:
        """Constraints with the boxes as further rows."""
        names = problem.model.names
        rows, bounds, labels = [], [], []
        for name, (low, high) in self.boxes.items():
            if name not in names:
                raise InfeasibleError(f"there is no parameter {name!r} to bound.")
            if not low <= high:
                raise InfeasibleError(
                    f"{name} is bounded from {low:g} to {high:g}: nothing lies in between. "
                    "Give the smaller bound first."
                )
            unit = np.zeros(len(names))
            unit[names.index(name)] = 1.0
            for sign, bound in ((1.0, low), (-1.0, -high)):
                if np.isfinite(bound):
                    rows.append(sign * unit)
                    bounds.append(bound)
                    labels.append(f"{name} {'>=' if sign > 0 else '<='} {sign * bound:g}")
        return replace(
            limits,
            matrix=np.vstack([limits.matrix, *rows]),
            bound=np.concatenate([limits.bound, bounds]),
            labels=(*limits.labels, *labels),
        )

    def _constraint_values(
        self, names: tuple[str, ...], theta: Float[Array, " p"]
    ) -> Float[Array, " c"]:
        """Values of the user's constraints."""
        parameters = dict(zip(names, theta.tolist(), strict=True))
        values = np.array([float(rule(parameters)) for rule in self.constraints])
        if not np.all(np.isfinite(values)):
            index = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
            raise InfeasibleError(f"constraint {index} returned a value that is not finite.")
        return values

    def _constraint_gradients(
        self, names: tuple[str, ...], theta: Array, values: Array, scale: Array
    ) -> Float[Array, "c p"]:
        """Derivatives of the user's constraints by central differences."""
        out = np.zeros((len(values), len(theta)))
        for i in range(len(theta)):
            step = np.zeros(len(theta))
            step[i] = 1e-6 * max(scale[i] * 1e-2, abs(theta[i]))
            change = self._constraint_values(names, theta + step) - self._constraint_values(
                names, theta - step
            )
            out[:, i] = change / (2.0 * step[i])
        return out


def _parameter_information(information: Information, problem: EstimationProblem) -> Information:
    """Information of phi1: direct measurements of base parameters, relative to their size."""
    base = problem.base
    estimate = base_least_squares(information, problem)
    size = np.maximum(np.abs(estimate), 1e-2 * np.abs(estimate).max())
    p = len(information.names)
    factor, target = np.zeros((p, p)), np.zeros(p)
    factor[: base.rank] = base.mapping / size[:, None]
    target[: base.rank] = estimate / size
    # Equivalent to two measurements each that differ by one per cent.
    return Information(information.names, factor, target, 1e-4 * base.rank, 2 * base.rank)
