"""Torque of single terms of fitted models, anywhere within limits and rated speed.

Friction, further terms (ripple, springs) and offsets of every fit are evaluated at random states
within the position limits and the rated speed (where unknown, the largest of training) and compared
with the torque range of their joint: the rated torque where it is described, that of the simulated
arm, else the largest torque of training; and friction must take energy: at every joint, or of all
together where motors are coupled. All shared arms, first split of each, and simulated recordings of
bundled arms with all effects, of which the fit sees 70 %.

Changed after a run: twice the speed of training where no rated speed is known (KR300), the torque
of training for simulated arms without limits (their true friction at rated speed exceeds it), and
friction joint by joint with coupled motors (TX40).

    python -m benchmarks.accuracy.term_bounds [COUNT]     one line per fit
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.clean_verdicts import EFFECTS, simulated
from benchmarks.accuracy.leave_one_arm_out import ARM_CASES
from benchmarks.accuracy.real_robots import DATA
from taufit.core.arrays import Array, Float
from taufit.model.conservative_torque import ConservativeTorque
from taufit.model.fitted_model import FittedModel
from taufit.recording import Recording
from taufit.robot import Robot, bundled_robots
from taufit.sim import typical_effects
from taufit.workflow import identify

_STATES = 3000
_FIRST_SEED, _COUNT = 8200, 60
# Power of friction below this fraction of its largest magnitude is rounding.
_ROUNDING = 1e-6
# Coulomb friction of simulated joints over their rated torque.
_COULOMB_OF_RATED = 0.03


@dataclass(frozen=True, slots=True)
class TermBounds:
    """Largest torque of single terms relative to their joint's range, and friction that drives."""

    name: str
    friction: float
    conservative: float
    offset: float
    driving_joints: int

    @property
    def largest(self) -> float:
        """Largest ratio of all terms."""
        return max(self.friction, self.conservative, self.offset)


def rows() -> Iterator[Row]:
    results = list(fits(_COUNT))
    above = [result.name for result in results if result.largest > 1.0]
    note = f"of {len(results)} fits; {', '.join(above) or 'none'}"
    yield Row("fits with a term above its joint's torque range", len(above), "", "<= 0", note)
    worst = max(results, key=lambda result: result.largest)
    yield Row("largest term over its joint's torque range", worst.largest, "x", "", worst.name)
    driving = [result.name for result in results if result.driving_joints]
    note = f"of {len(results)} fits; {', '.join(driving) or 'none'}"
    yield Row("fits with friction that gives energy", len(driving), "", "<= 0", note)


def fits(count: int) -> Iterator[TermBounds]:
    """Bounds of the fits of all shared arms and of `count` simulated ones."""
    if DATA.is_dir():
        for arm, cases in ARM_CASES.items():
            case = next(cases())
            yield _bounds(arm, case.robot, [case.training], case.cutoff_hz)
    names = bundled_robots()
    for k in range(count):
        name = names[k % len(names)]
        arm = simulated(name, EFFECTS, _FIRST_SEED + k)
        label, rated = f"{name} {_FIRST_SEED + k}", simulated_rating(arm.robot)
        yield _bounds(label, arm.robot, arm.training, arm.cutoff_hz, rated)


def simulated_rating(robot: Robot) -> Float[Array, " j"]:
    """Rated torque of simulated joints [N m], from their friction."""
    friction = typical_effects(robot).friction
    assert friction is not None
    return np.asarray(friction.coefficients)[:, 0] / _COULOMB_OF_RATED


def _bounds(
    name: str,
    robot: Robot,
    training: list[Recording],
    cutoff_hz: float,
    rated_torque: Float[Array, " j"] | float = 0.0,
) -> TermBounds:
    model = identify(robot, training, cutoff_hz=cutoff_hz, ignore_contradictions=True).model
    q, v = _states(model)
    torque_range = np.maximum(_torque_range(model), rated_torque)
    friction = model.friction(q, v)
    power = friction * v
    if np.any(model.robot.drives.coupling != np.eye(model.robot.joints)):
        power = power.sum(axis=1, keepdims=True)
    driving = np.any(power < -_ROUNDING * np.abs(power).max(axis=0, initial=0.0), axis=0)
    conservative = ConservativeTorque(model)(q)
    offsets = model.layout.split(model.values).offsets
    ratios = [np.abs(x).max(axis=0) / torque_range for x in (friction, conservative)]
    offset_ratio = np.abs(offsets) / torque_range if len(offsets) else np.zeros(1)
    return TermBounds(
        name, *(float(np.max(x)) for x in (*ratios, offset_ratio)), int(driving.sum())
    )


def _states(model: FittedModel) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
    """Random positions within limits, and velocities up to the rated speed."""
    rng, limits = np.random.default_rng(0), model.robot.limits
    seen = model.training.ranges.position
    assert seen is not None
    low = np.where(np.isfinite(limits.lower), limits.lower, seen.low)
    high = np.where(np.isfinite(limits.upper), limits.upper, seen.high)
    moved = model.training.ranges.velocity
    assert moved is not None
    fastest = np.maximum(np.abs(moved.low), np.abs(moved.high))
    rated = np.where(np.isfinite(limits.velocity) & (limits.velocity > 0.0), limits.velocity, 0.0)
    speed = np.maximum(rated, fastest)
    shape = (_STATES, model.robot.joints)
    return rng.uniform(low, high, shape), speed * rng.uniform(-1.0, 1.0, shape)


def _torque_range(model: FittedModel) -> Float[Array, " j"]:
    """Rated torque of every joint, at least the largest torque of training."""
    seen = model.training.ranges.torque
    assert seen is not None
    largest = np.maximum(np.abs(seen.low), np.abs(seen.high))
    rated = np.asarray(model.robot.limits.torque, float)
    return np.where(np.isfinite(rated), np.maximum(rated, largest), largest)


if __name__ == "__main__":
    for result in fits(int(sys.argv[1]) if len(sys.argv) > 1 else _COUNT):
        print(
            f"{result.name:20} friction {result.friction:.3f}, conservative "
            f"{result.conservative:.3f}, offset {result.offset:.3f}, "
            f"driving joints {result.driving_joints}",
            flush=True,
        )
