"""Planning of all kinds of motion: `plan("validation", robot)`.

identification   excites the base parameters of the model
validation       other frequency and starts: a motion independent of the training motion
payload          wide slow arm, fast wrist: mass and centre of mass of a payload
payload-inertia  wrist motion that identifies the moments of inertia of a payload
friction-test    constant-speed strokes, joint after joint
warm-up          swings of all joints
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.excitation.basis import Basis, FourierBasis, SplineBasis
from taufit.excitation.design import (
    DELTA1,
    Design,
    default_limits,
    design_in_parallel,
    find_free_pose,
)
from taufit.excitation.motion import Motion
from taufit.excitation.motion_kinds import (
    limit_arm_speed,
    payload_columns,
    prior_information,
    warm_up,
)
from taufit.excitation.payload_inertia import InertiaGoal, InertiaPlan, plan_inertia
from taufit.excitation.scene import Scene, mounting_plane, scene_for
from taufit.excitation.strokes import FrictionTest, friction_test
from taufit.model.torque_model import TorqueModel
from taufit.robot import JointLimits, Robot
from taufit.terms import friction_model

CLEARANCE = 0.02


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """Budget and seed of a search.

    Attributes:
        seconds: Budget as CPU seconds of a usual machine (170 evaluations each). More gives a
            better motion.
        iterations: Budget in evaluations, instead of `seconds`.
        seed: Seed of the random starts.
        workers: Processes to search in, each with this budget.
        progress: Called with (fraction of the budget, best criterion).
    """

    seconds: float = 3.0
    iterations: int | None = None
    seed: int = 0
    workers: int = 1
    progress: Callable[[float, float], object] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Planned motion of a kind.

    Attributes:
        kind: One of KINDS.
        motion: Motion to play.
        limits: Joint limits it was planned with.
        design: Result of the search; None for motions without one.
        friction_test: Speeds and pose of a friction test.
        inertia: Expected accuracy of a payload's inertia and the duration.
    """

    kind: str
    motion: Motion
    limits: JointLimits
    design: Design | None = None
    friction_test: FrictionTest | None = None
    inertia: InertiaPlan | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _PlanRequest:
    robot: Robot
    model: TorqueModel
    criterion: str
    basis: Basis
    limits: JointLimits
    jerk: float
    scene: Scene
    start: Float[Array, " j"] | None
    earlier: Sequence[Motion]
    effort: SearchEffort = field(default_factory=SearchEffort)
    joints: tuple[int, ...] = ()
    speeds: Float[Array, " s"] | None = None
    passes: int | None = None
    minutes: float | None = None
    inertia: InertiaGoal = field(default_factory=InertiaGoal)
    delta1: float = DELTA1
    delta2: float = np.inf


def plan(  # noqa: PLR0913 - the public call has one keyword per choice
    kind: str,
    robot: Robot,
    *,
    model: TorqueModel | None = None,
    criterion: str = "a",
    basis: Basis | None = None,
    limits: JointLimits | None = None,
    jerk: float = np.inf,
    scene: Scene | None = None,
    start: Float[Array, " j"] | None = None,
    earlier: Sequence[Motion] = (),
    effort: SearchEffort | None = None,
    joints: tuple[int, ...] = (),
    speeds: Float[Array, " s"] | None = None,
    passes: int | None = None,
    minutes: float | None = None,
    inertia: InertiaGoal | None = None,
    delta1: float = DELTA1,
    delta2: float = np.inf,
) -> Plan:
    """Plan a motion of any kind, free of collisions with the robot and its mounting surface.

    Args:
        kind: One of KINDS.
        robot: The robot.
        model: Model to be identified; default: links with Coulomb and viscous friction and offset.
        criterion: Optimality criterion, one of CRITERIA (identification and payload).
        basis: Family of motions; default: five harmonics of 0.1 Hz.
        limits: Joint limits; default: those of the robot.
        jerk: Maximum jerk [rad/s^3].
        scene: Obstacles and bodies; default: the robot itself and its mounting surface.
        start: Start pose; default: a pose with much free space.
        earlier: Earlier motions: excite the parameters that they did not.
        effort: Budget, seed and processes.
        joints: Joints of a friction test, from 1; default: all.
        speeds: Speeds of a friction test [rad/s]; default: planned.
        passes: Repetitions of every stroke of a friction test; default: 1, or 2 (and longer
            strokes) where torque is measured on the link side.
        minutes: Duration of a warm-up [min], default 10; budget of a friction test, which then
            moves all joints at once.
        inertia: Payload and required accuracy of a payload-inertia motion.
        delta1, delta2: Limits of criterion "three_stage", see `design`.
    """
    if kind not in KINDS:
        raise InfeasibleError(f"kind {kind!r} is not known: use one of {', '.join(KINDS)}.")
    if scene is None:
        scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=CLEARANCE)
    request = _PlanRequest(
        robot,
        model or TorqueModel(robot, friction_model("linear"), rotor_inertia=False, offset=True),
        criterion,
        basis or FourierBasis(),
        limits or default_limits(robot),
        jerk,
        scene,
        None if start is None else np.asarray(start, float),
        earlier,
        effort or SearchEffort(),
        joints or tuple(range(1, robot.joints + 1)),
        speeds,
        passes,
        minutes,
        inertia or InertiaGoal(),
        delta1,
        delta2,
    )
    return KINDS[kind](kind, request)


def _plan_by_search(kind: str, request: _PlanRequest) -> Plan:
    """Plan identification, validation and payload motions by a search."""
    columns = focus = None
    limits, criterion, basis = request.limits, request.criterion, request.basis
    seed = request.effort.seed
    if kind == "payload":
        columns, focus = payload_columns(request.model)
        limits = limit_arm_speed(limits)
    if kind == "validation":
        if isinstance(basis, FourierBasis):
            basis = replace(basis, frequency_hz=0.83 * basis.frequency_hz)
        elif isinstance(basis, SplineBasis):
            basis = replace(basis, seconds=1.2 * basis.seconds)
        criterion, seed = "d", seed + 7919
    prior = None
    if request.earlier:
        prior = prior_information(request.model, list(request.earlier), columns)
    result = design_in_parallel(
        request.robot,
        workers=request.effort.workers,
        model=request.model,
        criterion=criterion,
        basis=basis,
        limits=limits,
        jerk=request.jerk,
        scene=request.scene,
        start=request.start,
        columns=columns,
        focus=focus,
        prior=prior,
        seconds=request.effort.seconds,
        iterations=request.effort.iterations,
        seed=seed,
        delta1=request.delta1,
        delta2=request.delta2,
        progress=request.effort.progress,
    )
    return Plan(kind, result.motion, limits, result)


def _payload_inertia(kind: str, request: _PlanRequest) -> Plan:
    result, inertia_plan = plan_inertia(
        request.model,
        request.limits,
        request.scene,
        request.inertia,
        start=request.start,
        jerk=request.jerk,
        seconds=request.effort.seconds,
        iterations=request.effort.iterations,
        seed=request.effort.seed,
        workers=request.effort.workers,
    )
    return Plan(kind, result.motion, request.limits, result, inertia=inertia_plan)


def _friction_test(kind: str, request: _PlanRequest) -> Plan:
    if request.minutes is not None:
        from taufit.excitation.line_friction_test import friction_test_along_line

        test = friction_test_along_line(
            request.robot,
            request.limits,
            request.scene,
            minutes=request.minutes,
            start=request.start,
            speeds=request.speeds,
            seed=request.effort.seed,
        )
        return Plan(kind, test.motion, request.limits, friction_test=test)
    test = friction_test(
        request.robot,
        request.limits,
        request.scene,
        joints=request.joints,
        start=request.start,
        speeds=request.speeds,
        passes=request.passes,
        seed=request.effort.seed,
    )
    return Plan(kind, test.motion, request.limits, friction_test=test)


def _warm_up(kind: str, request: _PlanRequest) -> Plan:
    centre = request.start
    if centre is None:
        centre = find_free_pose(request.robot, request.limits, request.scene, request.effort.seed)
    motion = warm_up(
        request.robot, request.limits, request.scene, centre=centre, minutes=request.minutes or 10.0
    )
    return Plan(kind, motion, request.limits)


KINDS: dict[str, Callable[[str, _PlanRequest], Plan]] = {
    "identification": _plan_by_search,
    "validation": _plan_by_search,
    "payload": _plan_by_search,
    "payload-inertia": _payload_inertia,
    "friction-test": _friction_test,
    "warm-up": _warm_up,
}
