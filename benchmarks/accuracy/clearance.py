"""What may be played: edited motions refused, designs and ways to them not, by an outside judge."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.flat_bodies import BODIES, FlatArm

ARMS = ("ur3", "ur3e", "ur5", "ur5e", "ur10", "ur10e", "panda", "kr5")
WALKED = ("ur3e", "ur5e", "ur10", "panda", "kr5")
PER_ARM = 300
CALIBRATIONS = Path(__file__).parents[2] / "tests" / "clearance" / "ur_calibrations.csv"


def tampered(arms: tuple[str, ...] = ARMS) -> tuple[Counter[str], list[str]]:
    """Decisions by the judge's verdict, and those that were taken otherwise."""
    from benchmarks.tampered_motions import designed, edits, faults
    from taufit.robot import read_robot

    count: Counter[str] = Counter()
    wrong: list[str] = []
    for arm in arms:
        robot, flat = read_robot(arm), FlatArm(arm)
        bases = designed(arm), designed(arm, splines=8), designed(arm, "friction-test")
        with tempfile.TemporaryDirectory() as folder:
            for edit in edits(arm, *bases):
                verdict, mistakes, decisions = faults(edit, robot, flat, Path(folder))
                count[f"{verdict} edits"] += 1
                count[f"{verdict} decisions"] += decisions
                wrong += mistakes
    return count, wrong


# Kind and options of `taufit design`, and how many seeds of each per arm.
DESIGNS = (
    ("identification", {}, 7),
    ("identification", {"splines": 8}, 6),
    ("validation", {}, 2),
    ("payload", {}, 2),
    ("friction-test", {}, 1),
    ("warm-up", {}, 2),
    ("identification", {"clearance": 0.005}, 2),
    ("identification", {"acceleration": 5.0, "speed": 0.5}, 2),
    ("identification", {"wall": 0.9, "splines": 10}, 2),
    ("identification", {"tip_speed": 1.5}, 1),
)


def clean(
    arms: tuple[str, ...] = ARMS, share: float = 1.0, *, stride: int = 1
) -> Iterator[tuple[str, list[str]]]:
    """Designs as the command makes them, each with the reasons against playing it."""
    from taufit.clearance import Cell, ClearanceCheck, clearance_block, read_motion_file
    from taufit.clearance.playback import PROGRAM, STREAM, TRAJECTORY
    from taufit.core.errors import InfeasibleError
    from taufit.excitation import (
        Plane,
        SearchEffort,
        SplineBasis,
        default_limits,
        mounting_plane,
        plan,
        scene_for,
        write_motion,
    )
    from taufit.robot import JointLimits, read_robot

    for arm in arms:
        robot = read_robot(arm)
        for kind, options, seeds in DESIGNS[::stride]:
            for seed in range(max(1, round(share * seeds))):
                own = default_limits(robot)
                limits = JointLimits(
                    own.lower,
                    own.upper,
                    options.get("speed", 1.0) * own.velocity,
                    np.minimum(own.acceleration, options.get("acceleration", np.inf)),
                    own.torque,
                )
                planes = [mounting_plane(robot)]
                if "wall" in options:
                    planes.append(Plane("wall", np.array([-1.0, 0.0, 0.0]), -options["wall"]))
                scene = scene_for(
                    robot,
                    planes=tuple(planes),
                    clearance=options.get("clearance", 0.02),
                    tip_speed=options.get("tip_speed", np.inf),
                )
                basis = SplineBasis(options["splines"], 10.0) if "splines" in options else None
                try:
                    found = plan(
                        kind,
                        robot,
                        basis=basis,
                        limits=limits,
                        scene=scene,
                        effort=SearchEffort(0.5, seed=seed),
                        joints=(1 + seed % robot.joints, robot.joints),
                    )
                except InfeasibleError:
                    continue
                kept = found.limits
                if found.design is None:
                    torque = np.full(robot.joints, np.inf)
                    kept = JointLimits(
                        kept.lower, kept.upper, kept.velocity, kept.acceleration, torque
                    )
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "m.json"
                    block = clearance_block(found.motion, robot, Cell.of(scene, kept))
                    write_motion(found.motion, path, clearance=block, robot=arm, feasible=True)
                    file = read_motion_file(path)
                ways = (PROGRAM, STREAM, TRAJECTORY)
                reasons = [
                    reason
                    for way in ways
                    for reason in ClearanceCheck(file, robot, mode=way).clear(None).refusals()
                ]
                yield f"{arm} {kind} {options} {seed}", reasons


def ways(
    arm: str, walked: int, drawn: int, *, effort: float = 1.0
) -> tuple[Counter[str], list[float], float]:
    """Ways to the start of a design: how they were found, seconds each, and the least gap [m]."""
    from taufit.clearance import ClearanceCheck, read_motion_file
    from taufit.clearance.playback import STREAM
    from taufit.excitation import SearchEffort, plan, write_motion
    from taufit.robot import read_robot

    robot, flat, rng = read_robot(arm), FlatArm(arm), np.random.default_rng(5)
    motion = plan("identification", robot, effort=SearchEffort(effort, seed=1)).motion
    with tempfile.TemporaryDirectory() as folder:
        write_motion(motion, Path(folder) / "m.json", robot=arm)
        check = ClearanceCheck(read_motion_file(Path(folder) / "m.json"), robot, mode=STREAM)
    search, limits = check.approaches, check.limits
    low, high = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
    starts: list[tuple[str, np.ndarray]] = []
    for _ in range(walked):
        pose = search.home_poses[0]
        for _ in range(12):
            step = np.clip(pose + rng.normal(0.0, 0.7, len(pose)), low, high)
            if search.is_clear(np.stack([pose, step])):
                pose = step
        starts.append(("walked", pose))
    while len(starts) < walked + drawn:
        pose = rng.uniform(low, high)
        if search.is_free(pose):
            starts.append(("drawn", pose))
    count: Counter[str] = Counter()
    seconds, least = [], np.inf
    for kind, pose in starts:
        begun = time.process_time()
        reasons: list[str] = []
        _, way = check._find_path(pose, reasons)
        seconds.append(time.process_time() - begun)
        if way is None:
            advice = re.search(r"Jog the arm to \[([^]]*)\]", reasons[0])
            count[f"{kind} refused"] += 1
            if advice is None or " and " not in reasons[0]:
                count["refusals without a pair or a way out"] += 1
                continue
            home = np.radians([float(word) for word in advice[1].replace(",", " ").split()])
            _, second = check._find_path(home, [])
            if second is None or leg_gap(flat, second.poses) < 0.0:
                count["advised poses without a way"] += 1
            continue
        count[f"{kind} {way.kind}"] += 1
        gap = leg_gap(flat, way.poses)
        least = min(least, gap)
        count["ways that touch"] += gap < 0.0
    return count, seconds, least


def leg_gap(flat: FlatArm, poses: np.ndarray) -> float:
    """Smallest distance of two bodies on the straight legs between poses, every 0.03 rad [m]."""
    gaps = []
    for a, b in pairwise(poses):
        steps = max(2, int(np.ceil(np.abs(b - a).max() / 0.03)) + 1)
        gaps.append(float(flat.gaps(a + np.linspace(0, 1, steps)[:, None] * (b - a)).min()))
    return min(gaps)


def calibrations() -> list[tuple[str, str, object]]:
    """Repository, model and arm of every calibration of a real UR."""
    import csv

    from taufit.robot.mounting import rotation_rpy
    from taufit.robot.robot import Drives, JointLimits, Link, Robot

    lines = [x for x in CALIBRATIONS.read_text().splitlines() if not x.startswith("#")]
    out = []
    for row in csv.DictReader(lines):
        values = {key: float(x) for key, x in row.items() if key not in ("repository", "model")}
        links = []
        for name in ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3"):
            pose = np.eye(4)
            pose[:3, 3] = [values.get(f"{name}_{axis}", 0.0) for axis in "xyz"]
            angles = [values.get(f"{name}_{angle}", 0.0) for angle in ("roll", "pitch", "yaw")]
            if name == "wrist_3":
                angles[1] = np.pi
            pose[:3, :3] = rotation_rpy(*angles)
            links.append(Link(name, f"{name}_joint", pose, np.array([0, 0, 1.0, 0, 0, 0])))
        arm = Robot(
            row["repository"], tuple(links), JointLimits.unlimited(6), Drives.direct_drive(6)
        )
        out.append((row["repository"], row["model"], arm))
    return out


def identities() -> tuple[int, int, float, float]:
    """Own models refused, other models accepted, largest own and least other distance [m]."""
    from taufit.clearance.identity import EQUAL_TABLES, OTHER_ROBOT_M, _nominal_robots, pose_gap

    refused = accepted = 0
    own, other = [], []
    for _, model, arm in calibrations():
        twins = next((t for t in EQUAL_TABLES if model in t), {model})
        for name, nominal in _nominal_robots().items():
            if nominal.joints != 6:
                continue
            gap = pose_gap(nominal, arm)
            if name in twins:
                own.append(gap)
                refused += gap > OTHER_ROBOT_M
            else:
                other.append(gap)
                accepted += gap <= OTHER_ROBOT_M
    return refused, accepted, max(own), min(other)


def after_yes(arm: str = "ur5e") -> tuple[float, float]:
    """CPU seconds of a clearance: of 10 s of motion and of a friction test, the slowest way."""
    from taufit.clearance import ClearanceCheck, read_motion_file
    from taufit.clearance.playback import PROGRAM, STREAM, TRAJECTORY
    from taufit.excitation import SearchEffort, plan, write_motion
    from taufit.robot import read_robot

    robot = read_robot(arm)
    out = []
    for kind in ("identification", "friction-test"):
        motion = plan(kind, robot, effort=SearchEffort(0.5)).motion
        worst = 0.0
        with tempfile.TemporaryDirectory() as folder:
            write_motion(motion, Path(folder) / "m.json", robot=arm)
            file = read_motion_file(Path(folder) / "m.json")
            for way in (PROGRAM, STREAM, TRAJECTORY):
                check = ClearanceCheck(file, robot, mode=way)
                here = check.approaches.home_poses[0]
                check.clear(here)
                begun = time.process_time()
                check.clear(here)
                worst = max(worst, time.process_time() - begun)
        out.append(worst)
    return out[0], out[1]


def rows() -> Iterator[Row]:
    count, wrong = tampered()
    for text in wrong:
        print(f"      {text}")
    accepted = sum(text.endswith(": accepted") for text in wrong)
    note = (
        f"{count['refuse edits'] + count['accept edits']} edits on {len(ARMS)} arms, "
        "3 ways of playing, certificate kept, removed or made anew"
    )
    yield Row("edited motions judged", count["refuse edits"] + count["accept edits"], "", "", note)
    note = f"{count['refuse decisions']} decisions; judged by 0.25 ms samples and MuJoCo"
    yield Row("unsafe edits accepted", accepted, "", "== 0", note)
    note = f"{count['accept decisions']} decisions"
    yield Row("safe edits refused", len(wrong) - accepted, "", "== 0", note)
    designs = list(clean())
    refused = [(name, reasons) for name, reasons in designs if reasons]
    for name, reasons in refused:
        print(f"      {name}: {reasons[0]}")
    note = "8 arms, 6 kinds, splines, own cells and limits; 3 ways of playing each"
    yield Row("designs tried", len(designs), "", ">= 200", note)
    yield Row("designs refused", len(refused), "", "== 0", note)
    total: Counter[str] = Counter()
    seconds: list[float] = []
    least = np.inf
    for arm in WALKED:
        found, took, gap = ways(arm, PER_ARM, PER_ARM)
        print(f"      {arm}: {dict(found)}, least {1e3 * gap:.1f} mm", flush=True)
        total += found
        seconds += took
        least = min(least, gap)
    note = f"{PER_ARM} clear walks from a roomy pose on each of {len(WALKED)} arms"
    yield Row("starts reached by walks and refused", total["walked refused"], "", "== 0", note)
    note = f"{PER_ARM} uniform free poses on each of {len(WALKED)} arms"
    yield Row("uniform starts refused", total["drawn refused"], "", "", note)
    missing = total["refusals without a pair or a way out"]
    yield Row("refusals without a pair or a way out", missing, "", "== 0", note)
    note = "played from the pose that the refusal names, judged by MuJoCo"
    yield Row("advised poses without a way", total["advised poses without a way"], "", "== 0", note)
    note = "flat cylinders and boxes in MuJoCo, every 0.03 rad"
    yield Row("legs of ways that touch", total["ways that touch"], "", "== 0", note)
    yield Row("least distance on a way", 1e3 * least, "mm", "> 0", note)
    note = "CPU time of the search for a way, of all starts"
    yield Row(
        "way found within, 95 %", 1e3 * float(np.quantile(seconds, 0.95)), "ms", "<= 50", note
    )
    refusals, confused, own, other = identities()
    note = f"{len(calibrations())} factory calibrations of real UR arms"
    yield Row("own models refused", refusals, "", "== 0", note)
    yield Row("other models accepted", confused, "", "== 0", note + "; twins left out")
    yield Row("own model, largest distance of poses", 1e3 * own, "mm", "<= 15", note)
    yield Row("other model, least distance of poses", 1e3 * other, "mm", "> 15", note)
    quick, slow = after_yes()
    note = "ur5e, slowest of three ways of playing, CPU time"
    yield Row("clearance of 10 s of motion", quick, "s", "<= 0.1", note)
    yield Row("clearance of a friction test", slow, "s", "<= 2", note)


assert set(ARMS) <= set(BODIES)
