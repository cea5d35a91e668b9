"""Payload of a servo arm from commands and positions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import student_t_upper_quantile
from taufit.servo.joint_axes import JointAxes
from taufit.servo.model import ServoModel
from taufit.servo.motion import CommandedMotion
from taufit.servo.rollout import replay, replay_slopes
from taufit.servo.rollout_fit import (
    ERROR_STD,
    HUBER,
    kernel_chain,
    pack,
    row_weight,
    unpack,
    used_rows,
)
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
    p = axes.point
    inertia = mass * (p @ p * np.eye(3) - np.outer(p, p))
    upper = [inertia[0, 0], inertia[0, 1], inertia[1, 1], inertia[0, 2], inertia[1, 2]]
    parameters[-1] += np.array([mass, *(mass * p), *upper, inertia[2, 2]])
    return replace(axes, parameters=parameters)


def _normal_equations(
    model: ServoModel, x: Float[Array, " p"], blocks: Sequence[CommandedMotion]
) -> tuple[Float[Array, "p p"], Float[Array, "b p"]]:
    """J'WJ of all blocks and J'Wr of each."""
    servo = unpack(x[:-1], model.robot.joints)
    axes = _with_mass(model.axes, x[-1])
    heavier = _with_mass(model.axes, x[-1] + _MASS_STEP)
    chain = kernel_chain(servo, len(x) - 1)
    normal, gradients = np.zeros((len(x), len(x))), []
    for block in blocks:
        mask = used_rows(block, ~contact_rows(axes, block, model.floor))
        position, slopes = replay_slopes(axes, servo, block)
        by_mass = (replay(heavier, servo, block) - position) / _MASS_STEP
        residual = ((position - block.position)[mask] / ERROR_STD).ravel()
        columns = np.column_stack(
            [slopes[mask].reshape(len(residual), len(chain)) @ chain, by_mass[mask].ravel()]
        )
        columns = columns / ERROR_STD
        weight = row_weight(block) * np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-12))
        normal += (columns * weight[:, None]).T @ columns
        gradients.append(columns.T @ (weight * residual))
    return normal, np.array(gradients)
