"""Scatter of several joints from few values each, pooled over the joints."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float, Int

# Weight of all joints in the scatter of each, in degrees of freedom.
POOLED_FREEDOM = 4.0


def pooled_scatter(
    squares: Float[Array, "*b j"],
    freedom: Float[Array, "*b j"] | Int[Array, "*b j"] | float,
    prior_scatter: float = 0.0,
    prior_freedom: float = 0.0,
) -> Float[Array, "*b j"]:
    """Standard deviation of each joint, from sums of squares S_j with m_j degrees of freedom.

    With a prior scatter s0 of all joints that weighs n0 degrees of freedom, and n = 4 for all
    joints in each,

        s^2 = (n0 s0^2 + sum_j S_j) / (n0 + sum_j m_j),    s_j^2 = (n s^2 + S_j) / (n + m_j).

    Args:
        squares: S_j.
        freedom: m_j.
        prior_scatter, prior_freedom: s0 and n0.
    """
    squares = np.asarray(squares, float)
    freedom = np.broadcast_to(np.asarray(freedom, float), squares.shape)
    total = prior_freedom * prior_scatter**2 + squares.sum(axis=-1, keepdims=True)
    pooled_variance = total / (prior_freedom + freedom.sum(axis=-1, keepdims=True))
    return np.asarray(
        np.sqrt((POOLED_FREEDOM * pooled_variance + squares) / (POOLED_FREEDOM + freedom))
    )
