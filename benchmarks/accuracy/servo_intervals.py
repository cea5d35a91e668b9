"""Intervals of servo parameters: simulated arms, disjoint groups of real runs, choice of the stage.

Simulated arms have 5-7 joints, an acceleration limit, a floor (half of them), delays of 0-60 ms,
10-12 bit and 30-100 Hz; the truth is integrated in steps of 1 ms, the fit in 5 ms. Floor search and
bias were chosen on seeds 0-27, 1001, 2000-2048 and 5000-5019, covariance, priors and the last steps
of the floor's height on 8000-8038, the rule that keeps the acceleration limit on 300-315 and 1053;
seeds from 3000 are for scoring. TAUFIT_LONG runs 100 arms (900 CPU s) instead of 2.

    python -m benchmarks.accuracy.servo_intervals FIRST COUNT    one line per arm, then the rows
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.servo_replay import DATA, LONG, TRAINING, read
from benchmarks.simulated_servos import (
    SimulatedServoArm,
    measure,
    random_commands,
    random_robot,
    random_servos,
    simulated_arm,
)
from taufit.servo.estimate import STAGES, estimate_servo
from taufit.servo.identify import identify_servo
from taufit.servo.joint_axes import JointAxes
from taufit.servo.model import TAKEN, ServoModel, ServoValue
from taufit.servo.motion import commanded_motions
from taufit.servo.score import replay_summary, score_replays

FIRST_SEED = 3000
# Groups of training runs of the SO-101 without a common run; each has gravity, speed and reversals.
GROUPS = (
    ("friction_gravity", "inertia_coupling", "random_waypoints", "frequency_sweep"),
    ("large_amplitude", "end_effector", "hold_under_gravity"),
)
KINDS = ("damping_ratio", "coulomb_ratio", "delay", "acceleration_limit", "kp")


@dataclass(frozen=True, slots=True)
class ArmResult:
    """Intervals that hold by kind of parameter, and replay error over that of the truth."""

    holds: dict[str, list[bool]]
    replay_ratio: float


def rows() -> Iterator[Row]:
    yield from interval_rows([fit_arm(FIRST_SEED + k) for k in range(100 if LONG else 2)])
    yield from mixed_rows([fit_arm(9000 + k, mixed=True) for k in range(12 if LONG else 1)])
    yield from stage_rows(range(300, 316 if LONG else 302))
    if DATA.exists():
        yield from group_rows()


def fit_arm(seed: int, *, mixed: bool = False) -> ArmResult:
    """Fit one simulated arm and compare with its truth."""
    arm = simulated_arm(seed, mixed=mixed)
    model = identify_servo(arm.robot, arm.training).model
    truth = true_values(arm)
    holds: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for value in model.values:
        if value.note != TAKEN:
            kind = value.name.rpartition(".")[2]
            holds[kind].append(value.low <= truth[value.name] <= value.high)
    return ArmResult(holds, replay_ratio(arm, model))


def true_values(arm: SimulatedServoArm) -> dict[str, float]:
    servo = arm.servo
    out = {"delay": servo.delay[0], "acceleration_limit": servo.acceleration_limit}
    for j, joint in enumerate(arm.robot.joint_names):
        out[f"{joint}.kp"] = servo.kp[j]
        out[f"{joint}.damping_ratio"] = servo.damping[j] / servo.kp[j]
        out[f"{joint}.coulomb_ratio"] = servo.coulomb[j] / servo.kp[j]
    return out


def replay_ratio(arm: SimulatedServoArm, model: ServoModel) -> float:
    """Replay error of unseen runs over that of the true parameters and floor.

    The commands of the truth are cut to whole encoder steps, half a step lower in the mean.
    """
    motions = commanded_motions(arm.robot, arm.test)
    exact = arm.servo.replace(offset=arm.servo.offset - model.record["half_step"])
    pairs = ((model.servo, model.floor), (exact, arm.floor))
    own, true = (
        replay_summary(score_replays(model.axes, servo, motions, floor)).mean
        for servo, floor in pairs
    )
    return own / true


def interval_rows(results: Sequence[ArmResult]) -> Iterator[Row]:
    is_long = len(results) >= 100
    count = f"{len(results)} simulated arms"
    note = f"{count}, seeds from {FIRST_SEED}" + (" (long run)" if is_long else "")
    for kind in KINDS:
        holds = [value for result in results for value in result.holds[kind]]
        name = f"servo {kind.replace('_', ' ')}, {count}: intervals that hold"
        target = "0.92 .. 0.98" if is_long else ""
        yield Row(name, float(np.mean(holds)), "", target, f"{len(holds)} intervals; {note}")
    ratios = np.array([result.replay_ratio for result in results])
    name = f"servo replay over the truth's, {count}"
    yield Row(f"{name}: mean", float(ratios.mean()), "x", "<= 1.3", note)
    above = f"{np.sum(ratios > 1.3)} above 1.3; {note}"
    yield Row(f"{name}: worst", float(ratios.max()), "x", "", above)


def mixed_rows(results: Sequence[ArmResult]) -> Iterator[Row]:
    """Arms with servos of three types, which no setting was chosen on."""
    holds = [value for result in results for values in result.holds.values() for value in values]
    ratios = [result.replay_ratio for result in results]
    count = f"{len(results)} simulated arms with mixed servos"
    name, note = f"servo values, {count}: intervals that hold", f"{len(holds)} intervals"
    yield Row(name, float(np.mean(holds)), "", ">= 0.9" if len(results) >= 12 else "", note)
    name, note = f"servo replay over the truth's, {count}: mean", f"worst {max(ratios):.2f}"
    yield Row(name, float(np.mean(ratios)), "x", "<= 1.3", note)


def stage_rows(seeds: range) -> Iterator[Row]:
    """Arms whose fast motion is in one run, with (even seeds) and without acceleration limit.

    Links are 15 % off the description.
    """
    right = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        robot = random_robot(rng)
        servo = random_servos(rng, robot.joints)
        if seed % 2:
            servo = servo.replace(acceleration_limit=0.0)
        links = robot.parameters.reshape(robot.joints, -1)
        true = robot.with_parameters(links * np.exp(rng.normal(0.0, 0.15, (robot.joints, 1))))
        rate, step = float(rng.uniform(30, 100)), 2 * np.pi / 2 ** int(rng.integers(10, 13))
        runs = []
        for k in range(6):
            time, command = random_commands(rng, robot.joints, rate)
            if k < 5:
                time, command = slow_part(time, command)
            runs.append(measure(true, servo, None, step, time, command, f"run_{k}"))
        axes = JointAxes.of_robot(robot)
        estimate = estimate_servo(robot, axes, commanded_motions(robot, runs), floor=None)
        right.append(estimate.stage == STAGES[1 if seed % 2 else 2])
    note = f"{len(seeds)} simulated arms, fast motion in one run, half of them without limit"
    yield Row("servo stage as the truth", float(np.mean(right)), "", ">= 0.9", note)


def slow_part(time: np.ndarray, command: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First 60 % of the time, at 70 % of the speed: the part without fast sinusoids."""
    slow = np.column_stack([np.interp(0.7 * time, time, column) for column in command.T])
    count = int(0.6 * len(time))
    return time[:count], slow[:count]


def group_rows() -> Iterator[Row]:
    """Values of the SO-101 from groups of runs without a common run."""
    models = [identify_servo("so101", [read(name) for name in group]).model for group in GROUPS]
    assert set(TRAINING) == {name for group in GROUPS for name in group}
    pairs = [
        (a, b)
        for a in models[0].values
        for b in models[1].values
        if a.name == b.name and TAKEN not in (a.note, b.note)
    ]
    apart = [a.name for a, b in pairs if not agree(a, b)]
    note = f"{len(pairs)} values of two groups; apart: {', '.join(apart) or 'none'}"
    share = 1.0 - len(apart) / len(pairs)
    yield Row("SO-101 values of disjoint runs that agree", share, "", ">= 0.92", note)


def agree(a: ServoValue, b: ServoValue) -> bool:
    """Whether two values differ by no more than their half widths together (root of squares)."""
    halves = ((a.high - a.low) / 2, (b.high - b.low) / 2)
    return bool(abs(a.value - b.value) <= np.hypot(*halves))


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    collected = []
    for number in range(first, first + count):
        collected.append(fit_arm(number))
        misses = {kind: held.count(False) for kind, held in collected[-1].holds.items()}
        print(number, f"replay {collected[-1].replay_ratio:.3f} x, misses {misses}", flush=True)
    for row in interval_rows(collected):
        print(f"{row.name}: {row.value:.3f} {row.target} ({row.note})")
