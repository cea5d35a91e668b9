"""What is said about a payload once it is worked out: numbers with intervals, and words.

Either a body that can exist, with normal intervals about it; or, where the mass is not clearly more
than nothing, a mass cut off at zero:

    P(mass > high | mass > 0) = 2.5 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.payload.estimate import PayloadEstimate, interval
from taufit.payload.filter.body import TYPICAL_DENSITY, Body
from taufit.payload.filter.event import PayloadEvent
from taufit.payload.filter.training_coverage import ENOUGH
from taufit.robot.inertia import tensor_entries

# Inertia with more than this share of prior in it is called so.
_PRIOR_SHARE = 0.7
# Residual variance beyond this many times that of the training is pointed out: a load on the gears,
# a colder day or noise-free training reach it.
STRANGE = 9.0
# Beyond this the model is not that of this arm, and the result is refused. Chosen between two:
# a sound simulated run without signs has 3^2, a turned sign of one joint 493^2.
REFUSED = 100.0
# Density that bounds the inertia of what may be nothing [kg/m^3].
_BOUNDING_DENSITY = 1000.0


def body_estimate(time: float, body: Body) -> PayloadEstimate:
    """A body, with 95 % intervals."""
    std = np.sqrt(np.maximum(np.diag(body.covariance), 0.0))
    low, high = interval(body.mass, std[0])
    least, most = interval(tensor_entries(body.inertia), std[4:])
    # Moments of inertia are never negative, whatever the normal law says.
    least[[0, 2, 5]] = np.maximum(least[[0, 2, 5]], 0.0)
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
        (least, most),
        empty=False,
        from_prior=body.prior_share > _PRIOR_SHARE,
    )


def no_load_estimate(time: float, mass: float, std: float, com_spread: float) -> PayloadEstimate:
    """A mass that may be none; centre and inertia are those of the prior.

    Args:
        time: Of the newest sample [s].
        mass: As a normal quantity, negative too [kg].
        std: Its standard deviation [kg].
        com_spread: Prior standard deviation of the centre of mass [m].
    """
    from scipy.special import log_ndtr, ndtri_exp

    value = max(mass, 0.0)
    cut_off = mass - std * float(ndtri_exp(np.log(0.025) + log_ndtr(mass / std)))
    high = max(cut_off, mass + NORMAL_95 * std)
    wide = np.full(3, com_spread)
    zero = np.zeros(3)
    largest = (max(high, 1e-3) / _BOUNDING_DENSITY) ** (2.0 / 3.0) * max(high, 1e-3)
    diagonal = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    # Of a cube.
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
        wide,
        interval(zero, wide),
        inertia * np.eye(3),
        (np.zeros(6) - (1 - diagonal) * largest, np.ones(6) * largest),
        empty=True,
        from_prior=True,
    )


def lighter_robot_warning(mass: float) -> str:
    """The arm itself is lighter than its model, by -mass."""
    return (
        f"the arm is {-mass:.1f} kg lighter at its end than its model says. Was a tool on "
        "it when the model was fitted that is gone now? Fit a model of the arm as it is."
    )


def warnings(
    events: Sequence[PayloadEvent],
    *,
    covariance: bool,
    ready: bool,
    familiar: float,
    scale: Float[Array, " j"],
) -> list[str]:
    """What the user should know, besides the numbers.

    Args:
        events: So far.
        covariance: Whether the model came with one.
        ready: Whether there is something to be read.
        familiar: Share of the motion within what the model was fitted to.
        scale: Residual variance of each joint, relative to the training's.
    """
    messages = [f"{event.time:.2f} s: {event.text}" for event in events]
    if not covariance:
        messages.append(
            "the model has no covariance: its base parameters are taken as known to "
            "5 %, so the intervals are wide. Fit it with `taufit fit`."
        )
    if ready and familiar < ENOUGH:
        messages.append(
            f"only {100 * familiar:.0f} % of this motion lies within the poses and speeds "
            "the model was fitted to; the interval is wider for it. Fit the model to a motion "
            "like this one, or record this one empty and give it as a template."
        )
    if unexplained(scale):
        messages.append(f"{unexplained(scale)} Do not use the result before that is clear.")
    elif unexplained(scale, STRANGE):
        messages.append(f"{unexplained(scale, STRANGE)} The interval does not contain such errors.")
    elif not ready:
        messages.append(NOT_READY)
    return messages


NOT_READY = (
    "not ready: the joints that carry the payload have to move both ways before friction can be "
    "distinguished from load."
)


def unexplained(scale: Float[Array, " j"], most: float = REFUSED) -> str:
    """Why the model is not this arm's, by residual variances relative to the training's; or ""."""
    strange = np.flatnonzero(scale > most)
    if not len(strange):
        return ""
    which = ", ".join(str(j + 1) for j in strange)
    return (
        f"the model does not explain the torque of joint {which}: {np.sqrt(scale.max()):.0f} times "
        "its residuals in training. Is it this robot, mounted so, with these gains?"
    )
