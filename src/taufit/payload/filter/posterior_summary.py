"""Payload estimate and messages from the posterior.

The estimate is either a physically consistent body with normal intervals or, if the mass is not
significantly above zero, a mass truncated at zero:

    P(mass > high | mass > 0) = 2.5 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Loaded with this module: in a control loop it would hold up one sample for a tenth of a second.
from scipy.special import log_ndtr, ndtri_exp

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.payload.estimate import PayloadEstimate, interval
from taufit.payload.filter.body import TENSOR_INDEX, TYPICAL_DENSITY, Body
from taufit.payload.filter.payload_event import PayloadEvent
from taufit.payload.filter.training_coverage import MIN_COVERAGE
from taufit.robot.inertia import tensor_entries

# Inertia with a larger fraction of prior information is marked `from_prior`.
_MAX_PRIOR_SHARE = 0.7
# Residual variance relative to the training data that gives a warning: loaded gears, lower
# temperature or noise-free training data reach it.
SUSPICIOUS_VARIANCE_RATIO = 9.0
# Ratio above which the model does not describe this robot and the result is refused. Between
# a valid simulated run without signs (3^2) and an inverted sign of one joint (493^2).
REFUSED_VARIANCE_RATIO = 100.0
# Six entries of the unit tensor; rows of the tensor's entries and of the centre among ten.
_UNIT_TENSOR = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
_ENTRIES, _AXES = np.arange(4, 10), np.arange(1, 4)
# Density that bounds the inertia of a payload that may be zero [kg/m^3].
_BOUNDING_DENSITY = 1000.0


def body_estimate(time: float, body: Body) -> PayloadEstimate:
    """Estimate of a body, with 95 % intervals."""
    std = np.sqrt(np.maximum(np.diag(body.covariance), 0.0))
    low, high = interval(body.mass, std[0])
    inertia_low, inertia_high = interval(tensor_entries(body.inertia), std[4:])
    # Moments of inertia are never negative.
    inertia_low[[0, 2, 5]] = np.maximum(inertia_low[[0, 2, 5]], 0.0)
    return PayloadEstimate(
        time,
        body.parameters,
        body.mass,
        float(std[0]),
        (max(float(low), 0.0), float(high)),
        body.centre,
        std[1:4],
        interval(body.centre, std[1:4]),
        body.inertia,
        (inertia_low, inertia_high),
        empty=False,
        from_prior=body.prior_share > _MAX_PRIOR_SHARE,
        covariance=_parameter_covariance(body),
    )


def _parameter_covariance(body: Body) -> Float[Array, "10 10"]:
    """Covariance of the ten parameters, from that of mass, centre and inertia about the centre.

    The parameters are m, m c and I + m (c'c 1 - c c').
    """
    mass, c = body.mass, body.centre
    row, column = TENSOR_INDEX
    jacobian = np.eye(10)
    jacobian[1:4, 0] = c
    jacobian[_AXES, _AXES] = mass
    jacobian[4:, 0] = _UNIT_TENSOR * (c @ c) - c[row] * c[column]
    jacobian[4:, 1:4] = 2.0 * mass * np.outer(_UNIT_TENSOR, c)
    jacobian[_ENTRIES, 1 + row] -= mass * c[column]
    jacobian[_ENTRIES, 1 + column] -= mass * c[row]
    return np.asarray(jacobian @ body.covariance @ jacobian.T)


def no_load_estimate(time: float, mass: float, std: float, com_std: float) -> PayloadEstimate:
    """Estimate of a mass that may be zero; centre and inertia are those of the prior.

    Args:
        time: Time of the newest sample [s].
        mass: Mean of the normal posterior, possibly negative [kg].
        std: Its standard deviation [kg].
        com_std: Prior standard deviation of the centre of mass [m].
    """
    value = max(mass, 0.0)
    upper_quantile = mass - std * float(ndtri_exp(np.log(0.025) + log_ndtr(mass / std)))
    high = max(upper_quantile, mass + NORMAL_95 * std)
    centre_std = np.full(3, com_std)
    zero = np.zeros(3)
    largest = (max(high, 1e-3) / _BOUNDING_DENSITY) ** (2.0 / 3.0) * max(high, 1e-3)
    diagonal = _UNIT_TENSOR
    # Inertia of a cube.
    inertia = max(value, 0.0) * (max(value, 1e-6) / TYPICAL_DENSITY) ** (2.0 / 3.0) / 6.0
    parameters = np.zeros(10)
    parameters[0] = value
    parameters[4:] = inertia * diagonal
    return PayloadEstimate(
        time,
        parameters,
        value,
        std,
        (0.0, high),
        zero,
        centre_std,
        interval(zero, centre_std),
        inertia * np.eye(3),
        (np.zeros(6) - (1 - diagonal) * largest, np.ones(6) * largest),
        empty=True,
        from_prior=True,
    )


def lighter_robot_warning(mass: float) -> str:
    """Message that the robot is lighter than its model, by -mass."""
    return (
        f"the arm is {-mass:.1f} kg lighter at its end than its model says. Was a tool on "
        "it when the model was fitted that is gone now? Fit a model of the arm as it is."
    )


def estimate_warnings(
    events: Sequence[PayloadEvent],
    *,
    covariance: bool,
    ready: bool,
    covered_share: float,
    scale: Float[Array, " j"],
) -> list[str]:
    """Messages for the user.

    Args:
        events: Events so far.
        covariance: Whether the model has a covariance.
        ready: Whether the estimate is ready.
        covered_share: Fraction of the motion within the training range.
        scale: Residual variance of each joint relative to the training data.
    """
    messages = [f"{event.time:.2f} s: {event.text}" for event in events]
    if not covariance:
        messages.append(
            "the model has no covariance: its base parameters are taken as known to "
            "5 %, so the intervals are wide. Fit it with `taufit fit`."
        )
    if ready and covered_share < MIN_COVERAGE:
        messages.append(
            f"only {100 * covered_share:.0f} % of this motion lies within the poses and speeds "
            "the model was fitted to; the interval is wider for it. Fit the model to a motion "
            "like this one, or record this one empty and give it as a template."
        )
    if not scale.max() > SUSPICIOUS_VARIANCE_RATIO:
        messages += [] if ready else [NOT_READY]
    elif contradiction_message(scale):
        messages.append(
            f"{contradiction_message(scale)} Do not use the result before that is clear."
        )
    else:
        messages.append(
            f"{contradiction_message(scale, SUSPICIOUS_VARIANCE_RATIO)} The interval does not "
            f"contain such errors."
        )
    return messages


NOT_READY = (
    "not ready: the joints that carry the payload have to move both ways before friction can be "
    "distinguished from load."
)


def contradiction_message(
    scale: Float[Array, " j"], max_ratio: float = REFUSED_VARIANCE_RATIO
) -> str:
    """Reason why the model does not describe this robot, from residual variances; "" if it does."""
    if not scale.max() > max_ratio:
        return ""
    unexplained_joints = np.flatnonzero(scale > max_ratio)
    numbers = ", ".join(str(j + 1) for j in unexplained_joints)
    return (
        f"the model does not explain the torque of joint {numbers}: {np.sqrt(scale.max()):.0f} "
        f"times "
        "its residuals in training. Is it this robot, mounted so, with these gains?"
    )
