"""Run-to-run variability of friction, and its effect on the parameter covariance.

In run r the friction of joint j is (1 + e_rj) times that of the model, e_rj ~ N(0, s_j^2). A fit
to K runs attributes it to coefficients: with A the information of all rows, H_rj that of run r and
joint j, and phi_j the friction coefficients of joint j,

    covariance = A^-1 (sum_r sum_j s_j^2 u_rj u_rj') A^-1,      u_rj = H_rj phi_j,

in addition to that of the residual noise. It decreases with the number of runs, not with their
length; a temperature slope is uncertain where runs cover few temperatures.

s_j is estimated by restricted maximum likelihood, pooled over the joints. With S_j the sum of
squares of the K run factors of a joint about what the fit can follow (a level, and a slope where
friction depends on temperature: p parameters),

they have K - p degrees of freedom (`pooled_scatter`), beside a weak prior scatter. Few runs need
Student's quantile.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95, student_t_upper_quantile
from taufit.model.intervals import TYPICAL_FRICTION_SCATTER
from taufit.regression.information import Information
from taufit.regression.pooled_scatter import POOLED_FREEDOM, pooled_scatter
from taufit.regression.regression import Regression
from taufit.regression.weights import Weights
from taufit.terms.layout import ParameterLayout
from taufit.terms.term import DISSIPATIVE

# Prior scatter of all joints, and its weight in degrees of freedom.
PRIOR_SCATTER, PRIOR_FREEDOM = 0.01, 0.5
# Sum of squares of friction in a run, relative to that of the run with most, below which the run
# does not show the joint's friction.
_MIN_FRICTION_RATIO = 0.05
# Friction of the first strokes after a rest is not that of work: without several runs the typical
# scatter holds from this duration of motion on [s], and grows up to the limit the shorter it is.
# From two shared UR10e runs of October 2019 (4 s of motion each) against those of 2020.
_SETTLED_S, _MAX_SCATTER = 15.0, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class RunVariability:
    """Run-to-run scatter of friction.

    Attributes:
        scatter: Standard deviation s_j, relative.
        scores: Contribution to the covariance of the scores: the sum between the two A^-1.
    """

    scatter: Float[Array, " j"]
    scores: Float[Array, "b b"]


def estimate_run_variability(
    regression: Regression,
    weights: Weights,
    values: Float[Array, " p"],
    layout: ParameterLayout,
    *,
    has_temperature: bool = False,
) -> RunVariability:
    """Estimate the scatter of friction between runs and its contribution to the covariance.

    Args:
        regression: Fitted regression; every run is a fold if there are three or more.
        weights: Weights of the rows in the fit.
        values: Fitted parameters.
        layout: Parameter layout, which identifies friction.
        has_temperature: Whether friction depends on temperature: runs then determine a slope too.
    """
    base = regression.base
    groups = regression.by_fold if regression.runs >= 3 else (regression.by_joint,)
    runs_per_group = max(1.0, regression.runs / len(groups))
    base_values = base.mapping @ values
    friction = [base.mapping @ _joint_friction(values, layout, j) for j in range(layout.joints)]
    squares, counts = _factor_squares(groups, base_values, friction)
    parameters = 2 if has_temperature else 1
    freedom = np.where(counts >= 3, np.maximum(counts - parameters, 0), 0)
    if not np.any(freedom):
        seconds = regression.torque.count / regression.rate_hz
        brevity = np.maximum(_SETTLED_S / np.maximum(seconds, 1e-9), 1.0)
        scatter = np.minimum(TYPICAL_FRICTION_SCATTER * brevity, _MAX_SCATTER)
        interval_factor = np.ones(layout.joints)
    else:
        squares = np.where(freedom > 0, squares, 0.0) * runs_per_group
        scatter = pooled_scatter(squares, freedom, PRIOR_SCATTER, PRIOR_FREEDOM)
        pooled_freedom = min(POOLED_FREEDOM, PRIOR_FREEDOM + float(freedom.sum()))
        quantiles = [student_t_upper_quantile(0.025, pooled_freedom + m) for m in freedom]
        interval_factor = np.array(quantiles) / NORMAL_95
    out = np.zeros((base.rank, base.rank))
    for group in groups:
        for j, part in enumerate(group):
            pull = weights.joint[j] ** 2 * part.factor.T @ (part.factor @ friction[j])
            variance = (interval_factor[j] * scatter[j]) ** 2 / runs_per_group
            out += variance * np.outer(pull, pull)
    return RunVariability(scatter, out)


def _joint_friction(
    values: Float[Array, " p"], layout: ParameterLayout, joint: int
) -> Float[Array, " p"]:
    """Parameters with only the friction coefficients of one joint, others zero."""
    out = np.zeros_like(values)
    at = layout.of_kind(DISSIPATIVE) & (np.asarray(layout.owner) == joint)
    out[at] = values[at]
    return out


def _factor_squares(
    groups: tuple[tuple[Information, ...], ...],
    base_values: Float[Array, " b"],
    friction: list[Float[Array, " b"]],
) -> tuple[Float[Array, " j"], Int[Array, " j"]]:
    """Sum of squares of each group's ratio of friction to the model's, and number of groups.

    Groups in which a joint hardly moves do not show its friction and are left out.
    """
    shape = len(groups), len(friction)
    factor, size = np.zeros(shape), np.zeros(shape)
    for k, group in enumerate(groups):
        for j, part in enumerate(group):
            torque = part.factor @ friction[j]
            size[k, j] = float(torque @ torque)
            error: Array = part.target - part.factor @ base_values
            # Of a joint that never moves only rounding is left.
            size[k, j] *= size[k, j] > 1e-12 * float(part.target @ part.target)
            factor[k, j] = float(torque @ error) / size[k, j] if size[k, j] > 0.0 else 0.0
    used: Bool[Array, "g j"] = (size > 0.0) & (size >= _MIN_FRICTION_RATIO * size.max(axis=0))
    counts = used.sum(axis=0)
    mean = np.sum(np.where(used, factor, 0.0), axis=0) / np.maximum(counts, 1)
    return np.sum(np.where(used, factor - mean, 0.0) ** 2, axis=0), counts
