"""Accumulated rows of one joint: Gram matrix and effective duration.

    G = integral of w [columns, y]' [columns, y] dt / S,

w the weight of each row and S the joint's noise density. Sums can be added, faded and subtracted.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.payload.filter.payload_rows import PayloadRows

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Shortest motion in each direction that separates friction from load [s].
MIN_DIRECTION_S = 0.3
# Smallest payload torque of a loaded joint, relative to the largest of all joints.
_LOADED_FRACTION = 0.3
_GRAVITY = 9.81


class JointSums:
    """Sums over the rows of one joint, which are parts of those of all joints.

    Args:
        gram: G; the payload's ten columns are the first, y is the last.
        totals: Integral of the weights [s], duration in motion [s], durations in motion forwards
            and backwards with significant weight [s], and the integral of the squared torque of
            one kilogram at the frame's origin [(N m)^2 s].

    Attributes:
        gram: G.
    """

    __slots__ = ("_totals", "gram")

    def __init__(self, gram: Float[Array, "c c"], totals: Float[Array, " 5"]) -> None:
        self.gram, self._totals = gram, totals

    def take_directions(self, previous: JointSums) -> None:
        """Continue the durations in each direction of another payload's sums."""
        self._totals[2:4] = previous._totals[2:4]

    def remove(
        self, rows: Float[Array, "n c"], weight: Float[Array, " n"], step: float, density: float
    ) -> None:
        """Subtract rows added before."""
        self.gram -= _weighted_square(rows, weight, step / density)
        self._totals[0] -= float(weight.sum()) * step

    def fade(self, factor: float) -> None:
        """Multiply the sums by a forgetting factor."""
        self.gram *= factor
        self._totals[0] *= factor

    def marginalise(self, columns: Int[Array, " g"], prior: Float[Array, " g"]) -> None:
        """Marginalise columns with the given prior information; their sums restart at zero."""
        remaining = np.setdiff1d(np.arange(len(self.gram)), columns)
        inner = self.gram[np.ix_(columns, columns)] + np.diag(prior)
        cross = self.gram[np.ix_(columns, remaining)]
        marginal = self.gram[np.ix_(remaining, remaining)] - cross.T @ np.linalg.solve(inner, cross)
        self.gram[:] = 0.0
        self.gram[np.ix_(remaining, remaining)] = marginal


def add_rows(
    rows: PayloadRows,
    weight: Float[Array, "n j"],
    density: Float[Array, " j"],
    step: float,
    grams: Float[Array, " g"],
    totals: Float[Array, "j 5"],
) -> None:
    """Add rows of consecutive time bins to the sums of all joints.

    Args:
        rows: Rows of the joints.
        weight: Weight of each row, 0 to 1.
        density: S of each joint.
        step: Width of a bin [s].
        grams: Gram matrices, one after the other.
        totals: Durations and load of each joint, as in `JointSums`.
    """
    if _kernel is not None:
        _kernel.add_payload_rows(
            rows.packed, rows.edges, rows.velocity, weight, density, step, grams, totals
        )
        return
    start = 0
    for j in range(len(density)):
        columns = rows.joint_rows(j)
        end = start + columns.shape[1] ** 2
        grams[start:end] += _weighted_square(columns, weight[:, j], step / density[j]).ravel()
        start = end
    counts, velocity = weight > 0.5, rows.velocity
    totals += step * np.stack(
        [
            weight.sum(axis=0),
            (1.0 - rows.standing).sum(axis=0),
            (counts & (velocity > 0.0)).sum(axis=0),
            (counts & (velocity < 0.0)).sum(axis=0),
            (weight * rows.packed[:, rows.edges[:-1]] ** 2).sum(axis=0),
        ],
        axis=1,
    )


def gram_powers(
    grams: Float[Array, " g"], edges: Int[Array, " e"], values: Float[Array, " c"]
) -> Float[Array, " j"]:
    """x' G x of each joint.

    Args:
        grams: Gram matrices, one after the other.
        edges: First and last column of each joint.
        values: x of one joint after the other.
    """
    out = np.empty(len(edges) - 1)
    if _kernel is not None:
        _kernel.payload_powers(grams, edges, values, out)
        return out
    start = 0
    for j in range(len(out)):
        x = values[edges[j] : edges[j + 1]]
        out[j] = x @ grams[start : start + len(x) ** 2].reshape(len(x), len(x)) @ x
        start += len(x) ** 2
    return out


def unit_load_rms(totals: Float[Array, "j 5"]) -> Float[Array, " j"]:
    """RMS torque of one kilogram at the frame's origin, per joint [N m]."""
    return np.asarray(np.sqrt(totals[:, 4] / np.maximum(totals[:, 0], 1e-9)))


def joints_under_load(totals: Float[Array, "j 5"]) -> Bool[Array, " j"]:
    """Mask of joints that carry the payload."""
    loads = unit_load_rms(totals)
    out: Array = loads >= _LOADED_FRACTION * loads.max()
    return out


def lever_arms(
    totals: Float[Array, "j 5"], powers: Float[Array, " j"], mass: float
) -> Float[Array, " j"]:
    """RMS lever arm of the payload's weight about each joint [m].

    Args:
        totals: Durations and loads of the joints, as in `JointSums`.
        powers: Integrals of the payload's squared torque [(N m)^2 s].
        mass: Its mass [kg]; that of one kilogram at the frame's origin if not positive.
    """
    if mass <= 0.0:
        return unit_load_rms(totals) / _GRAVITY
    return np.asarray(np.sqrt(powers / np.maximum(totals[:, 0], 1e-9)) / (mass * _GRAVITY))


def _weighted_square(rows: Array, weight: Array, factor: float) -> Array:
    out: Array = rows.T @ (rows * (weight * factor)[:, None])
    return out
