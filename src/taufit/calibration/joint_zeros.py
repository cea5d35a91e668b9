"""Joint zero offsets, the position errors of the encoders, from motion and torque.

    tau = W(q + zero, v, a) theta

is linear in theta and, for small zeros, in the zeros too: their columns are the derivatives
d tau / d q_k at the current parameters. A few Gauss-Newton steps of both together move the joint
frames until they converge.

Some zeros are not identifiable from torque, whatever the motion: of a vertical first axis, since
gravity is symmetric about it, and of the last joint, since its offset is a rotation of the
parameters of the last link. Such zeros keep their prior mean and standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.calibration.zero_search import ZeroSearch
from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, RobotError
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import DEFAULT_SLIDE_ZERO_STD, DEFAULT_ZERO_STD
from taufit.robot import Robot
from taufit.signals.sample_source import SampleSource
from taufit.signals.samples import Samples

# A zero is identifiable if its standard deviation is below this fraction of the prior one.
_IDENTIFIABLE_FRACTION = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class JointZeros:
    """Joint zero offsets.

    Attributes:
        values: Offsets added to recorded positions [rad or m].
        std: Standard deviation; that of the prior if not identifiable [rad or m].
        identifiable: True if requested and identifiable from the recording.
        expected_std: Prior standard deviation [rad or m].
        requested: True if requested.
    """

    values: Float[Array, " j"]
    std: Float[Array, " j"]
    identifiable: Bool[Array, " j"]
    expected_std: Float[Array, " j"]
    requested: Bool[Array, " j"]

    def unidentifiable_joints(self, robot: Robot) -> tuple[str, ...]:
        """Joints whose zero was requested and is not identifiable."""
        return tuple(
            robot.joint_names[k] for k in np.flatnonzero(self.requested & ~self.identifiable)
        )

    def warnings(self, robot: Robot) -> tuple[str, ...]:
        """Messages for the user."""
        names = self.unidentifiable_joints(robot)
        if not names:
            return ()
        return (
            f"the zero of {', '.join(names)} is not identifiable from this motion and is left "
            "where it was: the first joint's is hidden when its axis is vertical or slides, the "
            "last joint's always. Others need a motion in which the joints before and behind "
            "accelerate.",
        )


def joint_numbers(robot: Robot, requested: str | Sequence[str]) -> tuple[int, ...]:
    """Joint indices by name or number from 1; "all" gives every joint."""
    parts = (
        [part.strip() for part in requested.split(",")] if isinstance(requested, str) else requested
    )
    if list(parts) == ["all"]:
        return tuple(range(robot.joints))
    index_by_name = {name: k for k, name in enumerate(robot.joint_names)}
    index_by_name.update(
        {str(k + 1): k for k in range(robot.joints) if str(k + 1) not in index_by_name}
    )
    unknown_names = [part for part in parts if part not in index_by_name]
    if unknown_names or not parts:
        raise RobotError(
            f"{robot.name} has no joint {unknown_names[0] if unknown_names else ''!r}: use all, or "
            "some of "
            f"{', '.join(robot.joint_names)}."
        )
    return tuple(dict.fromkeys(index_by_name[part] for part in parts))


def estimate_requested_zeros(
    model: TorqueModel,
    source: SampleSource,
    requested: str | Sequence[str],
    expected_std: float = DEFAULT_ZERO_STD,
    expected_slide_std: float = DEFAULT_SLIDE_ZERO_STD,
) -> JointZeros:
    """Estimate the zeros of the requested joints."""
    joints = joint_numbers(model.robot, requested)
    samples = source.excerpt
    if samples.signed is not None and not np.all(samples.signed):
        raise RecordingError(
            "joint zeros need torque with its sign. Fit without them, or record signed torque."
        )
    return estimate_joint_zeros(
        model, samples, joints, expected_std=expected_std, expected_slide_std=expected_slide_std
    )


def estimate_joint_zeros(
    model: TorqueModel,
    samples: Samples,
    joints: Sequence[int] | None = None,
    *,
    expected_std: float = DEFAULT_ZERO_STD,
    expected_slide_std: float = DEFAULT_SLIDE_ZERO_STD,
) -> JointZeros:
    """Estimate joint zeros together with all other parameters of the model.

    Args:
        model: Robot and friction; the search starts at the zeros of the robot.
        samples: Conditioned motion and torque.
        joints: Joints whose zero is unknown, from 0; default: all.
        expected_std: Prior standard deviation of the zero of a revolute joint [rad]. Larger
            values let the data decide more.
        expected_slide_std: Prior standard deviation for prismatic joints [m].

    Raises:
        RecordingError: Too little motion, or zeros too large for a local search.
    """
    robot = model.robot
    robot.require_serial("an estimate of joint zeros")
    requested_joints = np.arange(robot.joints) if joints is None else np.array(sorted(joints), int)
    if not (expected_std > 0.0 and expected_slide_std > 0.0):
        raise RobotError("the expected standard deviation of joint zeros must be above 0.")
    is_prismatic = robot.is_prismatic
    prior_std = np.where(is_prismatic, expected_slide_std, expected_std)
    moving = int(np.count_nonzero(samples.in_motion & samples.keep.any(axis=1)))
    if moving < 20 * robot.joints:
        raise RecordingError(
            f"joint zeros need motion; {moving} samples of this recording move. Record a motion "
            "in which all joints accelerate and reverse (`taufit design`)."
        )
    searched = requested_joints[~np.isin(requested_joints, joints_with_unobservable_zero(robot))]
    result = ZeroSearch(model, samples, tuple(searched), prior_std).run()
    is_requested = np.isin(np.arange(robot.joints), requested_joints)
    std = np.where(is_requested, prior_std, 0.0)
    std[searched] = np.sqrt(np.diag(result.covariance))
    identifiable = np.isin(np.arange(robot.joints), searched) & (
        std < _IDENTIFIABLE_FRACTION * prior_std
    )
    nominal_zeros = np.array(robot.joint_zeros) if robot.joint_zeros else np.zeros(robot.joints)
    return JointZeros(
        np.where(identifiable, result.zeros, nominal_zeros),
        std,
        identifiable,
        prior_std,
        is_requested,
    )


def joints_with_unobservable_zero(robot: Robot) -> tuple[int, ...]:
    """Joints whose zero has no effect on torque.

    The last one, since its offset is equivalent to other parameters of the last link. Leading
    prismatic joints, since the dynamics do not depend on their position. The first revolute joint,
    if it and all prismatic joints before it are vertical.
    """
    joints, rotation, is_vertical = {robot.joints - 1}, np.eye(3), True
    down = robot.gravity / np.linalg.norm(robot.gravity)
    for k, link in enumerate(robot.links):
        rotation = rotation @ link.placement[:3, :3]
        axis = rotation @ (link.screw[3:] if link.is_prismatic else link.screw[:3])
        is_vertical = is_vertical and bool(np.linalg.norm(np.cross(axis, down)) < 1e-9)
        if link.is_prismatic or is_vertical:
            joints.add(k)
        if not link.is_prismatic:
            break
    return tuple(sorted(joints))
