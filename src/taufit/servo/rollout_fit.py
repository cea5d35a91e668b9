"""Second stage: Gauss-Newton on roll-outs, from the linear fit.

Unknowns x: per joint ln kp, ln damping/kp, ln coulomb/kp, ln armature and the offset; then the
delay of all joints and, if fitted, ln of the acceleration limit. The cost is a Huber loss of
replayed minus measured positions plus a Gaussian prior with pooled gains of equal servos.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.servo.joint_axes import JointAxes
from taufit.servo.linear_fit import offset_std
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay, replay_slopes
from taufit.servo.servo_types import ServoTypePrior

# Chosen on seven training runs of one SO-101 by leaving runs out.
ERROR_STD = 4e-3  # scale of the replay error [rad]
HUBER = 3.0
INDEPENDENT_S = 1.0  # time between independent rows [s]
ROW_S = 0.05  # time between rows that are used [s]
WARM_UP_S = 0.5  # rows after the start at rest that are not used [s]
PER_JOINT = 5  # unknowns per joint
_LOG_STD = (1.0, 1.5, 1.5, 1.5)  # prior std of ln kp, damping/kp, coulomb/kp, armature
_DELAY_STD, _LIMIT_STD = 0.03, 1.0
# Relative spread of equal servos; coulomb/kp is not pooled.
_POOL = {0: 0.1, 1: 0.3, 3: 0.3}
START_LIMIT = 40.0  # rad/s^2
_LAST_STEP = 0.1  # largest change of an unknown by the last Newton step
_MIN_IMPROVEMENT = 0.002  # smallest decrease of the cost that is followed, in log likelihood


@dataclass(frozen=True, slots=True, eq=False)
class ServoPrior:
    """Gaussian prior of the unknowns.

    Attributes:
        mean: Prior mean of x.
        precision: Prior precision matrix of x.
    """

    mean: Float[Array, " p"]
    precision: Float[Array, "p p"]


@dataclass(frozen=True, slots=True, eq=False)
class RolloutFit:
    """Result of the second stage.

    Attributes:
        x: Unknowns at the optimum.
        servo: Parameters at the optimum.
        precision: Hessian of the cost, prior included.
        prior_precision: Share of the prior in `precision`.
        normal: J'WJ of every motion.
        gradient: J'Wr of every motion.
        slope: Gradient of the cost, prior included.
        cost: Robust cost at the optimum.
        iterations: Number of Gauss-Newton steps.
        simulated_gradient: `gradient` of simulated recordings of the fitted arm; zero without them.
    """

    x: Float[Array, " p"]
    servo: ServoParameters
    precision: Float[Array, "p p"]
    prior_precision: Float[Array, "p p"]
    normal: Float[Array, "u p p"]
    gradient: Float[Array, "u p"]
    slope: Float[Array, " p"]
    cost: float
    iterations: int
    simulated_gradient: Float[Array, "u p"]

    def without(self, units: Bool[Array, " u"]) -> ServoParameters:
        """Parameters without some motions, by one Newton step from the optimum."""
        precision = self.precision - self.normal[units].sum(axis=0)
        step = np.linalg.solve(precision, self.gradient[units].sum(axis=0))
        return unpack(self.x + np.clip(step, -1.0, 1.0), self.servo.joints)

    def data_covariance(self, run: Int[Array, " u"]) -> Float[Array, "p p"]:
        """Covariance of x by the data (sandwich), with motions as units.

        The mean of two covariances: of the recordings, whose motions differ in their bias too, and
        of the difference from simulated recordings of the fitted arm, which have the same bias and
        none of the errors of the model. Errors of motions of one run are alike: it is scaled by the
        median ratio, over the unknowns, of the variance with whole runs as units to that with
        motions.

        Args:
            run: Number of the run of every motion.
        """
        steps = np.linalg.solve(self.precision, self.gradient.T).T
        differences = steps - np.linalg.solve(self.precision, self.simulated_gradient.T).T
        run_differences = np.array([differences[run == k].sum(axis=0) for k in np.unique(run)])
        covariance, difference_covariance, run_covariance = (
            u.T @ u * len(u) / max(len(u) - 1, 1) for u in (steps, differences, run_differences)
        )
        ratio = float(np.median(np.diag(run_covariance) / np.diag(difference_covariance)))
        return np.asarray(0.5 * max(ratio, 1.0) * (covariance + difference_covariance))

    def prior_covariance(self) -> Float[Array, "p p"]:
        """Covariance of x that the prior leaves, as if the data had no noise."""
        inverse = np.linalg.inv(self.precision)
        return np.asarray(inverse @ self.prior_precision @ inverse)

    def without_bias(
        self, bias: Float[Array, " p"], simulated_gradient: Float[Array, "u p"]
    ) -> RolloutFit:
        """Fit corrected by the bias that simulated runs show, after a last Newton step."""
        step = np.linalg.solve(self.precision, self.slope)
        x = self.x - bias - np.clip(step, -_LAST_STEP, _LAST_STEP)
        servo = unpack(x, self.servo.joints)
        return replace(self, x=x, servo=servo, simulated_gradient=simulated_gradient)


def pack(servo: ServoParameters) -> Float[Array, " p"]:
    """Unknowns x of servo parameters; inverse of `unpack`."""
    per_joint = np.column_stack(
        [
            np.log(servo.kp),
            np.log(servo.damping / servo.kp),
            np.log(servo.coulomb / servo.kp),
            np.log(servo.armature),
            servo.offset,
        ]
    )
    limit = [np.log(servo.acceleration_limit)] if servo.acceleration_limit > 0 else []
    return np.concatenate([per_joint.ravel(), [servo.delay.mean()], limit])


def unpack(x: Float[Array, " p"], joints: int) -> ServoParameters:
    """Servo parameters of unknowns x."""
    per_joint = x[: PER_JOINT * joints].reshape(joints, PER_JOINT)
    kp = np.exp(per_joint[:, 0])
    rest = x[PER_JOINT * joints :]
    return ServoParameters(
        kp=kp,
        damping=kp * np.exp(per_joint[:, 1]),
        coulomb=kp * np.exp(per_joint[:, 2]),
        armature=np.exp(per_joint[:, 3]),
        offset=per_joint[:, 4].copy(),
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
    joints: int,
    half_step: float,
    type_prior: ServoTypePrior | None = None,
) -> ServoPrior:
    """Prior around a start value, with pooled gains.

    Args:
        start: Unknowns of the linear fit.
        joints: Number of joints.
        half_step: Half an encoder step [rad]: mean of minus the offset.
        type_prior: Prior of the servo type, or None.
    """
    mean, std = start.copy(), np.empty(len(start))
    for k in range(4):
        std[k : PER_JOINT * joints : PER_JOINT] = _LOG_STD[k]
    offset = slice(4, PER_JOINT * joints, PER_JOINT)
    mean[offset], std[offset] = -half_step, offset_std(half_step)
    std[PER_JOINT * joints] = _DELAY_STD
    std[PER_JOINT * joints + 1 :] = _LIMIT_STD
    if type_prior is not None:
        ratio = slice(1, PER_JOINT * joints, PER_JOINT)
        mean[ratio], std[ratio] = np.log(type_prior.damping_ratio), type_prior.damping_log_std
        limit = slice(PER_JOINT * joints + 1, None)
        mean[limit], std[limit] = np.log(type_prior.acceleration_limit), type_prior.limit_log_std
    precision = np.diag(1.0 / std**2)
    for field, spread in _POOL.items():
        index = np.arange(joints) * PER_JOINT + field
        precision[np.ix_(index, index)] += (np.eye(joints) - 1.0 / joints) / spread**2
    return ServoPrior(mean, precision)


def fit_rollouts(
    axes: JointAxes,
    motions: Sequence[CommandedMotion],
    valid: Sequence[Bool[Array, " _"]],
    start: ServoParameters,
    prior: ServoPrior,
    floor: Floor | None = None,
    *,
    iterations: int = 12,
    callback: Callable[[int, float], None] | None = None,
) -> RolloutFit:
    """Fit servo parameters to motions by Gauss-Newton with Levenberg-Marquardt damping.

    Args:
        axes: Arm with nominal links.
        motions: Motions, each replayed from its first measured pose.
        valid: Rows of each motion that count.
        start: First parameters; a positive acceleration limit is fitted, zero is kept.
        prior: Prior of the unknowns.
        floor: Floor in the roll-outs, or None.
        iterations: Largest number of steps.
        callback: Called with the number of the step and the cost.
    """
    masks = [used_rows(m, mask) for m, mask in zip(motions, valid, strict=True)]
    normal, gradient = np.zeros(()), np.zeros(())

    def equations(x: Float[Array, " p"]) -> tuple[Array, Array]:
        nonlocal normal, gradient
        normal, gradient = normal_equations(axes, x, motions, masks, floor)
        hessian = normal.sum(axis=0) + prior.precision
        return hessian, gradient.sum(axis=0) + prior.precision @ (x - prior.mean)

    def cost_of(x: Float[Array, " p"]) -> float:
        change = x - prior.mean
        cost = replay_cost(axes, unpack(x, axes.joints), motions, masks, floor)
        return cost + float(0.5 * change @ prior.precision @ change)

    x, cost, step = descend(pack(start), equations, cost_of, 1.0, iterations, callback)
    hessian, slope = equations(x)
    return RolloutFit(
        *(x, unpack(x, axes.joints), hessian, prior.precision, normal, gradient, slope, cost, step),
        np.zeros_like(gradient),
    )


def descend(
    x: Float[Array, " p"],
    equations: Callable[[Float[Array, " p"]], tuple[Array, Array]],
    cost_of: Callable[[Float[Array, " p"]], float],
    largest_step: float | Float[Array, " p"],
    iterations: int,
    callback: Callable[[int, float], None] | None = None,
) -> tuple[Float[Array, " p"], float, int]:
    """Minimise a cost by Gauss-Newton with Levenberg-Marquardt damping.

    Args:
        x: Start.
        equations: Hessian and gradient of the cost.
        cost_of: Cost.
        largest_step: Largest change of an unknown by one step.
        iterations: Largest number of steps.
        callback: Called with the number of the step and the cost.

    Returns:
        The minimum, its cost, and the number of steps.
    """
    damping, cost, step = 1e-3, cost_of(x), 0
    for step in range(1, iterations + 1):
        hessian, slope = equations(x)
        while damping < 1e6:
            scaled = hessian + damping * np.diag(np.diag(hessian))
            trial = x - np.clip(np.linalg.solve(scaled, slope), -largest_step, largest_step)
            trial_cost = cost_of(trial)
            if trial_cost < cost:
                break
            damping *= 10.0
        else:
            break
        improvement, x, cost = cost - trial_cost, trial, trial_cost
        damping = max(damping * 0.1, 1e-7)
        if callback is not None:
            callback(step, cost)
        if improvement < max(1e-4 * cost, _MIN_IMPROVEMENT):
            break
    return x, cost, step


def used_rows(motion: CommandedMotion, valid: Bool[Array, " n"]) -> Bool[Array, " n"]:
    """Valid rows after the warm-up, one every `ROW_S`."""
    mask = valid.copy()
    mask[: round(WARM_UP_S / motion.step)] = False
    rows = np.arange(len(mask)) % _stride(motion) == 0
    return np.asarray(mask & rows)


def _stride(motion: CommandedMotion) -> int:
    return max(1, round(ROW_S / motion.step))


def row_weight(motion: CommandedMotion) -> float:
    """Weight of a row: the fraction of it that is independent of the others."""
    return min(_stride(motion) * motion.step / INDEPENDENT_S, 1.0)


def replay_cost(
    axes: JointAxes,
    servo: ServoParameters,
    motions: Sequence[CommandedMotion],
    masks: Sequence[Bool[Array, " _"]],
    floor: Floor | None,
) -> float:
    """Robust cost of the replay errors."""
    total = 0.0
    for motion, mask in zip(motions, masks, strict=True):
        residual = np.abs((replay(axes, servo, motion, floor) - motion.position)[mask]) / ERROR_STD
        total += row_weight(motion) * float(_huber(residual).sum())
    return total


def _huber(residual: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return np.where(residual < HUBER, 0.5 * residual**2, HUBER * (residual - 0.5 * HUBER))


def normal_equations(
    axes: JointAxes,
    x: Float[Array, " p"],
    motions: Sequence[CommandedMotion],
    masks: Sequence[Bool[Array, " _"]],
    floor: Floor | None,
    slope_of: Callable[[CommandedMotion, Array], Array] | None = None,
) -> tuple[Float[Array, "u k k"], Float[Array, "u k"]]:
    """J'WJ and J'Wr of every motion.

    Args:
        axes, x, motions, masks, floor: Arm, unknowns, motions, their rows in use, and floor.
        slope_of: Slope of the positions of a motion by one further unknown, which comes last.
    """
    servo = unpack(x, axes.joints)
    chain = kernel_chain(servo, len(x))
    normal, gradient = [], []
    for motion, mask in zip(motions, masks, strict=True):
        position, slopes = replay_slopes(axes, servo, motion, floor)
        residual = ((position - motion.position)[mask] / ERROR_STD).ravel()
        columns = slopes[mask].reshape(len(residual), len(chain)) @ chain / ERROR_STD
        if slope_of is not None:
            further = slope_of(motion, position)[mask].ravel() / ERROR_STD
            columns = np.column_stack([columns, further])
        weight = row_weight(motion) * np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-12))
        normal.append((columns * weight[:, None]).T @ columns)
        gradient.append(columns.T @ (weight * residual))
    return np.array(normal), np.array(gradient)
