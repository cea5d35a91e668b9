"""Least squares with the nominal robot as an entropic prior: Newton's method with a barrier.

    f(theta) = |y - W theta|^2 / (2 s^2) + w sum_k D(P_k, P0_k)
    D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,

the divergence between the Gaussians of equal mass distribution; it is 0 at the nominal link,
infinite at the boundary of physical consistency, and convex.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.core.lapack import solve_positive_definite
from taufit.dynamics import base_from_regressor
from taufit.estimators.constraints import UNIT, Constraints
from taufit.estimators.estimator import EstimationProblem, noise_level
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.robot.inertia import from_pseudo_inertia, pseudo_inertia

GRID = tuple(float(x) for x in 10.0 ** np.arange(-2.0, 5.0, 1.0))


def prior_links(model: TorqueModel) -> tuple[Float[Array, "b 10"], tuple[int, ...]]:
    """Nominal links usable as a prior, and the indices of guessed ones.

    A link without mass, or one that is not consistent, becomes a ball of the mean mass of the
    others (2 kg if there are none); a point mass gets a minimum size.
    """
    links = model.layout.split(model.nominal).links.copy()
    has_mass = links[:, 0] > 0
    mean = float(links[has_mass, 0].mean()) if np.any(has_mass) else 2.0
    guessed = []
    for k, link in enumerate(links):
        pseudo = pseudo_inertia(link)
        if not has_mass[k] or np.linalg.eigvalsh(pseudo)[0] < -1e-9 * np.trace(pseudo):
            links[k] = from_pseudo_inertia(np.diag([mean * 0.002] * 3 + [mean]))
            guessed.append(k)
            continue
        centre = link[1:4] / link[0]
        second_moment = pseudo[:3, :3] - link[0] * np.outer(centre, centre)
        values, vectors = np.linalg.eigh(second_moment)
        floor = link[0] * 0.02**2
        second_moment = vectors * np.maximum(values, floor) @ vectors.T
        pseudo[:3, :3] = second_moment + link[0] * np.outer(centre, centre)
        links[k] = from_pseudo_inertia(pseudo)
    return links, tuple(guessed)


def entropic_least_squares(
    information: Information,
    problem: EstimationProblem,
    limits: Constraints,
    weight: float | Float[Array, "*j"],
    start: Float[Array, " p"] | None = None,
    precision: Float[Array, " p"] | None = None,
    expected: Float[Array, " p"] | None = None,
) -> tuple[Float[Array, " p"], list[str]]:
    """Minimise f under the constraints; inequalities by a barrier reduced to 1e-9.

    `weight` is w of all links, or one per link; `precision` of every parameter adds
    precision (theta - expected)^2 / 2, with expected = 0 by default.
    """
    noise = noise_level(information, problem)
    model = problem.model
    layout = model.layout
    links, guessed = prior_links(problem.model)
    inverse = np.linalg.inv(pseudo_inertia(links))

    rows, target = information.factor / noise, information.target / noise
    if precision is not None:
        # Not merged into the factor, which has base columns only: rounding of dependent columns
        # would count as noise.
        prior_rows = np.diag(np.sqrt(precision))[precision > 0.0]
        prior_target = np.zeros(len(prior_rows)) if expected is None else prior_rows @ expected
        rows, target = np.concatenate([rows, prior_rows]), np.concatenate([target, prior_target])
    hessian0, gradient0 = rows.T @ rows, rows.T @ target
    linear = np.zeros(layout.size)
    linear[layout.links] = np.einsum("imn,knm->ki", UNIT, inverse).ravel()

    theta = model.nominal.copy()
    theta[layout.links] = links.ravel()
    theta = _initial_point(theta, hessian0, gradient0, limits) if start is None else start
    start = np.linalg.eigvalsh(limits.blocks(theta))[:, 0]
    if np.any(limits.matrix @ theta <= limits.bound) or np.any(start <= 0):
        # If the nominal robot violates bounds, start at an interior point of the cone solver.
        theta = _interior_point(problem, limits)

    # If the data outweigh the prior by far, Newton steps from the nominal robot would be tiny:
    # follow the minimum from a prior weight equal to the data's down to the actual one.
    weight = np.broadcast_to(np.asarray(weight, float), (layout.bodies,))
    largest_weight = float(weight.max())
    final_barrier = 1e-9 * max(largest_weight, 1.0)
    gap = information.cost(theta) / (2.0 * noise**2)
    level = max(largest_weight, 1.0, gap / (4 * len(limits.links) + len(limits.bound)))
    steps = int(np.ceil(np.log10(level / final_barrier)))
    for barrier in level * (final_barrier / level) ** (np.arange(steps + 1) / steps):
        theta = _newton(
            theta,
            rows,
            target,
            weight,
            linear,
            limits,
            barrier,
            barrier <= 2 * final_barrier,
        )
    messages = []
    if guessed:
        names = ", ".join(model.robot.links[k].name for k in guessed)
        messages.append(f"the nominal robot has no usable values for {names}; the prior is a guess")
    return theta, messages


def _initial_point(
    theta: Float[Array, " p"],
    hessian: Float[Array, "p p"],
    gradient: Float[Array, " p"],
    limits: Constraints,
) -> Float[Array, " p"]:
    """Joint terms fitted with nominal links, moved inside their constraints."""
    links, term_slice = limits.layout.links, limits.layout.after_links
    right = gradient[term_slice] - hessian[term_slice, links] @ theta[links]
    block = hessian[term_slice, term_slice]
    if len(right):
        size = np.sqrt(np.maximum(np.diag(block), 1e-300))
        term_values = (
            np.linalg.lstsq(block / np.outer(size, size), right / size, rcond=1e-10)[0] / size
        )
        theta[term_slice] = np.where(np.diag(block) > 0, term_values, 0.0)
        typical = 1.0 / np.maximum(size, 1e-6 * size.max() if size.max() > 0 else 1.0)
    single = np.count_nonzero(limits.matrix, axis=1) == 1
    for row, bound in zip(limits.matrix[single], limits.bound[single], strict=True):
        i = int(np.flatnonzero(row)[0])
        if i >= term_slice.start and row[i] * theta[i] <= bound:
            theta[i] = bound / row[i] + np.sign(row[i]) * typical[i - term_slice.start]
        elif i >= term_slice.start:
            theta[i] += np.sign(row[i]) * 1e-3 * typical[i - term_slice.start]
    # Sums of terms, such as friction at several speeds: what is negative in them becomes smaller.
    for row, bound in zip(limits.matrix, limits.bound, strict=True):
        parts = row * theta
        room = np.maximum(parts, 0.0).sum() - bound
        if parts.sum() <= bound and room > 0.0:
            theta[parts < 0.0] *= 0.5 * room / -np.minimum(parts, 0.0).sum()
    return theta


def _interior_point(problem: EstimationProblem, limits: Constraints) -> Float[Array, " p"]:
    """Point strictly inside the constraints, with a depth of 1e-4."""
    names = problem.model.names
    p = len(names)
    nominal_information = Information(names, np.eye(p), problem.model.nominal, float(p), 2 * p)
    unconstrained = EstimationProblem(
        problem.model, base_from_regressor(np.eye(len(names)), names=names)
    )
    depth = 1e-4
    shrunk = replace(
        limits,
        bound=limits.bound + depth * np.linalg.norm(limits.matrix, axis=1),
        floors=limits.floors + depth * np.eye(4),
    )
    from taufit.estimators.cone_least_squares import consistent_least_squares

    theta, _ = consistent_least_squares(nominal_information, unconstrained, shrunk, 0.0)
    if np.any(limits.matrix @ theta <= limits.bound) or np.any(
        np.linalg.eigvalsh(limits.blocks(theta))[:, 0] <= 0
    ):
        raise InfeasibleError("the bounds leave no room for a physically possible arm.")
    return theta


def _newton(
    theta: Float[Array, " p"],
    rows: Float[Array, "r p"],
    target: Float[Array, " r"],
    weight: Float[Array, " j"],
    linear: Float[Array, " p"],
    limits: Constraints,
    barrier: float,
    is_final: bool,
) -> Float[Array, " p"]:
    """Newton's method with back-tracking for one value of the barrier; to convergence if final."""
    # The prior weight is at least the barrier, so it decreases step by step.
    layout, bodies = limits.layout, limits.layout.bodies
    link_weight = np.maximum(weight, barrier)
    linear_term = linear.copy()
    for k in range(bodies):
        linear_term[layout.link(k)] *= link_weight[k]
    hessian0 = rows.T @ rows
    tolerance = 1e-9 * max(float(weight.max()), 1e-6) if is_final else 0.1 * barrier

    def value(x: Float[Array, " p"]) -> float:
        slack = limits.matrix @ x - limits.bound
        if np.any(slack <= 0):
            return np.inf
        blocks = limits.blocks(x)
        try:
            lower = np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError:
            return np.inf
        logs = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return float(
            0.5 * np.sum((rows @ x - target) ** 2)
            + linear_term @ x
            - link_weight @ logs[:bodies]
            - barrier * (np.log(slack).sum() + logs[bodies:].sum())
        )

    current = value(theta)
    for _ in range(50):
        slack = limits.matrix @ theta - limits.bound
        inverse = np.linalg.inv(limits.blocks(theta))
        # Computed from residuals, since normal equations would cost half the digits.
        gradient = rows.T @ (rows @ theta - target) + linear_term
        hessian = hessian0 + 1e-10 * np.diag(np.diag(hessian0) <= 0)
        for c, k in enumerate(limits.links):
            link_slice = layout.link(k)
            link_force = link_weight[c] if c < bodies else barrier
            product = inverse[c] @ limits.maps[c]
            gradient[link_slice] -= link_force * np.einsum("imm->i", product)
            hessian[link_slice, link_slice] += link_force * np.einsum(
                "imn,jnm->ij", product, product
            )
        gradient -= barrier * limits.matrix.T @ (1.0 / slack)
        hessian += barrier * (limits.matrix.T / slack**2) @ limits.matrix
        size = 1.0 / np.sqrt(np.diag(hessian))
        step = -size * _solve_damped(hessian * np.outer(size, size), size * gradient)
        decrement = -gradient @ step
        if decrement < tolerance:
            break
        length = 1.0
        while length > 1e-10:
            trial = value(theta + length * step)
            if trial <= current - 0.1 * length * decrement + 1e-12 * abs(current):
                break
            length *= 0.5
        else:
            break
        theta = theta + length * step
        current = trial
    return theta


def _solve_damped(matrix: Float[Array, "p p"], right: Float[Array, " p"]) -> Float[Array, " p"]:
    """Solve for a matrix of unit diagonal, with as little damping as rounding requires."""
    for damping in 10.0 ** np.arange(-15.0, -3.0, 2.0):
        try:
            return solve_positive_definite(matrix + damping * np.eye(len(matrix)), right)
        except np.linalg.LinAlgError:
            continue
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-12)[0])


def select_prior_weight(problem: EstimationProblem, limits: Constraints, margin: float) -> float:
    """Prior weight that best predicts left-out parts of the data."""
    if problem.folds is None:
        raise InfeasibleError(
            "choosing the prior's weight by cross-validation needs samples, not only their "
            "information. Give prior_weight a number."
        )
    folds = problem.folds()
    if len(folds) < 2:
        raise InfeasibleError("cross-validation needs at least two parts. Record more.")
    costs = np.zeros(len(GRID))
    for left_out in range(len(folds)):
        training = reduce(add, folds[:left_out] + folds[left_out + 1 :])
        theta = None
        # In decreasing order, each solution starts the next.
        for i in reversed(range(len(GRID))):
            theta, _ = entropic_least_squares(training, problem, limits, GRID[i], theta)
            costs[i] += folds[left_out].cost(theta)
    return GRID[int(np.argmin(costs))]
