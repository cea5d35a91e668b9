"""Unknowns of the second stage, and their prior.

Unknowns x: per joint ln kp, ln damping/kp, ln coulomb/kp, ln armature and the offset; then the
delay of all joints and, if fitted, ln of the acceleration limit.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.servo.linear_fit import OFFSET_STD, TRUNCATION_STD
from taufit.servo.parameters import ServoParameters
from taufit.servo.servo_types import ServoTypePrior

PER_JOINT = 5  # unknowns per joint
# Prior std of the mean over the joints, and of each joint about it: ln kp, damping/kp, coulomb/kp
# (not pooled), armature. Large armatures show their logarithm best: a narrower prior draws the
# small ones up and moves delay and damping. Chosen on simulated arms 8000-8038 of
# benchmarks/simulated_servos.py, as the covariance of the intervals.
_LOG_STD = ((1.0, 0.1), (1.5, 0.3), (0.0, 1.5), (1.5, 0.7))
_POOLED = (0, 1, 3)
_DELAY_STD, _LIMIT_STD = 0.03, 1.0


@dataclass(frozen=True, slots=True, eq=False)
class ServoPrior:
    """Gaussian prior of the unknowns.

    Attributes:
        mean: Prior mean of x.
        precision: Prior precision matrix of x.
    """

    mean: Float[Array, " p"]
    precision: Float[Array, "p p"]


def pack(servo: ServoParameters) -> Float[Array, " p"]:
    """Unknowns x of servo parameters; inverse of `unpack`."""
    kp, armature = servo.kp, servo.armature
    logarithms = np.log([kp, servo.damping / kp, servo.coulomb / kp, armature])
    per_joint = np.vstack([logarithms, servo.offset]).T
    limit = [np.log(servo.acceleration_limit)] if servo.acceleration_limit > 0 else []
    return np.concatenate([per_joint.ravel(), [servo.delay.mean()], limit])


def unpack(x: Float[Array, " p"]) -> ServoParameters:
    """Servo parameters of unknowns x."""
    joints = (len(x) - 1) // PER_JOINT
    per_joint, rest = np.split(x, [PER_JOINT * joints])
    *logarithms, offset = per_joint.reshape(joints, PER_JOINT).T
    kp, damping_ratio, coulomb_ratio, armature = np.exp(logarithms)
    return ServoParameters(
        *(kp, kp * damping_ratio, kp * coulomb_ratio, armature, offset.copy()),
        delay=np.full(joints, rest[0]),
        acceleration_limit=float(np.exp(rest[1])) if len(rest) > 1 else 0.0,
    )


def kernel_chain(servo: ServoParameters, size: int) -> Float[Array, "s p"]:
    """Derivative of the kernel's parameters by the unknowns."""
    joints = servo.joints
    out = np.zeros((6 * joints + 1, size))
    for j in range(joints):
        k, x = 6 * j, PER_JOINT * j
        out[k, x], out[k + 1, x], out[k + 2, x] = servo.kp[j], servo.damping[j], servo.coulomb[j]
        out[k + 1, x + 1], out[k + 2, x + 2] = servo.damping[j], servo.coulomb[j]
        out[k + 3, x + 3], out[k + 4, x + 4] = servo.armature[j], 1.0
        out[k + 5, PER_JOINT * joints] = 1.0
    if size > PER_JOINT * joints + 1:
        out[-1, -1] = servo.acceleration_limit
    return out


def servo_prior(
    start: Float[Array, " p"],
    half_step: float,
    kp_scatter: float,
    type_prior: ServoTypePrior | None = None,
) -> ServoPrior:
    """Prior of similar servos: a common value near that of the start, and each joint about it.

    The offsets have the truncation of the driver in common; coulomb/kp is near its start.

    Args:
        start: Unknowns of the linear fit.
        half_step: Half an encoder step [rad]: mean of minus the offset.
        kp_scatter: Relative std of kp among the joints; a larger one lets servos of several types
            differ in all parameters.
        type_prior: Prior of the servo type, or None.
    """
    joints = (len(start) - 1) // PER_JOINT
    last = PER_JOINT * joints
    mean, stds = start.copy(), [(common, max(joint, kp_scatter)) for common, joint in _LOG_STD]
    stds.append((TRUNCATION_STD * half_step, OFFSET_STD))
    for field in _POOLED:
        mean[field:last:PER_JOINT] = np.median(start[field:last:PER_JOINT])
    mean[4:last:PER_JOINT] = -half_step
    limit_std = _LIMIT_STD
    if type_prior is not None:
        mean[1:last:PER_JOINT] = np.log(type_prior.damping_ratio)
        stds[1] = (0.0, type_prior.damping_log_std)
        mean[last + 1 :] = np.log(type_prior.acceleration_limit)
        limit_std = type_prior.limit_log_std
    std = np.ones(len(start))
    std[last:] = np.array([_DELAY_STD, limit_std])[: len(start) - last]
    precision = np.diag(std**-2.0)
    for field, (common, joint) in enumerate(stds):
        index = np.arange(field, last, PER_JOINT)
        covariance = common**2 * np.ones((joints, joints)) + joint**2 * np.eye(joints)
        precision[np.ix_(index, index)] = np.linalg.inv(covariance)
    return ServoPrior(mean, precision)
