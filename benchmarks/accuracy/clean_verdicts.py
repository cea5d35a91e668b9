"""Verdicts on recordings with nothing wrong, and false alarms of the sign check.

Simulated: recordings of all bundled arms, links off by up to 30 % from the description; usual
motion, friction five times as strong, one common course of all joints, and one random motion of a
simulated robot with the usual effects (`taufit simulate ARM`). The last 30 % judge the fit. The
limit of noise and the smallest error that counts were chosen on other motions of two of these arms
(iiwa7 and iiwa14, seeds 8100-8119).
Sign check: shared recordings of real arms, as described, with masses off by 30 %, and with a robot
on the wall or the ceiling of which the description says nothing.

python -m benchmarks clean_verdicts
python -m benchmarks.accuracy.clean_verdicts FOLDER [SECONDS]   what FOLDER does not hold yet
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.verdicts import judge
from benchmarks.clean_runs import SHARED
from benchmarks.shared_arms import ARMS, RecordedArm, recorded_arm
from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording, split
from taufit.robot import Robot, bundled_robots, read_robot

# Recordings of each arm by kind: level of Coulomb friction relative to the rigid torque's standard
# deviation, and whether all joints follow one course.
KINDS = {"usual": (6, 0.2, False), "strong friction": (6, 1.0, False), "one course": (7, 0.2, True)}
# Recordings of each arm with all effects of a simulated robot, one motion each.
EFFECTS, _EFFECT_RUNS = "all effects", 6
_SECONDS, _RAMP_S, _RATE_HZ, _NOISE = 30.0, 3.0, 100.0, 0.02
# Noise of the sensor [N m], at most this fraction of the rated torque, as simulated robots have it.
# Changed after a run: with 0.02 N m at all arms, 7 of 25 recordings of the koch (rated 0.5 N m) are
# noise at every joint, and fail as "no joint has measured torque".
_SENSOR_NOISE, _NOISE_OF_RATED = 0.02, 0.004
_MASS_DRAWS, _MASS_ERROR = 4, 0.3


def simulated(name: str, kind: str, seed: int) -> RecordedArm:
    """Description of an arm, and a recording of the arm as it really is, cut in two."""
    rng = np.random.default_rng([seed, *f"{name} {kind}".encode()])
    robot = read_robot(name)
    if kind == EFFECTS:
        return _with_all_effects(robot, seed, rng)
    _, friction, is_common = KINDS[kind]
    time_s = np.arange(0.0, _SECONDS, 1.0 / _RATE_HZ)
    position = _position(robot, time_s, rng, is_common)
    velocity = np.gradient(position, time_s, axis=0)
    acceleration = np.gradient(velocity, time_s, axis=0)
    factors = np.repeat(rng.uniform(1.0 - _MASS_ERROR, 1.0 + _MASS_ERROR, robot.joints), 10)
    truth = robot.with_parameters(robot.parameters * factors)
    torque = inverse_dynamics(truth, position, velocity, acceleration)
    size = torque.std(axis=0)
    torque = torque + friction * size * np.tanh(velocity / 0.01) + 0.1 * size * velocity
    rated = np.asarray(robot.limits.torque, float)
    noise = np.hypot(_NOISE * size, np.minimum(_SENSOR_NOISE, _NOISE_OF_RATED * rated))
    torque = torque + noise * rng.normal(size=torque.shape)
    first, second = split(Recording(time_s, position, torque, velocity, meta={"name": kind}), 0.3)
    return RecordedArm(robot, [first], [second], 10.0)


def _with_all_effects(robot: Robot, seed: int, rng: np.random.Generator) -> RecordedArm:
    """One random motion of a simulated robot with friction, ripple, noise and controller."""
    from taufit.sim import Twin, random_fourier, typical_effects, typical_rotor

    factors = np.repeat(rng.uniform(1.0 - _MASS_ERROR, 1.0 + _MASS_ERROR, robot.joints), 10)
    truth = typical_rotor(robot.with_parameters(robot.parameters * factors))
    twin = replace(Twin(truth, name=EFFECTS), effects=typical_effects(truth))
    motion = random_fourier(truth, seed=seed, periods=1.0)
    run = twin.run(motion, seed=seed, rate_hz=500.0, rest=(0.5, 0.5))
    meta = {key: value for key, value in run.recording.meta.items() if key != "robot"}
    first, second = split(replace(run.recording, meta=meta), 0.3)
    return RecordedArm(robot, [first], [second], 10.0)


def _position(
    robot: Robot, time_s: np.ndarray, rng: np.random.Generator, is_common: bool
) -> np.ndarray:
    """Sums of sines within the joint limits; one for all joints if they follow one course."""

    def course() -> np.ndarray:
        waves = zip((0.11, 0.23, 0.41), (0.5, 0.3, 0.15), rng.uniform(0.0, 6.0, 3), strict=True)
        return sum(a * np.sin(2.0 * np.pi * f * time_s + p) for f, a, p in waves)

    joints = robot.joints
    courses = [course()] * joints if is_common else [course() for _ in range(joints)]
    lower, upper = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
    ramp = np.clip(np.minimum(time_s, time_s[-1] - time_s) / _RAMP_S, 0.0, 1.0)
    # Acceleration without steps.
    envelope = ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp**2)
    size = rng.uniform(0.3, 0.9, joints) * np.minimum(1.0, 0.5 * (upper - lower))
    return 0.5 * (lower + upper) + (np.column_stack(courses) * size) * envelope[:, None]


def cases() -> Iterator[tuple[str, str, int]]:
    """Arm, kind and seed of every simulated recording; one of each arm and kind first."""
    counts = {kind: count for kind, (count, _, _) in KINDS.items()} | {EFFECTS: _EFFECT_RUNS}
    for seed in range(max(counts.values())):
        for kind, count in counts.items():
            if seed < count:
                yield from ((name, kind, seed) for name in bundled_robots())


def work(folder: Path, seconds: float = float("inf")) -> None:
    """Judge what has no result in the folder yet, until the CPU time is spent."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    for name, kind, seed in cases():
        path = folder / f"{name} {kind} {seed}.json"
        if path.exists():
            continue
        if time.process_time() - started > seconds:
            return
        path.write_text(json.dumps(judge(simulated(name, kind, seed)), indent=1) + "\n")


def counts(folder: Path) -> Iterator[Row]:
    """The figures of a folder."""
    results = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    failures = [name for name, x in results.items() if x["verdict"] != "PASS"]
    words = [name for name, x in results.items() if x.get("unexplained", 1.0) <= 0.15]
    alarms = [name for name, x in results.items() if "torque_sign" in x["kinds"]]
    note = f"of {len(results)}; {', '.join(failures) or 'none'}"
    yield Row("clean simulated recordings refused or FAIL", len(failures), "", "<= 0", note)
    note = f"of {len(results)}"
    yield Row("clean simulated recordings called good or excellent", len(words), "", "", note)
    yield Row("clean simulated recordings with a sign alarm", len(alarms), "", "<= 0")


def sign_alarms(arms: tuple[str, ...] = tuple(ARMS)) -> tuple[list[str], int]:
    """Joints of shared recordings that are falsely called reversed, and all joints tested."""
    from taufit.diagnosis.hypothesis_test import HypothesisTest
    from taufit.diagnosis.nominal_torque import sign_evidence
    from taufit.signals import condition

    alarms, total = list[str](), 0
    for name in arms:
        arm = recorded_arm(name)
        samples = condition(arm.training, cutoff_hz=arm.cutoff_hz)
        for variant, robot in descriptions(arm.robot, name):
            joints = sign_evidence(HypothesisTest(robot, samples)).reversed_joints
            alarms += [f"{name} {variant} joint {j + 1}" for j in joints]
            total += robot.joints
    return alarms, total


def descriptions(robot: Robot, name: str) -> Iterator[tuple[str, Robot]]:
    """The robot as described, with other masses, and in other mountings."""
    rng = np.random.default_rng([*name.encode()])
    yield "as described", robot
    for k in range(_MASS_DRAWS):
        factors = rng.uniform(1.0 - _MASS_ERROR, 1.0 + _MASS_ERROR, robot.joints)
        yield f"masses {k}", robot.with_parameters(robot.parameters * np.repeat(factors, 10))
    for mounting in ("wall", "ceiling"):
        yield mounting, robot.with_mounting(mounting)


def rows() -> Iterator[Row]:
    """Verdicts on clean simulated recordings; sign check on shared ones."""
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))
    if SHARED.exists():
        # The SO-101 has magnitudes of current, of which no sign is checked.
        alarms, total = sign_alarms(tuple(name for name in ARMS if name != "so101"))
        note = (
            f"of {total} joint tests on {len(ARMS) - 1} recordings; {', '.join(alarms) or 'none'}"
        )
        yield Row("sign check: false alarms", len(alarms), "", "<= 0", note)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    work(place, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
    for row in counts(place):
        print(row.name, row.value, row.note)
