"""Payload of a servo arm from commands and positions alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95, student_t_upper_quantile
from taufit.robot.inertia import from_centre_of_mass
from taufit.servo.model import ServoModel
from taufit.servo.motion import CommandedMotion
from taufit.servo.replay_rows import ReplayRows
from taufit.servo.rollout import replay
from taufit.servo.rollout_fit import descend
from taufit.servo.score import contact_rows
from taufit.servo.unknowns import pack, unpack

_MASS_STEP = 0.02  # difference for the slope in the mass [kg]
_MASS_STD = 1.0  # prior std of the mass [kg]
_BLOCK_S = 5.0  # length of an independent block [s]; chosen on 16 simulated arms of 8000-8034
_STEPS = 6  # largest number of steps
_LARGEST_STEP = 0.3  # largest change of an unknown by one step
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
    free = [~contact_rows(model.axes, block, model.floor) for block in blocks]
    rows = ReplayRows.of_motions(model.axes, blocks, free)
    precision = np.zeros((len(model.covariance) + 1,) * 2)
    precision[:-1, :-1] = np.linalg.inv(model.covariance + np.diag(_run_variance(model)))
    precision[-1, -1] = 1.0 / _MASS_STD**2
    start = np.append(pack(model.servo), 0.0)

    def equations(x: Float[Array, " p"]) -> tuple[Array, Array]:
        normal, gradient = _normal_equations(rows, x)
        slope = gradient.sum(axis=0) + precision @ (x - start)
        return normal.sum(axis=0) + precision, slope

    def cost_of(x: Float[Array, " p"]) -> float:
        prior = float(0.5 * (x - start) @ precision @ (x - start))
        return _with_mass(rows, x[-1]).cost(x[:-1], None) + prior

    x, _ = descend(start, equations, cost_of, _LARGEST_STEP, _STEPS)
    normal, gradient = _normal_equations(rows, x)
    inverse = np.linalg.inv(normal.sum(axis=0) + precision)
    steps, count = gradient @ inverse[-1], len(blocks)
    data_variance = float(np.var(steps)) * count**2 / max(count - 1, 1)
    prior_variance = float(inverse[-1] @ precision @ inverse[-1])
    student = student_t_upper_quantile(0.025, max(count - 1, 1))
    half = float(np.sqrt(student**2 * data_variance + NORMAL_95**2 * prior_variance))
    mass = float(x[-1])
    return ServoPayload(mass, mass - half, mass + half)


def _run_variance(model: ServoModel) -> Float[Array, " p"]:
    """Variance of friction and offset from one run to the next."""
    joints = model.robot.joints
    variance = np.zeros(len(model.covariance))
    variance[2 : 5 * joints : 5] = _FRICTION_STD**2
    variance[4 : 5 * joints : 5] = _OFFSET_STD**2
    return variance


def _with_mass(rows: ReplayRows, mass: float) -> ReplayRows:
    """Rows of the arm with a point mass at the contact point."""
    axes, parameters = rows.axes, rows.axes.parameters.copy()
    parameters[-1] += from_centre_of_mass(mass, axes.point, np.zeros((3, 3)))
    return replace(rows, axes=replace(axes, parameters=parameters))


def _normal_equations(
    rows: ReplayRows, x: Float[Array, " p"]
) -> tuple[Float[Array, "b p p"], Float[Array, "b p"]]:
    """J'WJ and J'Wr of all blocks; the mass is the last unknown."""
    servo, heavier = unpack(x[:-1]), _with_mass(rows, x[-1] + _MASS_STEP).axes

    def slope_of(block: CommandedMotion, position: Array) -> Array:
        return (replay(heavier, servo, block) - position) / _MASS_STEP

    return _with_mass(rows, x[-1]).normal_equations(x[:-1], None, slope_of)
