"""Where the joints' zeros are: positions that every encoder is off by, from motion and torque.

    tau = W(q + zero, v, a) theta

is linear in theta and, for small zeros, in the zeros too: their columns are the slopes of the
torque with each position, d tau / d q_k, at the parameters found so far. A few rounds of both
together (Gauss-Newton) move the arm's frames until no step is left.

Some zeros cannot be told from torque whatever the motion. About a vertical first axis gravity is
the same from every side, and a shift of the last joint is a turn of the last link's own parameters.
Such zeros stay at what is expected of them, with its standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.calibration.zero_search import ZeroSearch
from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError, RobotError
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import DEFAULT_SLIDE_ZERO_STD, DEFAULT_ZERO_STD
from taufit.robot import Robot
from taufit.signals.sample_source import SampleSource
from taufit.signals.samples import Samples

# A zero whose standard deviation is still this share of the expected one was not shown.
_SHOWN = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class JointZeros:
    """Zeros of the joints.

    Attributes:
        values: Added to recorded positions [rad or m].
        std: Standard deviation; that of the expectation where the motion says nothing.
        shown: Which of them the recording determines; those not asked for are not.
        expected_std: What was expected of each before [rad or m].
        searched: Which were asked for.
    """

    values: Float[Array, " j"]
    std: Float[Array, " j"]
    shown: Bool[Array, " j"]
    expected_std: Float[Array, " j"]
    searched: Bool[Array, " j"]

    def hidden(self, robot: Robot) -> tuple[str, ...]:
        """Joints whose zero was asked for and is not identifiable."""
        return tuple(robot.joint_names[k] for k in np.flatnonzero(self.searched & ~self.shown))

    def warnings(self, robot: Robot) -> tuple[str, ...]:
        """What of this a user has to know."""
        hidden = self.hidden(robot)
        if not hidden:
            return ()
        return (
            f"the zero of {', '.join(hidden)} is not identifiable from this motion and is left "
            "where it was: the first joint's is hidden when its axis is vertical or slides, the "
            "last joint's always. Others need a motion in which the joints before and behind "
            "accelerate.",
        )


def joint_numbers(robot: Robot, wanted: str | Sequence[str]) -> tuple[int, ...]:
    """Joints by name or number from 1; "all" is every one."""
    parts = [part.strip() for part in wanted.split(",")] if isinstance(wanted, str) else wanted
    if list(parts) == ["all"]:
        return tuple(range(robot.joints))
    known = {name: k for k, name in enumerate(robot.joint_names)}
    known.update({str(k + 1): k for k in range(robot.joints) if str(k + 1) not in known})
    strange = [part for part in parts if part not in known]
    if strange or not parts:
        raise RobotError(
            f"{robot.name} has no joint {strange[0] if strange else ''!r}: use all, or some of "
            f"{', '.join(robot.joint_names)}."
        )
    return tuple(dict.fromkeys(known[part] for part in parts))


def estimate_requested_zeros(
    model: TorqueModel,
    source: SampleSource,
    wanted: str | Sequence[str],
    expected_std: float = DEFAULT_ZERO_STD,
    expected_slide_std: float = DEFAULT_SLIDE_ZERO_STD,
) -> JointZeros:
    """Zeros of the joints asked for."""
    joints = joint_numbers(model.robot, wanted)
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
    """Zeros that explain the torque best, together with all other parameters of the model.

    Args:
        model: Robot and friction; zeros the robot has already are where the search begins.
        samples: Conditioned motion and torque.
        joints: Those whose zero is unknown, from 0; by default all.
        expected_std: Standard deviation of a zero before anything is measured [rad].
        expected_slide_std: The same of joints that slide [m].

    Raises:
        RecordingError: Too little motion, or zeros too far off for a search of this kind.
    """
    robot = model.robot
    chosen = np.arange(robot.joints) if joints is None else np.array(sorted(joints), int)
    if not (expected_std > 0.0 and expected_slide_std > 0.0):
        raise RobotError("the expected standard deviation of joint zeros must be above 0.")
    slides = np.array([link.prismatic for link in robot.links])
    expected = np.where(slides, expected_slide_std, expected_std)
    moving = int(np.count_nonzero(samples.in_motion & samples.keep.any(axis=1)))
    if moving < 20 * robot.joints:
        raise RecordingError(
            f"joint zeros need motion; {moving} samples of this recording move. Record a motion "
            "in which all joints accelerate and reverse (`taufit design`)."
        )
    told = chosen[~np.isin(chosen, joints_with_unobservable_zero(robot))]
    found = ZeroSearch(model, samples, tuple(told), expected).run()
    searched = np.isin(np.arange(robot.joints), chosen)
    std = np.where(searched, expected, 0.0)
    std[told] = np.sqrt(np.diag(found.covariance))
    shown = np.isin(np.arange(robot.joints), told) & (std < _SHOWN * expected)
    own = np.array(robot.joint_zeros) if robot.joint_zeros else np.zeros(robot.joints)
    return JointZeros(np.where(shown, found.zeros, own), std, shown, expected, searched)


def joints_with_unobservable_zero(robot: Robot) -> tuple[int, ...]:
    """Joints whose zero no torque shows.

    The last one, since its shift is another choice of the last link's parameters. Sliding joints
    that come first, since dynamics are the same everywhere. The first turning joint, where it and
    all that slide before it are vertical.
    """
    out, turned, upright = {robot.joints - 1}, np.eye(3), True
    down = robot.gravity / np.linalg.norm(robot.gravity)
    for k, link in enumerate(robot.links):
        turned = turned @ link.placement[:3, :3]
        axis = turned @ (link.screw[3:] if link.prismatic else link.screw[:3])
        upright = upright and bool(np.linalg.norm(np.cross(axis, down)) < 1e-9)
        if link.prismatic or upright:
            out.add(k)
        if not link.prismatic:
            break
    return tuple(sorted(out))
