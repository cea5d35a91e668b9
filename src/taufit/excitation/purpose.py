"""What a motion is for: which columns matter, what is known already, who may be fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.dynamics.base_parameters import base_parameters
from taufit.errors import InfeasibleError
from taufit.excitation.motion import Motion
from taufit.excitation.objective import InformationOf
from taufit.excitation.sampled import Sampled
from taufit.model.torque_model import TorqueModel
from taufit.robot import Limits
from taufit.signals import Samples


def payload_columns(model: TorqueModel) -> tuple[Int[Array, " b"], tuple[int, ...]]:
    """Columns for a payload on a known arm: the last link's ten, with the joints' as nuisance.

    Returns the columns and the positions of mass and first moments among them, which a payload
    run has to show first.
    """
    columns = np.r_[model.layout.link(-1), model.layout.rest]
    return columns, tuple(range(4))


def slow_arm(limits: Limits, arm_speed: float = 0.5) -> Limits:
    """Joints up to the third slow (half their speed), the wrist free: friction signs of the arm
    separate and position ripple averages, while the wrist shows the inertia."""
    factor = np.ones(len(limits.velocity))
    factor[: min(3, len(factor))] = arm_speed
    return replace(limits, velocity=limits.velocity * factor)


def recorded_motion(samples: Samples) -> Sampled:
    """The motion a recording shows, so that a next one can be planned around it."""
    moving = samples.in_motion & (samples.run == samples.run[0])
    step = max(1, round(samples.rate_hz / 100.0))
    return Sampled(samples.time[moving][::step], samples.position[moving][::step])


def prior_information(
    model: TorqueModel, motions: list[Motion], columns: Int[Array, " b"] | None = None
) -> Float[Array, "b b"]:
    """What earlier motions have shown, as W'W per sample of one of them."""
    if columns is None:
        columns = np.asarray(base_parameters(model, rule="leftmost").columns)
    information = InformationOf(model, columns, np.ones(model.robot.joints))
    total = np.zeros((len(columns), len(columns)))
    for motion in motions:
        if motion.joints != model.robot.joints:
            raise InfeasibleError(
                f"an earlier motion has {motion.joints} joints, the arm {model.robot.joints}."
            )
        time = np.linspace(0.0, motion.duration, 1000)
        total += information.matrix(*motion.at(time))[0]
    return total
