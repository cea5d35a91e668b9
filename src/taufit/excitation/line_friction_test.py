"""Friction test of all joints at once, within a budget of time.

All joints move along a line in joint space, there and back: at equal positions and accelerations
and opposite velocities the torque of the links is the same, so that half the difference is the
friction of every joint,

    friction_i = (tau_i(q, v, a) - tau_i(q, -v, a)) / 2.

Every joint is then measured during the whole budget, instead of its share of it.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.dynamics import inverse_dynamics
from taufit.excitation.scene import Clearances, Scene
from taufit.excitation.stroke_motion import LineStrokes, Strokes
from taufit.excitation.strokes import (
    FrictionTest,
    SpeedPlan,
    curve_sensitivity,
    relative_deviations,
    transfer_moves,
)
from taufit.robot import JointLimits, Robot

# Half length of the compared part of a stroke, travel over which friction builds up before it, and
# that of strokes faster than `_FAST_SPEED`, whose vibrations take longer to decay [rad].
_HALF_LENGTH, _RUN_IN, _FAST_RUN_IN, _FAST_SPEED = 0.22, 0.5, 0.9, 0.6
# Speed below which a joint is brought to the compared part by faster moves [rad/s].
_SLOW_SPEED = 0.2
# Constant speed before and after the compared part [s], at most 0.2 rad.
_SETTLING_S, _MAXIMUM_LEAD = 0.6, 0.2
# Tested speeds: slowest and fastest along the line [rad/s]; number of speeds by budget [min].
_SLOWEST, _FASTEST = np.radians(0.8), np.radians(60.0)
_SPEED_COUNTS = ((15.0, 9), (5.0, 7), (0.0, 5))
# Noise of a second of strokes relative to Coulomb friction, by torque side: a sensor behind the
# gear measures part of the friction only. Chosen on the presets `franka` and `ur5-warmup`.
_NOISE = {"motor": 0.02, "link": 0.3}
# Fraction of the limits of speed, acceleration and torque that the strokes use.
_LIMIT_FRACTION, _ACCELERATION_FRACTION = 0.9, 0.5
_MINIMUM_SCALE = 0.4
_POSES = 400


def friction_test_along_line(
    robot: Robot,
    limits: JointLimits,
    scene: Scene,
    *,
    minutes: float,
    start: Float[Array, " j"] | None = None,
    speeds: Float[Array, " s"] | None = None,
    seed: int = 0,
    required_std: float = 0.2,
) -> FrictionTest:
    """Plan strokes of all joints at once that last `minutes`.

    Args:
        robot: The robot.
        limits: Joint limits.
        scene: Obstacles and bodies.
        minutes: Duration [min].
        start: Middle of the line; default: a pose with much free space and load on the joints.
        speeds: Speeds along the line [rad/s]; default: five to nine by the budget.
        seed: Seed of the pose search.
        required_std: Relative standard deviation above which a term counts as not shown.
    """
    clearances = Clearances(robot, scene)
    reach = _HALF_LENGTH + _FAST_RUN_IN
    pose, direction = _find_line(robot, limits, clearances, reach, start, seed)
    size = np.abs(direction)
    acceleration = min(4.0, float(np.min(_ACCELERATION_FRACTION * limits.acceleration / size)))
    fastest = min(_FASTEST, float(np.min(_LIMIT_FRACTION * limits.velocity / size)))
    fastest = _within_torque(robot, limits, pose, direction, fastest, acceleration)
    if speeds is None:
        count = next(n for least, n in _SPEED_COUNTS if minutes >= least)
        speeds = np.geomspace(_SLOWEST, fastest, count)
    else:
        speeds = np.sort(np.asarray(speeds, float))
        speeds = speeds[speeds <= fastest * (1.0 + 1e-9)]
    if not len(speeds):
        raise InfeasibleError(f"all joints together can keep at most {fastest:.3g} rad/s here.")
    moves = _moves(speeds, acceleration, 60.0 * minutes)
    motion = LineStrokes(pose, direction, Strokes.of(np.zeros(1), [(0, *move) for move in moves]))
    compared_s = _compared_seconds(motion, speeds)
    noise = _NOISE.get(robot.drives.side, _NOISE["motor"])
    plans = []
    for i in range(robot.joints):
        joint_speeds = speeds * size[i]
        rows = curve_sensitivity(joint_speeds) * (np.sqrt(compared_s) / noise)[:, None]
        deviation = relative_deviations(rows)
        missing = tuple(name for name, x in deviation.items() if x > required_std)
        plans.append(SpeedPlan(i + 1, joint_speeds, deviation, missing))
    return FrictionTest(motion, pose, tuple(plans))


def _moves(
    speeds: Float[Array, " s"], acceleration: float, seconds: float
) -> list[tuple[float, float, float]]:
    """Moves (target, speed, acceleration) of the common path, equal time for every speed."""
    moves: list[tuple[float, float, float]] = []
    position = 0.0

    def go(target: float, speed: float | None = None) -> float:
        """Append a move, or hops that are too short for a constant speed; return its duration."""
        nonlocal position
        part = (
            transfer_moves(position, target, acceleration)
            if speed is None
            else [(target, speed, acceleration)]
        )
        relative = [(0, end - position, pace, limit) for end, pace, limit in part]
        duration = Strokes.of(np.array([position]), relative).duration if relative else 0.0
        moves.extend(part)
        position = target
        return duration

    remaining = seconds
    for number, speed in enumerate(speeds):
        share = remaining / (len(speeds) - number)
        used = 0.0
        while used < share - 1e-9:
            before = used
            for side in (1.0, -1.0):
                if speed < _SLOW_SPEED:
                    lead = min(_SETTLING_S * speed, _MAXIMUM_LEAD)
                    used += go(-side * (_HALF_LENGTH + _RUN_IN))
                    used += go(-side * (_HALF_LENGTH + lead))
                    used += go(side * (_HALF_LENGTH + lead), speed)
                else:
                    run_in = _FAST_RUN_IN if speed > _FAST_SPEED else _RUN_IN
                    if position != -side * (_HALF_LENGTH + run_in):
                        used += go(-side * (_HALF_LENGTH + run_in))
                    used += go(side * (_HALF_LENGTH + run_in), speed)
            if used + 0.5 * (used - before) > share:
                break
        remaining -= used
    go(0.0)
    return moves


def _compared_seconds(motion: LineStrokes, speeds: Float[Array, " s"]) -> Float[Array, " s"]:
    """Time of the compared parts of the strokes of each speed, one direction [s]."""
    path = motion.path
    counts = np.array([np.sum(np.isclose(path.speed, speed)) for speed in speeds])
    return counts * _HALF_LENGTH / speeds


def _find_line(
    robot: Robot,
    limits: JointLimits,
    clearances: Clearances,
    reach: float,
    start: Float[Array, " j"] | None,
    seed: int,
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Pose and direction of a clear line, as long as possible, with load on many joints.

    Random poses and signs are ranked by the smallest displacement per unit of the path (1 if every
    joint has room for `reach`), then by the median load relative to the torque limit.
    """
    rng = np.random.default_rng(seed)
    joints = robot.joints
    middle = 0.5 * (limits.lower + limits.upper)
    travel = np.minimum(0.8 * 0.5 * (limits.upper - limits.lower), np.pi)
    parameter = np.linspace(-1.0, 1.0, 41)[:, None]
    best: tuple[float, Array, Array] | None = None
    for k in range(_POSES):
        offset = rng.uniform(-1.0, 1.0, joints) * travel * (0.0 if k < 20 else 1.0)
        pose = middle + offset if start is None else np.asarray(start, float)
        sign = np.where(rng.uniform(size=joints) < 0.5, -1.0, 1.0)
        room = np.minimum(pose - limits.lower, limits.upper - pose)
        scale = np.minimum(1.0, 0.97 * room / reach)
        if scale.min() < _MINIMUM_SCALE:
            continue
        line = pose + parameter * (reach * sign * scale)
        clearance = float(clearances.values(line).min(initial=np.inf))
        if clearance < 0.0:
            continue
        still = np.zeros_like(line)
        load = np.abs(inverse_dynamics(robot, line, still, still)) / limits.torque
        merit = float(scale.min()) + float(np.median(np.nan_to_num(load).mean(axis=0)))
        if best is None or merit > best[0]:
            best = (merit, pose, sign * scale)
    if best is None:
        raise InfeasibleError(
            "no pose was found about which all joints can move together without touching anything. "
            "Loosen the cell, give a pose with --start, or leave --minutes out: one joint after "
            "the other needs less room."
        )
    return best[1], best[2]


def _within_torque(
    robot: Robot,
    limits: JointLimits,
    pose: Float[Array, " j"],
    direction: Float[Array, " j"],
    fastest: float,
    acceleration: float,
) -> float:
    """Highest speed at which the links' torque keeps within the limits on the whole line."""
    line = pose + np.linspace(-1.1, 1.1, 45)[:, None] * direction
    ramp = np.broadcast_to(acceleration * direction, line.shape)
    for speed in np.linspace(fastest, 0.1 * fastest, 19):
        velocity = np.broadcast_to(speed * direction, line.shape)
        torque = [np.abs(inverse_dynamics(robot, line, velocity, a)) for a in (ramp, -ramp)]
        if np.all(np.max(torque, axis=(0, 1)) <= _LIMIT_FRACTION * limits.torque):
            return float(speed)
    raise InfeasibleError(
        "moving all joints together exceeds a torque limit about this pose. Give another pose with "
        "--start, or leave --minutes out."
    )
