"""Least squares on a product of cones, by Clarabel with the residual as additional variables.

Minimising |A u - b|^2 as u'(A'A)u squares the condition number and costs half the digits; with
y = A u - b as variables and |y|^2 as objective the solver uses A itself.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.core.parameters import LinkLayout
from taufit.estimators.constraints import Constraints
from taufit.estimators.estimator import EstimationProblem, column_scale, noise_level
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information

_UPPER = np.triu_indices(4)
# Clarabel stacks the upper triangle column by column, off-diagonals times sqrt(2).
_ORDER = np.lexsort((_UPPER[0], _UPPER[1]))
_ROWS, _COLUMNS = _UPPER[0][_ORDER], _UPPER[1][_ORDER]
_SVEC = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))

# Tolerance of the solver; the objective is accurate to more than six digits.
_TOLERANCE = 1e-9


def rows_in_noise_units(
    information: Information, problem: EstimationProblem, ridge: float
) -> tuple[Float[Array, "p p"], Float[Array, " p"], Float[Array, " p"]]:
    """Rows A u - b over u = theta/scale: the data in units of noise, and the nominal robot.

    A has full rank: base parameters are determined by the data, all other directions by a ridge
    towards the nominal robot.
    """
    model, base = problem.model, problem.base
    scale = np.minimum(column_scale(information, problem), _plausible_scale(model))
    noise = noise_level(information, problem)
    q, upper = np.linalg.qr(information.factor[:, base.columns])
    data_rows = upper @ (base.mapping * scale) / noise
    data_target = q.T @ information.target / noise
    # Orthonormal unidentifiable directions, in scaled parameters.
    _, _, rows = np.linalg.svd(base.mapping * scale)
    prior_rows = rows[len(base.columns) :] * ridge
    stacked = np.vstack([data_rows, prior_rows])
    target = np.concatenate([data_target, prior_rows @ (model.nominal / scale)])
    factor = np.asarray(np.linalg.qr(np.column_stack([stacked, target]), mode="r"))
    p = len(scale)
    return factor[:p, :p], factor[:p, p], scale


def _plausible_scale(model: TorqueModel) -> Float[Array, " p"]:
    """Ten times the largest nominal mass, first moment and inertia; no limit for other terms.

    Nearly zero columns would otherwise allow parameters of any size and cost accuracy.
    """
    out = np.full(len(model.names), np.inf)
    links = np.abs(model.layout.split(model.nominal).links)
    mass = links[:, 0].max()
    if mass > 0.0:
        # Without nominal moments, those of a body 0.1 m wide.
        moment = max(links[:, 1:4].max(), 0.1 * mass)
        inertia = max(links[:, 4:].max(), 0.01 * mass)
        link_scale = np.concatenate([[mass], np.full(3, moment), np.full(6, inertia)])
        out[: links.size] = 10.0 * np.tile(link_scale, len(links))
    return out


def consistent_least_squares(
    information: Information, problem: EstimationProblem, limits: Constraints, ridge: float
) -> tuple[Float[Array, " p"], list[str]]:
    """Minimise |A u - b|^2 under the constraints, by Clarabel with y = A u - b as variables."""
    import clarabel
    import scipy.sparse

    factor, target, scale = rows_in_noise_units(
        information, problem, ridge * np.sqrt(information.count)
    )
    unconstrained = _solve_without_cones(factor, target, scale, problem, limits, information.count)
    if unconstrained is not None:
        return unconstrained, []
    p = len(scale)
    g = len(limits.bound)
    blocks = len(limits.links)
    entries_of = LinkLayout(blocks)  # a pseudo-inertia has as many entries as a link

    linear = limits.matrix * scale
    weights = np.linalg.norm(linear, axis=1)
    weights[weights == 0.0] = 1.0
    cones_matrix = np.zeros((entries_of.size, p))
    cones_bound = np.empty(entries_of.size)
    for c, link in enumerate(limits.links):
        # A congruence balances the entries without changing P >= 0.
        link_slice = limits.layout.link(link)
        balance = _balance(limits.maps[c], scale[link_slice])
        entries = limits.maps[c] * balance
        entry_slice = entries_of.link(c)
        cones_matrix[entry_slice, link_slice] = (
            entries[:, _ROWS, _COLUMNS] * _SVEC * scale[link_slice, None]
        ).T
        cones_bound[entry_slice] = (limits.floors[c] * balance)[_ROWS, _COLUMNS] * _SVEC

    top = scipy.sparse.hstack([scipy.sparse.csc_matrix(factor), -scipy.sparse.identity(p)])
    inequalities = scipy.sparse.csc_matrix(
        -np.vstack([linear / weights[:, None], cones_matrix]), shape=(g + entries_of.size, p)
    )
    empty = scipy.sparse.csc_matrix((g + entries_of.size, p))
    a = scipy.sparse.vstack([top, scipy.sparse.hstack([inequalities, empty])], format="csc")
    b = np.concatenate([target, -limits.bound / weights, -cones_bound])
    quadratic = scipy.sparse.csc_matrix(
        (np.ones(p), np.arange(p, 2 * p), np.concatenate([np.zeros(p, int), np.arange(p + 1)])),
        shape=(2 * p, 2 * p),
    )
    cones = [clarabel.ZeroConeT(p), clarabel.NonnegativeConeT(g)]
    cones += [clarabel.PSDTriangleConeT(4)] * blocks
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.max_threads = 1
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = _TOLERANCE
    result = clarabel.DefaultSolver(quadratic, np.zeros(2 * p), a, b, cones, options).solve()
    status = str(result.status)
    theta = np.array(result.x[:p]) * scale
    if "PrimalInfeasible" in status or (status != "Solved" and _violates(limits, theta)):
        raise InfeasibleError(
            "no physically possible arm meets these bounds together: "
            f"{_describe(limits)}. Widen or remove some of them."
        )
    if not np.all(np.isfinite(theta)):
        raise InfeasibleError(
            f"the consistent fit broke down ({status}). Check the recording for wrong units or "
            "gains, or fit with estimator wls first."
        )
    messages = []
    if status not in ("Solved", "AlmostSolved"):
        messages.append(f"the consistent fit stopped early ({status}); its optimum is approximate")
    return theta, messages


def _solve_without_cones(
    factor: Float[Array, "p p"],
    target: Float[Array, " p"],
    scale: Float[Array, " p"],
    problem: EstimationProblem,
    limits: Constraints,
    count: int,
) -> Float[Array, " p"] | None:
    """Optimum under sign constraints alone, if it meets all others; else None.

    Solved by an active set; the result is used only if its multipliers prove optimality.
    """
    fixed = np.zeros(len(scale), bool)
    for _ in range(8):
        u = np.zeros(len(scale))
        u[~fixed], *_ = np.linalg.lstsq(factor[:, ~fixed], target, rcond=None)
        negative = problem.model.nonnegative & (u < 0.0)
        if not np.any(negative):
            break
        fixed |= negative
    else:
        return None
    residual = factor @ u - target
    theta = scale * u
    # Unconstrained, the residual would vanish: so small a residual is optimal.
    is_optimal = np.sum(residual**2) <= 1e-7 * count or np.all(factor[:, fixed].T @ residual >= 0.0)
    is_feasible = (
        is_optimal
        and np.all(limits.matrix @ theta >= limits.bound)
        and np.all(np.linalg.eigvalsh(limits.blocks(theta))[:, 0] >= 0.0)
    )
    return theta if is_feasible else None


def _balance(maps: Float[Array, "10 4 4"], scale: Float[Array, " 10"]) -> Float[Array, "4 4"]:
    """Outer product d d' that brings the diagonal of the block near one."""
    size = np.sqrt(np.maximum(np.max(np.abs(np.einsum("imm->im", maps)) * scale[:, None], 0), 1e-9))
    return 1.0 / np.outer(size, size)


def _violates(limits: Constraints, theta: Float[Array, " p"]) -> bool:
    """Whether a point violates the constraints by more than the solver's tolerance."""
    if not np.all(np.isfinite(theta)):
        return True
    shortfall = limits.bound - limits.matrix @ theta
    blocks = limits.blocks(theta)
    size = np.abs(np.trace(blocks, axis1=1, axis2=2)) + 1e-9
    return bool(
        np.any(shortfall > 1e-4 * (1.0 + np.abs(limits.bound)))
        or np.any(np.linalg.eigvalsh(blocks)[:, 0] < -1e-4 * size)
    )


def _describe(limits: Constraints) -> str:
    user_labels = [label for label in limits.labels if not label.endswith(">= 0")]
    return ", ".join(user_labels[:6]) if user_labels else "signs and pseudo-inertias"
