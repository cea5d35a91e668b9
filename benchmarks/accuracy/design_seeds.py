"""Designs over arms, seeds, criteria, mountings and kinds: none may fail, shrink or be poor.

Column-scaled condition number of every motion, worst and median. Arms of this file beyond the
bundled ones are drawn at random or built here; they were not used to choose any setting.

    python -m benchmarks.accuracy.design_seeds SEEDS [SLICE ...]

prints one line per run; slices are arms, criteria, mountings, kinds, unseen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import Row

ARMS = ("ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "panda", "fr3", "iiwa7", "iiwa14", "kr5")
LIMIT = 30.0
SEARCHED = ("validation", "payload", "payload-inertia")
MOUNTINGS = ("ground", "ceiling", "wall", "20,-35,0")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One design.

    Attributes:
        case: What was asked for.
        arm: Of which arm.
        condition: Column-scaled condition number; NaN where refused.
        shrunk_to: Share of the searched motion.
        log_det: ln det W'W/N.
        cpu_seconds: Spent.
        refused: The message, where there is no motion.
    """

    case: str
    arm: str
    condition: float
    shrunk_to: float
    log_det: float
    cpu_seconds: float
    refused: str = ""


def run_one(case: str, robot, kind: str = "identification", **settings) -> Outcome:
    """One plan, with its figures or the reason it was refused."""
    from taufit.errors import TaufitError
    from taufit.excitation import plan

    began = time.process_time()
    try:
        design = plan(kind, robot, **settings).design
    except TaufitError as error:
        spent = time.process_time() - began
        return Outcome(case, robot.name, np.nan, np.nan, np.nan, spent, str(error))
    return Outcome(
        case,
        robot.name,
        design.condition_number_scaled,
        design.shrunk_to,
        design.log_det,
        time.process_time() - began,
    )


def cases(name: str, seeds: range) -> Iterator[Outcome]:
    """All runs of one slice."""
    from taufit.excitation import CRITERIA, Effort
    from taufit.robot import read_robot

    if name == "unseen":
        for robot in unseen_arms(seeds.start):
            yield run_one("unseen", robot, effort=Effort(seed=seeds.start))
        return
    for arm in ARMS:
        robot = read_robot(arm)
        for seed in seeds:
            effort = Effort(seed=seed)
            if name == "arms":
                yield run_one("default", robot, effort=effort)
            if name == "criteria":
                for criterion in CRITERIA:
                    yield run_one(
                        f"criterion {criterion}", robot, criterion=criterion, effort=effort
                    )
            if name == "mountings":
                for mounting in MOUNTINGS:
                    mounted = read_robot(arm, mounting=mounting)
                    yield run_one(f"mounting {mounting}", mounted, effort=effort)
            if name == "kinds":
                for kind in SEARCHED:
                    yield run_one(f"kind {kind}", robot, kind, effort=effort)


def unseen_arms(seed: int) -> list:
    """Random standard tables with a1 != 0 (20), SCARA, gantry with 4R, UR20 on a track, random 5R.

    Nothing but geometry and plausible masses is given for the random ones: limits are the defaults.
    """
    from taufit.robot.from_dh import from_dh
    from taufit.robot.robot import Limits

    rng = np.random.default_rng(seed)
    half = np.pi / 2
    arms = []
    for k in range(20):
        turn = rng.choice([-1.0, 1.0], 4) * half
        rows = [
            [0.0, rng.uniform(0.2, 0.45), rng.uniform(0.05, 0.2), turn[0]],
            [0.0, 0.0, rng.uniform(0.25, 0.5), 0.0],
            [0.0, 0.0, rng.uniform(0.0, 0.1), turn[1]],
            [0.0, rng.uniform(0.25, 0.5), 0.0, turn[2]],
            [0.0, 0.0, 0.0, turn[3]],
            [0.0, rng.uniform(0.08, 0.12), 0.0, 0.0],
        ]
        arms.append(from_dh(np.array(rows), name=f"random 6R {k}", parameters=_bodies(6, rng)))
    for k in range(3):
        turn = rng.choice([-1.0, 1.0], 3) * half
        rows = [
            [0.0, 0.4, 0.1, turn[0]],
            [0.0, 0.0, rng.uniform(0.25, 0.5), 0.0],
            [0.0, 0.0, rng.uniform(0.2, 0.4), 0.0],
            [0.0, 0.0, 0.0, turn[1]],
            [0.0, 0.15, 0.0, 0.0],
        ]
        arms.append(from_dh(np.array(rows), name=f"random 5R {k}", parameters=_bodies(5, rng)))
    # SCARA with the data sheet's ranges of a 0.6 m arm.
    table = [[0, 0.4, 0.325, 0], [0, 0, 0.275, np.pi], [0, 0.0, 0, 0], [0, 0.05, 0, 0]]
    ranges = Limits(
        np.array([-2.3, -2.5, 0.0, -6.28]),
        np.array([2.3, 2.5, 0.21, 6.28]),
        np.array([6.6, 11.5, 1.1, 26.0]),
        np.array([40.0, 60.0, 12.0, 100.0]),
        np.full(4, np.inf),
    )
    slides = (False, False, True, False)
    arms.append(
        from_dh(
            np.array(table),
            name="scara",
            prismatic=slides,
            limits=ranges,
            parameters=_bodies(4, rng),
        )
    )
    # Three rails and four turning joints hanging from the last.
    rails = [[0, 1.0, 0, half], [half, 1.0, 0, half], [0, 0.5, 0, np.pi]]
    wrist = [[0, 0.2, 0, half], [0, 0, 0.4, 0], [0, 0, 0.3, half], [0, 0.1, 0, 0]]
    slides = (True, True, True, False, False, False, False)
    arms.append(
        from_dh(
            np.array(rails + wrist), name="gantry 4R", prismatic=slides, parameters=_bodies(7, rng)
        )
    )
    # A UR20 upright on a track along the base's y axis, modified table.
    table = [
        [0, 0, 0, half],
        [0, 0.2363, 0, -half],
        [0, 0, 0, half],
        [0, 0, -0.862, 0],
        [0, 0.201, -0.7287, 0],
        [0, 0.1593, 0, half],
        [0, 0.1543, 0, -half],
    ]
    arms.append(
        from_dh(
            np.array(table),
            convention="modified",
            name="track UR20",
            prismatic=(True, *(False,) * 6),
            parameters=_bodies(7, rng),
        )
    )
    return arms


def _bodies(joints: int, rng: np.random.Generator) -> np.ndarray:
    """Plausible link parameters: 20 kg down to 1 kg, centres within 0.1 m, rods of 0.2 m."""
    out = np.zeros((joints, 10))
    for i in range(joints):
        mass = 20.0 * 0.5**i + 1.0
        c = rng.uniform(-0.1, 0.1, 3)
        inertia = mass * 0.01 * np.eye(3) + mass * (c @ c * np.eye(3) - np.outer(c, c))
        out[i] = [mass, *(mass * c), *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
    return out


def rows() -> Iterator[Row]:
    """Fresh seeds: one of every slice, ten for the defaults of the arms that used to fail."""
    seeds = range(int(time.time()) % 1_000_000, int(time.time()) % 1_000_000 + 1)
    for name in ("arms", "kinds", "mountings", "unseen"):
        outcomes = list(cases(name, seeds))
        done = [one.condition for one in outcomes if not one.refused]
        shrunk = [one.shrunk_to for one in outcomes if not one.refused]
        refused = len(outcomes) - len(done)
        note = f"seed {seeds.start}, {len(outcomes)} designs, {refused} refused"
        yield Row(f"{name}: worst column-scaled condition number", max(done), "", "< 30", note)
        yield Row(f"{name}: least share after the certificate", min(shrunk), "", ">= 0.9", note)


def main(arguments: list[str]) -> None:
    """Print every run of the slices asked for, then worst and median per arm."""
    first, _, count = arguments[0].partition("+")
    seeds = range(int(first), int(first) + int(count or 1))
    found: list[Outcome] = []
    for name in arguments[1:] or ["arms"]:
        for one in cases(name, seeds):
            found.append(one)
            print(
                f"{one.arm:12s} {one.case:24s} scaled {one.condition:7.2f} shrunk "
                f"{one.shrunk_to:.3f} ln det {one.log_det:7.1f} cpu {one.cpu_seconds:5.1f} "
                f"{one.refused}",
                flush=True,
            )
    for arm in dict.fromkeys(one.arm for one in found):
        own = [one.condition for one in found if one.arm == arm]
        print(f"{arm}: {len(own)} runs, median {np.nanmedian(own):.1f}, worst {np.nanmax(own):.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
