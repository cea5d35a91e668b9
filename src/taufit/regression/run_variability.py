"""Friction that differs from run to run: how much, and what that does to the uncertainty.

In run r the friction of joint j is (1 + e_rj) times that of the model, e_rj ~ N(0, s_j^2). A fit
to K runs takes it for coefficients: with A the information of all rows, H_rj that of run r and
joint j, and phi_j the friction coefficients of joint j,

    covariance = A^-1 (sum_r sum_j s_j^2 u_rj u_rj') A^-1,      u_rj = H_rj phi_j,

on top of what the residuals' noise gives. It does not become less with longer runs, only with more
of them; a slope over temperature is as uncertain as runs at few temperatures leave it.
s_j comes from the runs, as far as they are many, else from what is usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95, student_t_upper_quantile
from taufit.model.intervals import USUAL_SCATTER
from taufit.regression.information import Information
from taufit.regression.regression import Regression
from taufit.regression.weights import Weights
from taufit.terms.layout import ParameterLayout
from taufit.terms.term import DISSIPATIVE

# How many runs the usual scatter is worth.
_PRIOR_RUNS = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class RunVariability:
    """Attributes:
    scatter: s_j, relative.
    covariance: What it adds to that of the base parameters.
    """

    scatter: Float[Array, " j"]
    covariance: Float[Array, "b b"]


def estimate_run_variability(
    regression: Regression,
    weights: Weights,
    information: Information,
    values: Float[Array, " p"],
    layout: ParameterLayout,
) -> RunVariability:
    """Scatter of friction between runs, and its part in the covariance.

    Args:
        regression: What was fitted; every run is a fold where there are three or more.
        weights: Of the rows in the fit.
        information: What those rows say.
        values: The parameters fitted.
        layout: Which of them are friction.
    """
    base = regression.base
    groups = regression.by_fold if regression.runs >= 3 else (regression.by_joint,)
    runs_per_group = max(1.0, regression.runs / len(groups))
    base_values = base.mapping @ values
    friction = [base.mapping @ _joint_friction(values, layout, j) for j in range(layout.joints)]
    scatter = _scatter(groups, base_values, friction, runs_per_group)
    upper = np.linalg.qr(information.factor[:, base.columns], mode="r")
    norms = np.linalg.norm(upper, axis=0)
    norms[norms == 0.0] = 1.0
    inverse = np.linalg.pinv(upper / norms, rcond=1e-12)
    out = np.zeros((base.rank, base.rank))
    for group in groups:
        for j, part in enumerate(group):
            pull = part.factor.T @ (part.factor @ friction[j])
            change = inverse @ (inverse.T @ (weights.joint[j] ** 2 * pull / norms)) / norms
            out += scatter[j] ** 2 / runs_per_group * np.outer(change, change)
    if len(groups) >= 3:
        # A scatter known from few runs: intervals of two standard deviations must be wider.
        freedom = _PRIOR_RUNS + len(groups) - 1.0
        out *= (student_t_upper_quantile(0.025, freedom) / NORMAL_95) ** 2
    return RunVariability(scatter, out)


def _joint_friction(
    values: Float[Array, " p"], layout: ParameterLayout, joint: int
) -> Float[Array, " p"]:
    """The friction coefficients of one joint, others zero."""
    out = np.zeros_like(values)
    at = layout.of_kind(DISSIPATIVE) & (np.asarray(layout.owner) == joint)
    out[at] = values[at]
    return out


def _scatter(
    groups: tuple[tuple[Information, ...], ...],
    base_values: Float[Array, " b"],
    friction: list[Float[Array, " b"]],
    runs_per_group: float,
) -> Float[Array, " j"]:
    """s_j from the friction of every group of runs over that of the model.

    (N f's f + S)/(N + K - 1) with the usual scatter worth N runs: few runs hardly move it.
    """
    joints = len(friction)
    prior_variance = USUAL_SCATTER**2
    if len(groups) < 3:
        return np.full(joints, USUAL_SCATTER)
    factor = np.zeros((len(groups), joints))
    for k, group in enumerate(groups):
        for j, part in enumerate(group):
            torque = part.factor @ friction[j]
            size = float(torque @ torque)
            error: Array = part.target - part.factor @ base_values
            factor[k, j] = float(torque @ error) / size if size > 0.0 else 0.0
    squares = np.sum((factor - factor.mean(axis=0)) ** 2, axis=0) * runs_per_group
    return np.asarray(
        np.sqrt((_PRIOR_RUNS * prior_variance + squares) / (_PRIOR_RUNS + len(groups) - 1))
    )
