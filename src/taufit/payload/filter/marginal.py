"""What one joint says once its own unknowns are integrated out: compiled, or else in NumPy.

With the sum of squares of its columns s that others have too, o of its own and y, the column of
its drive gain g = payload phi, and everything weighted,

    total += [s, g]' [s, g] - C' S,   target += [s, g]' y - C' S_y,   S = (o'o + prior)^-1 C,

C = o' [s, g, y] plus what the prior says about o together with s, and about o alone.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.parameters import PER_LINK

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
