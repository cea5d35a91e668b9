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
from dataclasses import dataclass, replace

import numpy as np

from taufit.arrays import Array, Bool, Float, Int
from taufit.errors import RecordingError, RobotError
from taufit.friction import Compensated
from taufit.friction.compensated import balance_torque, compensated
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.selection.friction_terms import correlation_samples, gaussian_prior
from taufit.signals.sample_source import SampleSource
from taufit.signals.samples import Samples

# Of turning joints [rad], and of sliding ones [m].
EXPECTED_STD: float = float(np.radians(1.0))
EXPECTED_SLIDE_STD = 5e-3
_MOST_ROWS = 3000
_ROUNDS = 8
# Step of the central difference, and the step below which the search has ended [rad or m].
_SLOPE, _SETTLED = 1e-4, 1e-6
# A zero whose standard deviation is still this share of the expected one was not shown.
_SHOWN = 0.7
# Zeros further off are no misalignment: another pose, or another arm [rad], [m].
_FAR, _FAR_SLIDE = float(np.radians(15.0)), 0.1


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


def found_zeros(
    model: TorqueModel,
    source: SampleSource,
    wanted: str | Sequence[str] | None,
    expected_std: float = EXPECTED_STD,
    expected_slide_std: float = EXPECTED_SLIDE_STD,
) -> JointZeros | None:
    """Zeros of the joints asked for; None where none is."""
    if not wanted:
        return None
    joints = joint_numbers(model.robot, wanted)
    samples = source.excerpt
    if samples.signed is not None and not np.all(samples.signed):
        raise RecordingError(
            "joint zeros need torque with its sign. Fit without them, or record signed torque."
        )
    return estimate_joint_zeros(
        model, samples, joints, expected_std=expected_std, expected_slide_std=expected_slide_std
    )


def with_zeros(model: TorqueModel, zeros: Float[Array, " j"]) -> TorqueModel:
    """The model of the same arm with other zeros, its compensators included."""
    robot = model.robot.with_joint_zeros(zeros)
    friction = model.friction
    if isinstance(friction, Compensated):
        friction = replace(friction, compensators=robot.compensators)
    return replace(model, robot=robot, friction=friction)


def estimate_joint_zeros(
    model: TorqueModel,
    samples: Samples,
    joints: Sequence[int] | None = None,
    *,
    expected_std: float = EXPECTED_STD,
    expected_slide_std: float = EXPECTED_SLIDE_STD,
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
    rows = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
    if len(rows) < 20 * robot.joints:
        raise RecordingError(
            f"joint zeros need motion; {len(rows)} samples of this recording move. Record a motion "
            "in which all joints accelerate and reverse (`taufit design`)."
        )
    told = chosen[~np.isin(chosen, hidden_joints(robot))]
    search = _Search(model, samples, rows[:: -(-len(rows) // _MOST_ROWS)], told, expected)
    found = search.run()
    searched = np.isin(np.arange(robot.joints), chosen)
    std = np.where(searched & ~found.searched, expected, found.std)
    return replace(found, std=std, searched=searched)


def hidden_joints(robot: Robot) -> tuple[int, ...]:
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


def _refuse_far(robot: Robot, moved: Float[Array, " j"]) -> None:
    """RecordingError where a zero has gone further than any misalignment."""
    slides = [link.prismatic for link in robot.links]
    share = np.abs(moved) / np.where(slides, _FAR_SLIDE, _FAR)
    worst = int(np.argmax(share))
    if share[worst] <= 1.0:
        return
    limit = f"{1e3 * _FAR_SLIDE:.0f} mm" if slides[worst] else f"{np.degrees(_FAR):.0f} deg"
    raise RecordingError(
        f"the zero of {robot.joint_names[worst]} would be more than {limit} off: this is another "
        "pose, sign or arm, or the motion does not show it. Correct the position offset in the "
        "column map first."
    )


class _Search:
    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        rows: Int[Array, " n"],
        chosen: Int[Array, " c"],
        expected_std: Float[Array, " j"],
    ) -> None:
        self.model, self.chosen, self.expected_std = model, chosen, expected_std
        self.motion = samples.position[rows], samples.velocity[rows], samples.acceleration[rows]
        self.keep, self.run_of = samples.keep[rows], samples.run[rows]
        self.torque = np.where(self.keep, samples.torque[rows], 0.0)
        load = np.where(np.isfinite(samples.torque), samples.torque, 0.0)
        self._samples, self._rows, self._load = samples, rows, load
        self.rest = self._rest(model)
        self.scale = np.maximum(self.torque.std(axis=0), 1e-9)
        prior, self.nominal, _ = gaussian_prior(model)
        self.prior = prior if np.any(model.robot.parameters) else np.zeros_like(prior)
        # Rows over independent ones; residuals of neighbouring rows are correlated.
        self.apart = 1.0

    def run(self) -> JointZeros:
        robot, start = self.model.robot, self._known()
        zeros, values = start.copy(), np.zeros(self.model.layout.size)
        covariance = np.zeros((len(self.chosen), len(self.chosen)))
        for turn in range(_ROUNDS):
            columns = self._columns(zeros)
            if turn == 0:
                values = self._solved(columns, self.rest[..., :0], np.zeros(0))[0]
            slopes = self._slopes(zeros, values)
            values, step, covariance = self._solved(columns, slopes, (zeros - start)[self.chosen])
            self._weigh(columns @ values + slopes @ step)
            zeros[self.chosen] += step
            _refuse_far(robot, zeros - start)
            if turn > 1 and np.abs(step).max(initial=0.0) < _SETTLED:
                break
        std = np.zeros(robot.joints)
        std[self.chosen] = np.sqrt(np.diag(covariance))
        searched = np.isin(np.arange(robot.joints), self.chosen)
        shown = searched & (std < _SHOWN * self.expected_std)
        zeros = np.where(searched & ~shown, start, zeros)
        return JointZeros(zeros, std, shown, self.expected_std, searched)

    def _columns(self, zeros: Float[Array, " j"]) -> Float[Array, "n j p"]:
        """W with the joints' frames where these zeros put them."""
        q, v, a = self.motion
        if compensated(self.model.friction) is not None:
            self.rest = self._rest(self._moved(zeros))
        return np.concatenate(
            [self.model.columns.links(q + zeros - self._known(), v, a), self.rest], -1
        )

    def _rest(self, model: TorqueModel) -> Float[Array, "n j m"]:
        motor = model.columns.friction_at(self._samples, load=self._load)[self._rows]
        return model.columns.rest(self.motion[2], motor)

    def _moved(self, zeros: Float[Array, " j"]) -> TorqueModel:
        return with_zeros(self.model, zeros)

    def _known(self) -> Float[Array, " j"]:
        """Zeros that the robot's own frames contain."""
        own = self.model.robot.joint_zeros
        return np.array(own) if own else np.zeros(self.model.robot.joints)

    def _slopes(
        self, zeros: Float[Array, " j"], values: Float[Array, " p"]
    ) -> Float[Array, "n j c"]:
        """d tau / d q_k of the links."""
        q, v, a = self.motion
        links = values[self.model.layout.links]
        at = q + zeros - self._known()
        out = np.empty((*q.shape, len(self.chosen)))
        for c, k in enumerate(self.chosen):
            step = np.zeros(q.shape[1])
            step[k] = _SLOPE
            above, below = (
                self.model.columns.links(at + side * step, v, a) @ links for side in (1.0, -1.0)
            )
            out[..., c] = (above - below) / (2.0 * _SLOPE)
        moved = self._moved(zeros)
        own = moved.layout.split(values).friction
        for joint, torque in balance_torque(moved.friction, own).items():
            above, below = (torque(q[:, joint] + side * _SLOPE) for side in (1.0, -1.0))
            slope = (above - below) / (2.0 * _SLOPE)
            out[:, joint, self.chosen == joint] += slope[:, None]
        return out

    def _solved(
        self,
        columns: Float[Array, "n j p"],
        slopes: Float[Array, "n j c"],
        moved: Float[Array, " c"],
    ) -> tuple[Float[Array, " p"], Float[Array, " c"], Float[Array, "c c"]]:
        """Parameters, the step of the zeros and the zeros' covariance."""
        whole = np.concatenate([columns, slopes], -1)
        p, size = columns.shape[-1], whole.shape[-1]
        square, right = np.zeros((size, size)), np.zeros(size)
        for j, scale in enumerate(self.scale):
            own = whole[self.keep[:, j], j] / scale
            square += own.T @ own
            right += own.T @ (self.torque[self.keep[:, j], j] / scale)
        square, right = square / self.apart, right / self.apart
        # The nominal links to about their own size: what no motion shows stays sensible.
        square[:p, :p] += self.prior
        right[:p] += self.prior @ self.nominal
        expected = np.zeros(size)
        if size > p:
            expected[p:] = 1.0 / self.expected_std[self.chosen] ** 2
        square += np.diag(expected)
        right[p:] -= expected[p:] * moved
        unit = np.sqrt(np.diag(square))
        unit[unit == 0.0] = 1.0
        scaled = square / np.outer(unit, unit)
        # Columns that depend on each other share what they explain.
        scaled[np.diag_indices(size)] += 1e-10
        inverse = np.linalg.inv(scaled) / np.outer(unit, unit)
        found = inverse @ right
        return found[:p], found[p:], inverse[p:, p:]

    def _weigh(self, explained: Float[Array, "n j"]) -> None:
        """Joints by their residuals, rows by how many are independent."""
        left = np.where(self.keep, self.torque - explained, 0.0)
        count = np.maximum(self.keep.sum(axis=0), 1)
        floor = 1e-6 * np.maximum(self.torque.std(axis=0), 1e-9)
        self.scale = np.maximum(np.sqrt(np.sum(left**2, axis=0) / count), floor)
        self.apart = max(float(np.mean(correlation_samples(left, self.keep, self.run_of))), 1.0)
