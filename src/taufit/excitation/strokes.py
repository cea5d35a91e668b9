"""Friction tests: one joint after the other forwards and backwards at constant speeds.

Forward and backward strokes pass the same positions at the same speed, so that half their torque
difference is friction alone. Speeds are planned: the fewest for which every coefficient of the
friction curve has an expected relative standard deviation below a limit.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.decompression_limits import limits_are_lifted
from taufit.core.errors import InfeasibleError
from taufit.excitation.motion_file import MAXIMUM_DURATION_S
from taufit.excitation.scene import Clearances, Scene
from taufit.excitation.stroke_motion import LineStrokes, Strokes
from taufit.robot import JointLimits, Robot
from taufit.terms import BREAKAWAY, TermInput, friction_model

# Constant speeds of paper F's friction tests [deg/s].
PAPER_SPEEDS_DEG = (
    *(0.1, 0.2, 0.4, 0.5, 0.8, 1, 1.2, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5, 5),
    *(6, 8, 10, 12, 15, 16, 20, 25, 30),
)
_MINIMUM_SPEED = 0.003
_TRANSFER_SPEED = 0.7
_MAXIMUM_HOP = 0.3
_RUN_IN_TRAVEL = 0.5
_SLOW_STROKE_SPEED = 0.2
_SETTLING_S = 0.6
_REPEATS = 3
_MINIMUM_TOTAL_S = 2.0
# By torque side: passes, and length factor of a stroke. A link-side sensor measures only part of
# the friction, with noise as large as that.
_PASSES = {"motor": 1, "link": 2}
_LENGTH_FACTOR = {"motor": 1.0, "link": 2.5}
# Nominal coefficients by power of speed, and of breakaway friction, for the plan.
_NOMINAL_COEFFICIENTS, _NOMINAL_BREAKAWAY = (1.0, 1.0, 0.3, 0.1), 1.4


@dataclass(frozen=True, slots=True, eq=False)
class SpeedPlan:
    """Speeds of one joint's friction test and their expected accuracy.

    Attributes:
        joint: Joint number, from 1.
        speeds: Magnitudes [rad/s], slow to fast.
        deviation: Expected relative standard deviation of each coefficient of a Stribeck curve.
        missing: Coefficients that stay above the required deviation with any speeds.
    """

    joint: int
    speeds: Float[Array, " s"]
    deviation: dict[str, float]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FrictionTest:
    """Friction test of several joints as one motion.

    Attributes:
        motion: Strokes about one pose, joint after joint or of all joints at once.
        pose: Pose of the other joints.
        plans: One per joint tested.
    """

    motion: Strokes | LineStrokes
    pose: Float[Array, " j"]
    plans: tuple[SpeedPlan, ...]


def plan_speeds(
    joint: int,
    fastest: float,
    *,
    required_std: float = 0.2,
    noise: float = 0.02,
    longest_s: float = 8.0,
    maximum_speeds: int = 18,
) -> SpeedPlan:
    """Plan the fewest speeds up to `fastest` that determine a joint's friction curve.

    Candidates are spaced evenly in logarithm. Starting from the slowest, the fastest and six in
    between, the speed that lowers the largest relative deviation most is added until all
    coefficients are below `required_std` or nothing helps any more.

    Args:
        joint: Joint number, from 1.
        fastest: Highest speed the joint can keep in this cell [rad/s].
        required_std: Required relative standard deviation of every coefficient.
        noise: Noise of a pair of strokes, relative to Coulomb friction, per root second of stroke.
        longest_s: Maximum duration of one stroke [s].
        maximum_speeds: Maximum number of speeds.
    """
    candidates = np.geomspace(min(_MINIMUM_SPEED, 0.2 * fastest), fastest, 28)
    seconds = np.clip(0.4 / candidates, 0.3, longest_s)
    rows = curve_sensitivity(candidates) * (np.sqrt(seconds) / noise)[:, None]

    def deviations(selected: list[int]) -> Float[Array, " t"]:
        return np.array(list(relative_deviations(rows[selected]).values()))

    selected = [int(i) for i in np.linspace(0, len(candidates) - 1, 8)]
    current = deviations(selected)
    while current.max() > required_std and len(selected) < maximum_speeds:
        remaining = [i for i in range(len(candidates)) if i not in selected]
        best = min(remaining, key=lambda i: float(deviations([*selected, i]).max()))
        extended = deviations([*selected, best])
        if extended.max() > 0.99 * current.max() and len(selected) > 10:
            break
        selected.append(best)
        current = extended
    deviation = relative_deviations(rows[selected])
    missing = tuple(name for name, x in deviation.items() if x > required_std)
    return SpeedPlan(joint, candidates[sorted(selected)], deviation, missing)


def curve_sensitivity(speeds: Float[Array, " s"]) -> Float[Array, "s t"]:
    """Change of a nominal Stribeck curve by relative changes of its coefficients and shapes.

    Friction is in units of Coulomb friction.
    """
    model = friction_model("stribeck")
    shape = np.array([0.02, min(0.05, 0.2 * float(speeds.max()))])
    nominal = np.array(
        [
            _NOMINAL_BREAKAWAY if item.group == BREAKAWAY else _NOMINAL_COEFFICIENTS[item.power]
            for item in model.parameters
        ]
    )
    inputs = TermInput(speeds)
    slopes = []
    for k in range(len(shape)):
        step = shape.astype(complex)
        step[k] += 1e-30j
        slopes.append((model.columns(inputs, step).imag / 1e-30) @ nominal * shape[k])
    return np.column_stack([model.columns(inputs, shape) * nominal, *slopes])


def relative_deviations(rows: Float[Array, "s t"]) -> dict[str, float]:
    """Expected relative standard deviation of each coefficient, from weighted sensitivities."""
    # A weak prior (every coefficient within a factor of ten) keeps the matrix regular.
    matrix = rows.T @ rows + 0.01 * np.eye(rows.shape[1])
    deviation = np.sqrt(np.diag(np.linalg.inv(matrix)))
    names = [term.name for term in friction_model("stribeck").parameters]
    return dict(zip(names, (float(x) for x in deviation), strict=False))


def friction_test(
    robot: Robot,
    limits: JointLimits,
    scene: Scene,
    *,
    joints: tuple[int, ...],
    start: Float[Array, " j"] | None = None,
    speeds: Float[Array, " s"] | None = None,
    passes: int | None = None,
    seed: int = 0,
) -> FrictionTest:
    """Plan strokes of several joints (numbers from 1), one after the other about one pose.

    The pose leaves every joint a wide free range; each joint's fastest speed follows from its free
    range and its acceleration.

    Args:
        robot: The robot.
        limits: Joint limits.
        scene: Obstacles and bodies.
        joints: Joint numbers, from 1.
        start: Pose; default: a pose with wide free ranges.
        speeds: Speeds [rad/s]; default: planned.
        passes: Repetitions of every stroke; default: 1, or 2 (and longer strokes) where torque is
            measured on the link side.
        seed: Seed of the pose search.
    """
    for joint in joints:
        if not 1 <= joint <= robot.joints:
            raise InfeasibleError(f"this arm has joints 1 to {robot.joints}, not {joint}.")
    passes = _PASSES.get(robot.drives.side, 1) if passes is None else passes
    clearances = Clearances(robot, scene)
    pose = _open_pose(robot, limits, clearances, joints, seed) if start is None else start
    plans, parts = [], []
    for joint in joints:
        i = joint - 1
        below, above = free_travel(limits, clearances, pose, i)
        room = below + above
        acceleration = min(10.0, 0.5 * float(limits.acceleration[i]))
        fastest = _maximum_speed(room, acceleration, 0.9 * float(limits.velocity[i]))
        if fastest < 0.02:
            raise InfeasibleError(
                f"joint {joint} has only {np.degrees(room):.0f} degrees free about this pose: too "
                "little for a friction test. Give another pose with --start."
            )
        if speeds is None:
            speed_plan = plan_speeds(joint, fastest)
        else:
            speed_plan = SpeedPlan(joint, np.sort(speeds[speeds <= fastest]), {}, ())
            if not len(speed_plan.speeds):
                raise InfeasibleError(
                    f"joint {joint} can keep at most {fastest:.3g} rad/s about this pose; no speed "
                    "that was given is that slow."
                )
        plans.append(speed_plan)
        parts.append(
            plan_strokes(
                speed_plan.speeds,
                acceleration=acceleration,
                room=room,
                middle=(above - below) / 2,
                length_factor=_LENGTH_FACTOR.get(robot.drives.side, 1.0),
                passes=passes,
            )
        )
    moves = [(joint - 1, *move) for joint, part in zip(joints, parts, strict=True) for move in part]
    motion = Strokes.of(pose, moves)
    if motion.duration > MAXIMUM_DURATION_S and not limits_are_lifted():
        raise InfeasibleError(
            f"a friction test of {len(joints)} joints with {passes} passes lasts "
            f"{motion.duration / 60:.0f} minutes; a motion may last {MAXIMUM_DURATION_S / 60:.0f}. "
            "Test some "
            "joints at a time (--joint, repeatable), give fewer --speeds or fewer --passes."
        )
    return FrictionTest(motion, pose, tuple(plans))


def free_travel(
    limits: JointLimits, clearances: Clearances, pose: Float[Array, " j"], joint: int
) -> tuple[float, float]:
    """Free travel of a joint down and up from a pose without collision, at most 1.6 [rad or m]."""
    ranges = []
    for sign, room in (
        (-1.0, pose[joint] - limits.lower[joint]),
        (1.0, limits.upper[joint] - pose[joint]),
    ):
        steps = np.linspace(0.0, min(0.98 * room, 1.6), 80)
        q = np.tile(pose, (len(steps), 1))
        q[:, joint] += sign * steps
        is_free = clearances.values(q).min(axis=1, initial=np.inf) >= 0
        ranges.append(
            float(steps[-1] if np.all(is_free) else steps[max(0, int(np.argmin(is_free)) - 1)])
        )
    return ranges[0], ranges[1]


def _maximum_speed(room: float, acceleration: float, limit: float) -> float:
    """Highest speed whose stroke (ramps and half a second of constant speed) fits into `room`."""
    # room = v (1/2 + 2 v/a)
    speed = acceleration / 4.0 * (np.sqrt(0.25 + 8.0 * room / acceleration) - 0.5)
    return float(min(speed, limit))


def _open_pose(
    robot: Robot, limits: JointLimits, clearances: Clearances, joints: tuple[int, ...], seed: int
) -> Float[Array, " j"]:
    """Random pose that maximises the smallest free range of the joints."""
    rng = np.random.default_rng(seed)
    middle = 0.5 * (limits.lower + limits.upper)
    travel = np.minimum(0.8 * 0.5 * (limits.upper - limits.lower), np.pi)
    q = middle + rng.uniform(-1.0, 1.0, size=(600, robot.joints)) * travel
    q = np.vstack([middle, q])
    space = clearances.values(q).min(axis=1, initial=0.2)
    best, largest_room = None, 0.0
    for k in np.argsort(-space)[:80]:
        if space[k] < 0:
            break
        room = min(sum(free_travel(limits, clearances, q[k], joint - 1)) for joint in joints)
        if room > largest_room:
            best, largest_room = q[k], room
    if best is None:
        raise InfeasibleError(
            "no pose was found from which these joints can move without touching anything. Loosen "
            "the cell or give a pose with --start."
        )
    return best


def plan_strokes(
    speeds: Float[Array, " s"],
    *,
    acceleration: float,
    room: float,
    middle: float = 0.0,
    stroke: float = 0.4,
    longest_s: float = 8.0,
    length_factor: float = 1.0,
    passes: int = 1,
) -> list[tuple[float, float, float]]:
    """Moves (target, speed, acceleration) of forward and backward strokes at every speed.

    A slow stroke is cut to what fits in `longest_s` and approached in its own direction from 0.5
    rad away, as far as there is room, so that pre-sliding friction has built up; a faster one
    begins that much earlier and ends that much later. Fast ones last two seconds if there is room,
    at least half a second, and are repeated up to three times until they have lasted that long in
    all. Lengths and times are multiplied by `length_factor`, and all of it is repeated `passes`
    times. The moves start and end at 0.
    """
    stroke, longest_s, least_s = (
        length_factor * stroke,
        length_factor * longest_s,
        length_factor * _MINIMUM_TOTAL_S,
    )
    ramp_lengths = 2.0 * speeds**2 / acceleration
    minimum_lengths = 0.5 * speeds + ramp_lengths
    slow_length = min(stroke, max(0.5 * stroke, room - 2.0 * _RUN_IN_TRAVEL))
    # One long stroke needs fewer reversals than several short ones.
    single_length = np.minimum(least_s * speeds + ramp_lengths, room - 2.0 * _RUN_IN_TRAVEL)
    slow = np.minimum(slow_length, speeds * longest_s)
    lengths = np.minimum(np.maximum(np.maximum(slow, single_length), minimum_lengths), room)
    moves: list[tuple[float, float, float]] = []
    position = 0.0
    for speed, length, ramp_length in zip(speeds, lengths, ramp_lengths, strict=True):
        low, high = middle - 0.5 * length, middle + 0.5 * length
        run_in = min(_RUN_IN_TRAVEL, 0.5 * (room - length))
        slow = speed < _SLOW_STROKE_SPEED and run_in > 0.05
        if slow:
            # Positions passed before vibrations decay are passed in one direction only, so unused.
            lead = min(_SETTLING_S * speed, run_in)
            path = [(low - run_in, None), (low - lead, None), (high, speed)]
            path += [(high + run_in, None), (high + lead, None), (low, speed)]
        else:
            path = [(low - run_in, None), (high + run_in, speed), (low - run_in, speed)]
        duration = max(0.3, (length - ramp_length) / speed)
        repeats = 1 if slow else int(np.clip(np.ceil(least_s / duration), 1, _REPEATS))
        for target, stroke_speed in passes * repeats * path:
            if stroke_speed is None:
                moves += transfer_moves(position, target, acceleration)
            else:
                moves.append((target, stroke_speed, acceleration))
            position = target
    return [*moves, *transfer_moves(position, 0.0, acceleration)]


def transfer_moves(
    start: float, target: float, acceleration: float
) -> list[tuple[float, float, float]]:
    """Moves between strokes, too short for constant speed that could be taken for a stroke."""
    count = max(1, int(np.ceil(abs(target - start) / _MAXIMUM_HOP - 1e-9)))
    hop = max(abs(target - start) / count, 1e-9)
    pace = min(_TRANSFER_SPEED, float(np.sqrt(0.5 * acceleration * hop)))
    ends = np.linspace(start, target, count + 1)[1:]
    return [(float(end), pace, 2.0 * pace**2 / hop) for end in ends]


def friction_strokes(
    robot: Robot,
    joint: int,
    speeds: Float[Array, " s"],
    *,
    pose: Float[Array, " j"],
    stroke: float = 0.4,
    acceleration: float = 4.0,
    longest_s: float = 20.0,
) -> Strokes:
    """Strokes of one joint (from 0) about a pose at given speeds, the others standing.

    Args:
        robot: The robot, for its limits.
        joint: Moving joint, from 0.
        speeds: Magnitudes [rad/s].
        pose: Pose of the other joints and middle of the strokes.
        stroke: Length of a slow stroke [rad].
        acceleration: Acceleration of the ramps [rad/s^2].
        longest_s: Maximum duration of one stroke [s].
    """
    speeds = np.asarray(speeds, float)
    if not (np.all(np.isfinite(speeds)) and np.all(speeds > 0) and len(speeds)):
        raise InfeasibleError("friction strokes need positive speeds.")
    if np.any(speeds > robot.limits.velocity[joint]):
        raise InfeasibleError(
            f"a stroke at {speeds.max():.3g} rad/s is faster than joint {joint + 1} may move "
            f"({robot.limits.velocity[joint]:.3g} rad/s)."
        )
    moves = plan_strokes(
        speeds,
        acceleration=acceleration,
        room=max(stroke, float(np.max(speeds * (0.5 + 2.0 * speeds / acceleration)))),
        stroke=stroke,
        longest_s=longest_s,
    )
    targets = np.array([target for target, _, _ in moves])
    low, high = robot.limits.lower[joint], robot.limits.upper[joint]
    if pose[joint] + targets.min() < low or pose[joint] + targets.max() > high:
        raise InfeasibleError(
            f"strokes of {stroke:.3g} rad about {pose[joint]:.3g} leave the range of joint "
            f"{joint + 1} [{low:.3g}, {high:.3g}]; give another pose or a shorter stroke."
        )
    return Strokes.of(np.asarray(pose, float), [(joint, *move) for move in moves])
