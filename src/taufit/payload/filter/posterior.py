"""What all sums say about the payload once everything else is integrated out, and the reverse.

With total information T on payload p, nuisances n (the arm's base parameters, extras, drive gains)
and right-hand side t,

    A = T_pp - T_pn T_nn^-1 T_np,   A phi_0 = t_p - T_pn T_nn^-1 t_n,

and the nuisances that go with a payload are n(p) = T_nn^-1 (t_n - T_np p).

What only one joint knows goes first, joint by joint, then what joints share: the same result for
less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.gaussian import Gaussian
from taufit.core.parameters import PER_LINK
from taufit.payload.filter.nuisance_model import NuisanceModel

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None


def _without_own(  # noqa: PLR0913 - the compiled kernel's signature
    square: Float[Array, "c c"],
    prior: Float[Array, "p p"],
    prior_target: Float[Array, " p"],
    rows: Int[Array, " k"],
    shared: int,
    phi: Float[Array, " 10"],
    weight: float,
    gain: int,
    total: Float[Array, "t t"],
    target: Float[Array, " t"],
    solved: Float[Array, "o s+2"],
) -> None:
    """Add to total and target, and fill S (`solved`: for s, g and y).

    Args:
        square: [s, o, y]' [s, o, y]; the payload's ten are the first of s.
        prior: Information on all columns.
        prior_target: The same times their prior mean.
        rows: Which columns s and o are; those of s stand there in the total too.
        shared: How many of them are s.
        phi: The payload as estimated.
        weight: Of `square`.
        gain: Where g stands in the total.
        total, target: Of all joints, added to.
        solved: Overwritten.
    """
    k, s, o = len(rows), rows[:shared], rows[shared:]
    line = square[:, :PER_LINK] @ phi
    mine = square[shared:k]
    cross = weight * np.column_stack([mine[:, :shared], line[shared:k], mine[:, k]])
    cross[:, :shared] += prior[np.ix_(o, s)]
    cross[:, -1] += prior_target[o]
    solved[:] = np.linalg.solve(weight * mine[:, shared:k] + prior[np.ix_(o, o)], cross)
    at = np.append(s, gain)
    seen = np.column_stack([square[:shared, :shared], line[:shared]])
    seen = np.vstack([seen, np.append(line[:shared], phi @ line[:PER_LINK])])
    total[np.ix_(at, at)] += weight * seen - cross[:, :-1].T @ solved[:, :-1]
    measured = np.append(square[:shared, k], line[k])
    target[at] += weight * measured - cross[:, :-1].T @ solved[:, -1]


without_own = _without_own if _kernel is None else _kernel.without_own


# Information of a normal prior on the ten parameters, far wider than any payload.
_WEAK = np.diag([1e-4, *[4.0] * 3, *[25.0] * 6])


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Information on the payload's ten parameters after all else was marginalised.

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
        return Gaussian(self.information + _WEAK, self.target).solve()


@dataclass(frozen=True, slots=True, eq=False)
class FilterInformation:
    """All that is known about payload and arm, before anything is integrated out.

    Attributes:
        unknowns: What the columns are.
        prior, target: Information on them beforehand, and times its mean.
        squares: Per joint, [columns, y]' [columns, y] over noise density.
        scale: Factor on each joint's noise variance.
        tied: Whether the prior ties joints' own unknowns to those of others.
    """

    unknowns: NuisanceModel
    prior: Float[Array, "p p"]
    target: Float[Array, " p"]
    squares: Sequence[Float[Array, "_ _"]]
    scale: Float[Array, " j"]
    tied: bool


@dataclass(frozen=True, slots=True, eq=False)
class NuisancePosterior:
    """How everything else follows from the payload.

    Attributes:
        index: Which of the shared unknowns and gains were integrated out.
        solved: T_nn^-1 [T_np, t_n] of these.
        shared: How many unknowns joints share; gains stand behind them.
        own: Per joint which unknowns are its own, and the same of them: for what the joint shares,
            its gain, and the right-hand side.
    """

    index: Int[Array, " i"]
    solved: Float[Array, "i 11"]
    shared: int
    own: Sequence[tuple[Int[Array, " _"], Float[Array, "_ _"]]]

    def at(
        self, phi: Float[Array, " 10"], rows: Sequence[Int[Array, " _"]], count: int
    ) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
        """All `count` unknowns, and the gains' errors, with payload phi; rows are the joints'."""
        shared = np.zeros(self.shared + len(rows))
        shared[:PER_LINK] = phi
        shared[self.index] = self.solved[:, PER_LINK] - self.solved[:, :PER_LINK] @ phi
        gains = shared[self.shared :]
        state = np.zeros(count)
        state[: self.shared] = shared[: self.shared]
        for j, ((mine, inner), columns) in enumerate(zip(self.own, rows, strict=True)):
            known = np.append(shared[columns[: inner.shape[1] - 2]], gains[j])
            state[mine] = inner[:, -1] - inner[:, :-1] @ known
        return state, gains


def marginalise_nuisances(
    evidence: FilterInformation,
    phi: Float[Array, " 10"],
    gains: Float[Array, "j j"],
    gain_common: float,
    without: tuple[str, ...] = (),
) -> tuple[Float[Array, "10 10"], Float[Array, " 10"], NuisancePosterior]:
    """A and A phi_0 of the payload, and how everything else follows from it.

    Args:
        evidence: From prior and rows.
        phi: The payload as estimated: its torque is the column of a gain's error.
        gains: Information on the relative errors of the drive gains.
        gain_common: Relative standard deviation of what all drive gains have in common.
        without: Sources of error taken as known: "links", "friction", "gains".
    """
    u, joints = evidence.unknowns, len(evidence.squares)
    # Once a change has tied everything together, nothing is a joint's own.
    shared = len(u) if evidence.tied else u.shared
    size = shared + joints
    total, target = np.zeros((size, size)), np.zeros(size)
    total[:shared, :shared] = evidence.prior[:shared, :shared]
    total[shared:, shared:] = gains
    target[:shared] = evidence.target[:shared]
    # Gains are no columns: only what is one takes the longer way.
    taken = np.isin(u.parts, without) if without else None
    known = taken if taken is not None and taken.any() else None
    own = [_add(evidence, j, phi, shared, known, total, target) for j in range(joints)]
    keep = np.ones(size, bool)
    if known is not None:
        keep[:shared] = ~known[:shared]
    keep[shared:] = "gains" not in without
    keep[:PER_LINK] = False
    index = np.flatnonzero(keep)
    inner = total[np.ix_(index, index)]
    unit = 1.0 / np.sqrt(np.diag(inner))
    cross = total[index, :PER_LINK] * unit[:, None]
    right = np.column_stack([cross, target[index] * unit])
    factor = cho_factor(inner * np.outer(unit, unit), lower=True, check_finite=False)
    solved = cho_solve(factor, right, check_finite=False)
    information = total[:PER_LINK, :PER_LINK] - cross.T @ solved[:, :PER_LINK]
    information = 0.5 * (information + information.T)
    aim = target[:PER_LINK] - cross.T @ solved[:, PER_LINK]
    if "gains" not in without:
        # All drives may be off alike (motors warm up together): along phi itself.
        line = information @ phi
        alike = max(gain_common, 1e-9)
        share = 1.0 / (1.0 / alike**2 + phi @ line)
        aim = aim - line * (share * float(phi @ aim))
        information = information - np.outer(line, line) * share
    return information, aim, NuisancePosterior(index, solved * unit[:, None], shared, own)


def _add(
    evidence: FilterInformation,
    j: int,
    phi: Float[Array, " 10"],
    shared_by_all: int,
    known: Bool[Array, " p"] | None,
    total: Float[Array, "t t"],
    target: Float[Array, " t"],
) -> tuple[Int[Array, " o"], Float[Array, "o c"]]:
    """Add what joint j says about what it shares and its gain, its own unknowns integrated out.

    Returns which are its own, and how they follow from what it shares, its gain and y.
    """
    rows, prior = evidence.unknowns.rows[j], evidence.prior
    of_joint, weight, gain = evidence.squares[j], 1.0 / evidence.scale[j], shared_by_all + j
    k, shared = len(rows), int(np.searchsorted(rows, shared_by_all))
    mine = rows[shared:]
    if shared < k and known is None:
        solved = np.empty((k - shared, shared + 2))
        without_own(
            of_joint, prior, evidence.target, rows, shared, phi, weight, gain, total, target, solved
        )
        return mine, solved
    square = weight * _with_gain(of_joint, phi)
    kept = np.r_[0:shared, k, k + 1]
    solved = np.zeros((0, len(kept)))
    left = square[np.ix_(kept, kept)]
    if shared < k:
        inner = square[shared:k, shared:k] + prior[np.ix_(mine, mine)]
        cross = square[shared:k][:, kept]
        cross[:, :shared] += prior[np.ix_(mine, rows[:shared])]
        cross[:, -1] += evidence.target[mine]
        if known is not None and known.any():
            free = ~known[mine]
            mine, inner, cross = mine[free], inner[np.ix_(free, free)], cross[free]
        solved = np.linalg.solve(inner, cross)
        left = left - cross.T @ solved
    at = np.append(rows[:shared], gain)
    total[np.ix_(at, at)] += left[:-1, :-1]
    target[at] += left[:-1, -1]
    return mine, solved


def _with_gain(square: Float[Array, "k+1 k+1"], phi: Float[Array, " 10"]) -> Array:
    """Columns, then the column of a wrong gain (the payload's torque as known), then y."""
    k = len(square) - 1
    out = np.empty((k + 2, k + 2))
    line = square[:, :PER_LINK] @ phi
    out[:k, :k] = square[:k, :k]
    out[:k, k] = out[k, :k] = line[:k]
    out[:k, k + 1] = out[k + 1, :k] = square[:k, k]
    out[k, k] = phi @ line[:PER_LINK]
    out[k, k + 1] = out[k + 1, k] = line[k]
    out[k + 1, k + 1] = square[k, k]
    return out


def marginalise_payload(
    evidence: FilterInformation,
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """The reverse: a prior for another payload, with what was learnt about the arm and no gains."""
    total, target = evidence.prior.copy(), evidence.target.copy()
    for square, scale, rows in zip(
        evidence.squares, evidence.scale, evidence.unknowns.rows, strict=True
    ):
        k = len(rows)
        own = square / scale
        total[np.ix_(rows, rows)] += own[:k, :k]
        target[rows] += own[:k, k]
    inner = total[:PER_LINK, :PER_LINK] + _WEAK
    solved = np.linalg.solve(
        inner, np.column_stack([total[:PER_LINK, PER_LINK:], target[:PER_LINK]])
    )
    prior, aim = np.zeros_like(total), np.zeros_like(target)
    rest = total[PER_LINK:, PER_LINK:] - total[PER_LINK:, :PER_LINK] @ solved[:, :-1]
    prior[PER_LINK:, PER_LINK:] = 0.5 * (rest + rest.T)
    aim[PER_LINK:] = target[PER_LINK:] - total[PER_LINK:, :PER_LINK] @ solved[:, -1]
    return prior, aim
