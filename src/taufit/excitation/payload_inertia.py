"""Wrist motion that identifies the moments of inertia of a payload, and its duration.

Mass and centre show in any slow motion; moments of inertia only while the wrist accelerates. The
search minimises their standard deviations alone, with the robot's friction as nuisance and the
torque limits kept with payload. From noise and bandwidth of the torque follows the number of
periods for the required standard deviation:

    std after k periods = std of one sample / sqrt(2 bandwidth period k)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.excitation.basis import FourierBasis
from taufit.excitation.design import Design, design_in_parallel
from taufit.excitation.motion_kinds import payload_columns
from taufit.excitation.objective import MotionInformation
from taufit.excitation.scene import Scene
from taufit.model.torque_model import TorqueModel
from taufit.robot import JointLimits, Robot

_MOMENTS = ("Ixx", "Iyy", "Izz")
_SAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class InertiaGoal:
    """Approximate payload and the required accuracy of its inertia.

    Attributes:
        mass: Payload mass [kg].
        size: Edge length or diameter [m].
        relative: Required standard deviation, relative to the moment of a cube, m size^2/6.
        noise: Residual torque of a fitted model, per joint [N m]; default: 0.5 % of the torque
            limits (of the largest load where there are none).
        bandwidth_hz: Bandwidth of that residual [Hz]: 2 bandwidth samples a second are independent.
        longest_s: Maximum duration [s].
    """

    mass: float = 3.0
    size: float = 0.2
    relative: float = 0.04
    noise: Float[Array, " j"] | None = None
    bandwidth_hz: float = 5.0
    longest_s: float = 60.0

    @property
    def required_std(self) -> float:
        """Required standard deviation [kg m^2]."""
        return self.relative * self.mass * self.size**2 / 6.0


@dataclass(frozen=True, slots=True, eq=False)
class InertiaPlan:
    """Expected accuracy of a payload-inertia motion.

    Attributes:
        seconds: Duration of all periods [s].
        required_std: Required standard deviation [kg m^2].
        deviation: Expected standard deviation of Ixx, Iyy, Izz after that time [kg m^2].
        is_reached: Whether all three are below `required_std`.
        noise: Assumed noise per joint [N m].
    """

    seconds: float
    required_std: float
    deviation: dict[str, float]
    is_reached: bool
    noise: Float[Array, " j"]


def plan_inertia(  # noqa: PLR0913 - the public call has one keyword per choice
    model: TorqueModel,
    limits: JointLimits,
    scene: Scene,
    goal: InertiaGoal,
    *,
    start: Float[Array, " j"] | None = None,
    jerk: float = np.inf,
    seconds: float = 3.0,
    iterations: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> tuple[Design, InertiaPlan]:
    """Plan a motion for the moments of inertia of a payload, with as many periods as needed."""
    if not (goal.mass > 0 and goal.size > 0 and goal.relative > 0):
        raise InfeasibleError("mass, size and wanted deviation of the part must be positive.")
    noise = _noise(model, limits) if goal.noise is None else np.asarray(goal.noise, float)
    loaded = replace(model, robot=_robot_with_payload(model, goal))
    columns, _ = payload_columns(loaded)
    parameter_names = [loaded.layout.quantities[c] for c in columns[:10]]
    focus = tuple(parameter_names.index(name) for name in _MOMENTS)
    basis = FourierBasis(5, _frequency(limits))
    result = design_in_parallel(
        loaded.robot,
        workers=workers,
        model=loaded,
        criterion="a",
        basis=basis,
        limits=limits,
        jerk=jerk,
        scene=scene,
        start=start,
        weights=1.0 / noise,
        columns=columns,
        focus=focus,
        seconds=seconds,
        iterations=iterations,
        seed=seed,
    )
    information = MotionInformation(loaded, columns, 1.0 / noise)
    times = (np.arange(_SAMPLES) + 0.5) / _SAMPLES * basis.period
    matrix, _ = information.matrix(*result.motion.at(times))
    sample_std = np.sqrt(np.diag(np.linalg.inv(matrix))[list(focus)])
    per_period = sample_std / np.sqrt(2.0 * goal.bandwidth_hz * basis.period)
    maximum_periods = max(1, int(goal.longest_s / basis.period))
    periods = int(np.clip(np.ceil(np.max(per_period / goal.required_std) ** 2), 1, maximum_periods))
    deviation = per_period / np.sqrt(periods)
    motion = replace(result.motion, periods=float(periods))  # type: ignore[type-var]
    return replace(result, motion=motion), InertiaPlan(
        periods * basis.period,
        goal.required_std,
        dict(zip(_MOMENTS, (float(x) for x in deviation), strict=True)),
        bool(np.all(deviation <= goal.required_std)),
        noise,
    )


def _robot_with_payload(model: TorqueModel, goal: InertiaGoal) -> Robot:
    """Robot with a cube of the payload's size centred half its size beyond the flange."""
    robot = model.robot
    centre = robot.tip[:3, 3] + robot.tip[:3, 2] * 0.5 * goal.size
    m, c = goal.mass, centre
    moment = m * goal.size**2 / 6.0 * np.eye(3) + m * (c @ c * np.eye(3) - np.outer(c, c))
    rows, columns = [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]
    part = np.r_[m, m * c, moment[rows, columns]]
    values = np.array(robot.parameters)
    values[robot.layout.link(-1)] += part
    return robot.with_parameters(values)


def _noise(model: TorqueModel, limits: JointLimits) -> Float[Array, " j"]:
    """Default noise: 0.5 % of each joint's torque limit [N m]."""
    from taufit.dynamics import inverse_dynamics

    rng = np.random.default_rng(0)
    q = rng.uniform(limits.lower, limits.upper, size=(200, model.robot.joints))
    holding_torque = 3.0 * np.abs(inverse_dynamics(model.robot, q, 0 * q, 0 * q)).max(0)
    rated_torque = np.where(np.isfinite(limits.torque), limits.torque, holding_torque)
    return 0.005 * np.maximum(rated_torque, 0.02 * rated_torque.max())


def _frequency(limits: JointLimits) -> float:
    """First harmonic [Hz] whose third multiple reaches the wrist's motion limits."""
    wrist = slice(len(limits.velocity) // 2, None)
    ratio = np.median(limits.acceleration[wrist] / limits.velocity[wrist])
    return float(np.clip(ratio / (2.0 * np.pi * 3.0), 0.1, 0.5))
