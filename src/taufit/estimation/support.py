"""Which friction terms a recording supports, by the Bayesian information criterion.

Leaving term i out of a fit with covariance C raises -2 ln(likelihood) by theta_i^2 / C_ii; BIC lets
it go where that is less than ln(N). What remains is conditioned on that, and the next is tried.
"""

from __future__ import annotations

import numpy as np

from taufit.estimation.estimate import Estimate
from taufit.torque_model import TorqueModel


def unsupported_terms(
    model: TorqueModel, estimate: Estimate, *, always: tuple[str, ...] = ("coulomb", "viscous")
) -> tuple[str, ...]:
    """Names of friction terms the data do not support; refit with `dropped=` to leave them out.

    The covariance knows the residuals' colour, so N counts independent samples only as far as they
    are. Terms that are not identifiable one by one are left alone.

    Args:
        model: What was fitted.
        estimate: What came of it.
        always: Terms kept whatever the data say.
    """
    if model.friction is None:
        return ()
    terms = {term.name for term in model.friction.terms} - set(always)
    alone = set(estimate.base.identifiable.tolist())
    candidates = [
        i
        for i, column in enumerate(estimate.base.columns.tolist())
        if column in alone
        and estimate.names[column].startswith("joint_")
        and estimate.names[column].split(".", 1)[1] in terms
    ]
    values, spread = estimate.base_values.copy(), estimate.base_covariance.copy()
    threshold = np.log(max(estimate.count / model.robot.joints, 2.0))
    gone = []
    while candidates:
        variance = np.maximum(np.diag(spread)[candidates], 1e-300)
        strength = values[candidates] ** 2 / variance
        weakest = int(np.argmin(strength))
        if strength[weakest] >= threshold:
            break
        i = candidates.pop(weakest)
        gone.append(estimate.names[estimate.base.columns[i]])
        gain = spread[:, i] / max(spread[i, i], 1e-300)
        values = values - gain * values[i]
        spread = spread - np.outer(gain, spread[i])
    order = {name: k for k, name in enumerate(estimate.names)}
    return tuple(sorted(gone, key=order.__getitem__))
