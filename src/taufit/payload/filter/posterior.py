"""Posterior of the payload with nuisance parameters marginalised, and the reverse.

With total information T on payload p, nuisance parameters n (base parameters of the robot, extra
columns, drive gains) and right-hand side t,

    A = T_pp - T_pn T_nn^-1 T_np,   A phi_0 = t_p - T_pn T_nn^-1 t_n,

and the nuisance parameters given a payload are n(p) = T_nn^-1 (t_n - T_np p).

Parameters of single joints are marginalised first, joint by joint, then the shared ones: the same
result with less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import Gaussian
from taufit.core.parameters import PER_LINK
from taufit.payload.filter.nuisance_model import NuisanceModel

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None


def _marginalise_joint(  # noqa: PLR0913 - the compiled kernel's signature
    gram: Float[Array, "c c"],
    prior: Float[Array, "p p"],
    prior_target: Float[Array, " p"],
    rows: Int[Array, " k"],
    shared: int,
    phi: Float[Array, " 10"],
    weight: float,
    gain: int,
    total: Float[Array, "t t"],
    target: Float[Array, " t"],
    solution: Float[Array, "o w"],
) -> None:
    """Marginalise the parameters o of one joint; s are shared, g is its drive gain.

    Args:
        gram: [s, o, y]' [s, o, y]; the payload's ten columns are the first of s.
        prior: Prior information on all columns.
        prior_target: Prior information times prior mean.
        rows: Indices of the columns s and o; those of s are also their indices in the total.
        shared: Number of columns s.
        phi: Estimated payload.
        weight: Factor on `gram`.
        gain: Index of g in the total.
        total, target: Sums over all joints, added to.
        solution: Overwritten by the solution for s, g and y.
    """
    k, s, o = len(rows), rows[:shared], rows[shared:]
    gain_column = gram[:, :PER_LINK] @ phi
    joint_rows = gram[shared:k]
    cross = weight * np.column_stack(
        [joint_rows[:, :shared], gain_column[shared:k], joint_rows[:, k]]
    )
    cross[:, :shared] += prior[np.ix_(o, s)]
    cross[:, -1] += prior_target[o]
    solution[:] = np.linalg.solve(weight * joint_rows[:, shared:k] + prior[np.ix_(o, o)], cross)
    index = np.append(s, gain)
    shared_gram = np.column_stack([gram[:shared, :shared], gain_column[:shared]])
    shared_gram = np.vstack(
        [shared_gram, np.append(gain_column[:shared], phi @ gain_column[:PER_LINK])]
    )
    total[np.ix_(index, index)] += weight * shared_gram - cross[:, :-1].T @ solution[:, :-1]
    shared_target = np.append(gram[:shared, k], gain_column[k])
    target[index] += weight * shared_target - cross[:, :-1].T @ solution[:, -1]


marginalise_joint = _marginalise_joint if _kernel is None else _kernel.without_own


# Information of a weak normal prior on the ten parameters, far wider than any payload.
WEAK_PRIOR = np.array([1e-4, *[4.0] * 3, *[25.0] * 6])


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Information on the payload's ten parameters, nuisance parameters marginalised.

    Attributes:
        information, target: A and A phi_0.
        scale: Factor on each joint's noise variance, from its residuals.
        gain: Estimated relative error of each joint's drive gain.
    """

    information: Float[Array, "10 10"]
    target: Float[Array, " 10"]
    scale: Float[Array, " j"]
    gain: Float[Array, " j"] = field(default_factory=lambda: np.zeros(0))

    def linear(self) -> tuple[Float[Array, " 10"], Float[Array, "10 10"]]:
        """Mean and covariance of the ten parameters under a wide normal prior."""
        return Gaussian(self.information + np.diag(WEAK_PRIOR), self.target).solve()


@dataclass(frozen=True, slots=True, eq=False)
class FilterInformation:
    """Joint information on payload and nuisance parameters, before marginalisation.

    Attributes:
        unknowns: Columns and their prior.
        prior, target: Prior information, and prior information times prior mean.
        squares: Per joint, [columns, y]' [columns, y] over noise density.
        scale: Factor on each joint's noise variance.
        tied: Whether the prior correlates parameters of different joints.
    """

    unknowns: NuisanceModel
    prior: Float[Array, "p p"]
    target: Float[Array, " p"]
    grams: Sequence[Float[Array, "_ _"]]
    scale: Float[Array, " j"]
    is_correlated: bool


@dataclass(frozen=True, slots=True, eq=False)
class NuisancePosterior:
    """Posterior of the nuisance parameters given a payload.

    Attributes:
        index: Indices of the marginalised shared parameters and gains.
        solved: T_nn^-1 [T_np, t_n] of these.
        shared: Number of shared parameters; gains follow them.
        per_joint: Per joint, the indices of its parameters and the solution for shared parameters,
            drive gain and right-hand side.
    """

    index: Int[Array, " i"]
    solution: Float[Array, "i 11"]
    shared: int
    per_joint: Sequence[tuple[Int[Array, " _"], Float[Array, "_ _"]]]

    def condition_on(
        self, phi: Float[Array, " 10"], rows: Sequence[Int[Array, " _"]], count: int
    ) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
        """All `count` parameters and the errors of the drive gains, given payload phi."""
        shared = np.zeros(self.shared + len(rows))
        shared[:PER_LINK] = phi
        shared[self.index] = self.solution[:, PER_LINK] - self.solution[:, :PER_LINK] @ phi
        gains = shared[self.shared :]
        state = np.zeros(count)
        state[: self.shared] = shared[: self.shared]
        for j, ((indices, inner), columns) in enumerate(zip(self.per_joint, rows, strict=True)):
            conditions = np.append(shared[columns[: inner.shape[1] - 2]], gains[j])
            state[indices] = inner[:, -1] - inner[:, :-1] @ conditions
        return state, gains


def marginalise_nuisances(
    filter_information: FilterInformation,
    phi: Float[Array, " 10"],
    gains: Float[Array, "j j"],
    gain_common: float,
    fixed_sources: tuple[str, ...] = (),
) -> tuple[Float[Array, "10 10"], Float[Array, " 10"], NuisancePosterior]:
    """A and A phi_0 of the payload, and the nuisance posterior given the payload.

    Args:
        filter_information: Joint information from prior and rows.
        phi: Estimated payload: its torque is the column of a gain error.
        gains: Information on the relative errors of the drive gains.
        gain_common: Relative standard deviation of an error common to all drive gains.
        fixed_sources: Error sources with fixed parameters: "links", "friction", "gains".
    """
    u, joints = filter_information.unknowns, len(filter_information.grams)
    # After a payload change all parameters are correlated: none belongs to a single joint.
    shared = len(u) if filter_information.is_correlated else u.shared
    size = shared + joints
    total, target = np.zeros((size, size)), np.zeros(size)
    total[:shared, :shared] = filter_information.prior[:shared, :shared]
    total[shared:, shared:] = gains
    target[:shared] = filter_information.target[:shared]
    # Gains have no columns of their own; fixed columns need the general computation.
    is_fixed = np.isin(u.parts, fixed_sources) if fixed_sources else None
    fixed = is_fixed if is_fixed is not None and is_fixed.any() else None
    per_joint = [
        _add_joint(filter_information, j, phi, shared, fixed, total, target) for j in range(joints)
    ]
    keep = np.ones(size, bool)
    if fixed is not None:
        keep[:shared] = ~fixed[:shared]
    keep[shared:] = "gains" not in fixed_sources
    keep[:PER_LINK] = False
    index = np.flatnonzero(keep)
    inner = total[np.ix_(index, index)]
    scale = 1.0 / np.sqrt(np.diag(inner))
    cross = total[index, :PER_LINK] * scale[:, None]
    right = np.column_stack([cross, target[index] * scale])
    factor = cho_factor(inner * np.outer(scale, scale), lower=True, check_finite=False)
    solution = cho_solve(factor, right, check_finite=False)
    payload_information = total[:PER_LINK, :PER_LINK] - cross.T @ solution[:, :PER_LINK]
    payload_information = 0.5 * (payload_information + payload_information.T)
    payload_target = target[:PER_LINK] - cross.T @ solution[:, PER_LINK]
    if "gains" not in fixed_sources:
        # Error common to all drives (motors warm up together): along phi.
        common_column = payload_information @ phi
        common_std = max(gain_common, 1e-9)
        common_variance = 1.0 / (1.0 / common_std**2 + phi @ common_column)
        payload_target = payload_target - common_column * (
            common_variance * float(phi @ payload_target)
        )
        payload_information = (
            payload_information - np.outer(common_column, common_column) * common_variance
        )
    return (
        payload_information,
        payload_target,
        NuisancePosterior(index, solution * scale[:, None], shared, per_joint),
    )


def _add_joint(
    filter_information: FilterInformation,
    j: int,
    phi: Float[Array, " 10"],
    shared_by_all: int,
    fixed: Bool[Array, " p"] | None,
    total: Float[Array, "t t"],
    target: Float[Array, " t"],
) -> tuple[Int[Array, " o"], Float[Array, "o c"]]:
    """Add the information of joint j on shared parameters and its gain to the total.

    Returns the indices of its marginalised parameters and their solution.
    """
    rows, prior = filter_information.unknowns.rows[j], filter_information.prior
    gram, weight, gain = (
        filter_information.grams[j],
        1.0 / filter_information.scale[j],
        shared_by_all + j,
    )
    k, shared = len(rows), int(np.searchsorted(rows, shared_by_all))
    indices = rows[shared:]
    if shared < k and fixed is None:
        solution = np.empty((k - shared, shared + 2))
        marginalise_joint(
            gram,
            prior,
            filter_information.target,
            rows,
            shared,
            phi,
            weight,
            gain,
            total,
            target,
            solution,
        )
        return indices, solution
    weighted = weight * _add_gain_column(gram, phi)
    remaining = np.r_[0:shared, k, k + 1]
    solution = np.zeros((0, len(remaining)))
    marginal = weighted[np.ix_(remaining, remaining)]
    if shared < k:
        inner = weighted[shared:k, shared:k] + prior[np.ix_(indices, indices)]
        cross = weighted[shared:k][:, remaining]
        cross[:, :shared] += prior[np.ix_(indices, rows[:shared])]
        cross[:, -1] += filter_information.target[indices]
        if fixed is not None and fixed.any():
            free = ~fixed[indices]
            indices, inner, cross = indices[free], inner[np.ix_(free, free)], cross[free]
        solution = np.linalg.solve(inner, cross)
        marginal = marginal - cross.T @ solution
    index = np.append(rows[:shared], gain)
    total[np.ix_(index, index)] += marginal[:-1, :-1]
    target[index] += marginal[:-1, -1]
    return indices, solution


def _add_gain_column(gram: Float[Array, "k k"], phi: Float[Array, " 10"]) -> Array:
    """Gram matrix with the column of a gain error (the payload's torque) before y."""
    k = len(gram) - 1
    out = np.empty((k + 2, k + 2))
    gain_column = gram[:, :PER_LINK] @ phi
    out[:k, :k] = gram[:k, :k]
    out[:k, k] = out[k, :k] = gain_column[:k]
    out[:k, k + 1] = out[k + 1, :k] = gram[:k, k]
    out[k, k] = phi @ gain_column[:PER_LINK]
    out[k, k + 1] = out[k + 1, k] = gain_column[k]
    out[k + 1, k + 1] = gram[k, k]
    return out


def marginalise_payload(
    information: FilterInformation,
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """Prior of the nuisance parameters for the next payload, without gains."""
    total, target = information.prior.copy(), information.target.copy()
    for gram, scale, rows in zip(
        information.grams, information.scale, information.unknowns.rows, strict=True
    ):
        k = len(rows)
        weighted = gram / scale
        total[np.ix_(rows, rows)] += weighted[:k, :k]
        target[rows] += weighted[:k, k]
    inner = total[:PER_LINK, :PER_LINK] + np.diag(WEAK_PRIOR)
    solution = np.linalg.solve(
        inner, np.column_stack([total[:PER_LINK, PER_LINK:], target[:PER_LINK]])
    )
    prior, prior_target = np.zeros_like(total), np.zeros_like(target)
    marginal = total[PER_LINK:, PER_LINK:] - total[PER_LINK:, :PER_LINK] @ solution[:, :-1]
    prior[PER_LINK:, PER_LINK:] = 0.5 * (marginal + marginal.T)
    prior_target[PER_LINK:] = target[PER_LINK:] - total[PER_LINK:, :PER_LINK] @ solution[:, -1]
    return prior, prior_target
