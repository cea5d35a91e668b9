"""Payload of a servo arm from commands and positions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import student_t_upper_quantile
from taufit.robot.inertia import from_centre_of_mass
from taufit.servo.joint_axes import JointAxes
from taufit.servo.model import ServoModel
from taufit.servo.motion import CommandedMotion
from taufit.servo.rollout import replay
from taufit.servo.rollout_fit import normal_equations, pack, unpack, used_rows
from taufit.servo.score import contact_rows

_MASS_STEP = 0.02  # difference for the slope in the mass [kg]
_MASS_STD = 1.0  # prior std of the mass [kg]
_BLOCK_S = 10.0  # length of an independent block [s]
# Prior std of the run's own change of coulomb/kp (ln) and of the offset [rad].
_FRICTION_STD, _OFFSET_STD = 0.1, 5e-4


@dataclass(frozen=True, slots=True)
class ServoPayload:
    """Mass at the contact point of the last link, with its 95 % interval [kg]."""

    mass: float
    low: float
    high: float


def estimate_payload(model: ServoModel, motions: Sequence[CommandedMotion]) -> ServoPayload:
    """Estimate the mass that an arm carries at its contact point.

    Servo parameters are nuisance parameters with the covariance of the model. kp, and with it the
    mass, is relative to the link masses of the model.
    """
    blocks = [part for m in motions for part in m.split(m.blocks(_BLOCK_S))]
    covariance = model.covariance + np.diag(_run_variance(model))
    precision = np.zeros((len(covariance) + 1,) * 2)
    precision[:-1, :-1] = np.linalg.inv(covariance)
    precision[-1, -1] = 1.0 / _MASS_STD**2
    start = np.append(pack(model.servo), 0.0)
    x = start.copy()
    for _ in range(6):
        normal, gradient = _normal_equations(model, x, blocks)
        hessian = normal + precision
        step = np.linalg.solve(hessian, gradient.sum(axis=0) + precision @ (x - start))
        x = x - np.clip(step, -0.3, 0.3)
        if abs(step[-1]) < 1e-4:
            break
    _, gradient = _normal_equations(model, x, blocks)
    count = len(blocks)
    inverse = np.linalg.inv(hessian)
    scatter = gradient.T @ gradient * count / max(count - 1, 1)
    std = float(np.sqrt((inverse @ (scatter + precision) @ inverse)[-1, -1]))
    width = student_t_upper_quantile(0.025, max(count - 1, 1)) * std
    mass = float(x[-1])
    return ServoPayload(mass, mass - width, mass + width)


def _run_variance(model: ServoModel) -> Float[Array, " p"]:
    """Variance of friction and offset from one run to the next."""
    joints = model.robot.joints
    variance = np.zeros(len(model.covariance))
    variance[2 : 5 * joints : 5] = _FRICTION_STD**2
    variance[4 : 5 * joints : 5] = _OFFSET_STD**2
    return variance


def _with_mass(axes: JointAxes, mass: float) -> JointAxes:
    """Arm with a point mass at the contact point."""
    parameters = axes.parameters.copy()
    parameters[-1] += from_centre_of_mass(mass, axes.point, np.zeros((3, 3)))
    return replace(axes, parameters=parameters)


def _normal_equations(
    model: ServoModel, x: Float[Array, " p"], blocks: Sequence[CommandedMotion]
) -> tuple[Float[Array, "p p"], Float[Array, "b p"]]:
    """J'WJ of all blocks and J'Wr of each."""
    servo = unpack(x[:-1], model.robot.joints)
    heavier = _with_mass(model.axes, x[-1] + _MASS_STEP)

    def slope_of(block: CommandedMotion, position: Array) -> Array:
        return (replay(heavier, servo, block) - position) / _MASS_STEP

    masks = [used_rows(block, ~contact_rows(model.axes, block, model.floor)) for block in blocks]
    axes = _with_mass(model.axes, x[-1])
    normal, gradients = normal_equations(axes, x[:-1], blocks, masks, None, slope_of)
    return normal.sum(axis=0), gradients
