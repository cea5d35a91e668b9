"""A simulated fleet: arms of one type with a spread in friction, some of them worn, with a wrong
tool or mounted wrongly, each recorded for some seconds on some days.

The twin is MuJoCo's bodies under control with friction, ripple, noise and drive gains as arms of
that size have them. Recordings go to FOLDER/ROBOT/DAY.parquet; what was true stays here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.recording import write_recording
from taufit.robot import Robot, read_robot
from taufit.sim import Twin, random_fourier
from taufit.sim.payload import CarriedPayload

# Speeds at which friction curves are compared, over the rated speed.
SPEEDS = (0.05, 0.1, 0.2, 0.35, 0.5)


@dataclass(frozen=True)
class Plan:
    """What a fleet is like.

    Attributes:
        robots, days, seconds: How many, how often and how long.
        spread: Standard deviation of the logarithm of every friction term, robot by robot.
        links: The same of all masses and inertias of a link, robot by robot.
        worn: {robot: (joint from 0, factor on its friction)}.
        tool: {robot: mass on the flange [kg]}.
        mounted: {robot: mounting that nobody declared}.
        rising: {robot: (joint, factor on its friction from the first day to the last)}.
        seed: Of everything random.
    """

    robots: int = 200
    days: int = 1
    seconds: float = 20.0
    spread: float = 0.2
    links: float = 0.01
    worn: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    tool: Mapping[int, float] = field(default_factory=dict)
    mounted: Mapping[int, tuple[float, float, float]] = field(default_factory=dict)
    rising: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    seed: int = 0


def name_of(k: int) -> str:
    return f"cell_{k:03d}"


def make(folder: Path, plan: Plan, robot: str = "ur5") -> dict[str, Float[Array, "j s"]]:
    """Record the fleet; returns the true friction of each robot at `SPEEDS` on its first day."""
    nominal = read_robot(robot)
    usual = Twin.typical(nominal)
    truth = {}
    for k in range(plan.robots):
        rng = np.random.default_rng((plan.seed, k))
        twin = _robot(usual, plan, k, rng)
        truth[name_of(k)] = friction_curve(twin)
        for day in range(plan.days):
            today = _on_day(twin, plan, k, day)
            motion = random_fourier(
                nominal, seed=int(rng.integers(1 << 30)), periods=plan.seconds / 10.0
            )
            tool = CarriedPayload.lump(plan.tool[k], (0.0, 0.0, 0.05)) if k in plan.tool else ()
            run = today.run(motion, seed=int(rng.integers(1 << 30)), payload=tool)
            # Nobody knows of a wrong tool or mounting.
            said = {**run.recording.meta, "mounting": list(nominal.mounting)}
            path = folder / name_of(k) / f"2026-03-{day + 1:02d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_recording(replace(run.recording, payload=None, meta=said), path)
    return truth


def _robot(usual: Twin, plan: Plan, k: int, rng: np.random.Generator) -> Twin:
    friction = usual.effects.friction
    assert friction is not None
    own = np.asarray(friction.coefficients) * np.exp(
        plan.spread * rng.normal(size=np.shape(friction.coefficients))
    )
    if k in plan.worn:
        joint, factor = plan.worn[k]
        own[joint] *= factor
    robot: Robot = usual.robot
    scale = np.repeat(np.exp(plan.links * rng.normal(size=robot.joints)), 10)
    robot = robot.with_parameters(robot.parameters * scale)
    if k in plan.mounted:
        robot = replace(robot, mounting=plan.mounted[k])
    return replace(
        usual,
        robot=robot,
        effects=replace(usual.effects, friction=replace(friction, coefficients=own)),
    )


def _on_day(twin: Twin, plan: Plan, k: int, day: int) -> Twin:
    if k not in plan.rising or plan.days < 2:
        return twin
    joint, factor = plan.rising[k]
    friction = twin.effects.friction
    own = np.array(friction.coefficients)
    own[joint] *= factor ** (day / (plan.days - 1))
    return replace(
        twin, effects=replace(twin.effects, friction=replace(friction, coefficients=own))
    )


def friction_curve(twin: Twin) -> Float[Array, "j s"]:
    """Steady friction of each joint at `SPEEDS`, without load [N m]."""
    from taufit.terms.input import TermInput

    friction = twin.effects.friction
    speed = np.asarray(twin.robot.limits.velocity)
    out = np.empty((twin.robot.joints, len(SPEEDS)))
    for j in range(twin.robot.joints):
        v = speed[j] * np.array(SPEEDS)
        shape = np.zeros(0) if friction.shape is None else np.asarray(friction.shape)[j]
        columns = friction.model.columns_at(TermInput(v), shape)
        out[j] = columns @ np.asarray(friction.coefficients)[j]
    return out
