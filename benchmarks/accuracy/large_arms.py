"""Large industrial arms: gravity compensators and encoder zeros, on real logs and in simulation.

The KR300's log says neither in which pose it begins nor what its counterbalance is: its second axis
gets a compensator of unknown geometry. The Schunk log does not say which arm it is; three six-axis
arms are tried. Simulated arms have zeros off by up to 3 deg, or a spring.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, ROOT

ARMS = ROOT / "examples" / "arms"
SEEDS = range(10)
# Intervals are counted on more; none of these arms was looked at when they were made.
COUNTED = range(2000, 2100)


def rows() -> Iterator[Row]:
    if (DATA / "kuka_kr300").is_dir():
        yield from _kr300()
        yield from _schunk()
    yield from _zeros()
    yield from _spring()


def _kr300() -> Iterator[Row]:
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.workflow import identify

    folder, map = DATA / "kuka_kr300", MAPS / "kr300_csv.yaml"
    first, second = (read_recording(folder / f"kr300_run{x}.csv.gz", column_map=map) for x in "AB")
    robot = read_robot(ARMS / "kr300.yaml")
    note = "10 s runs, mean of A -> B and B -> A, 10 Hz"
    for name, arm in (
        ("without compensator", replace(robot, compensators=())),
        ("with compensator", robot),
    ):
        done = [
            identify(arm, [train], holdout=[test], ignore_contradictions=True)
            for train, test in ((first, second), (second, first))
        ]
        unseen = np.mean([one.holdout_scores[0].nrmse for one in done], axis=0)
        yield Row(f"KR300 nrmse unseen, {name}", float(unseen.mean()), "", "", note)
        yield Row(f"KR300 nrmse unseen, axis 2, {name}", float(unseen[1]), "", "", note)
    expected = np.radians(3.0)
    done_zeros = identify(
        robot,
        [first],
        holdout=[second],
        ignore_contradictions=True,
        joint_zeros="2,3,4,5",
        joint_zero_std=expected,
    )
    std = done_zeros.model.training.joint_zero_std
    assert std is not None
    share = float(std[1:5].min() / expected)
    yield Row("KR300 least zero std over expected", share, "", "", "run A, expected 3 deg")


def _schunk() -> Iterator[Row]:
    from taufit.recording import read_recordings
    from taufit.robot import read_robot
    from taufit.workflow import identify

    file = DATA / "schunk_6dof" / "schunk_runs_001_070.csv.gz"
    runs = read_recordings(file, column_map=MAPS / "schunk_csv.yaml")
    for name in ("LWA 4P", "UR3e", "KR5"):
        arm = ARMS / "schunk_lwa4p.yaml" if name == "LWA 4P" else name.lower()
        done = identify(read_robot(arm), runs[:50], holdout=runs[50:], ignore_contradictions=True)
        unseen = float(done.mean_holdout_nrmse or np.nan)
        yield Row(f"Schunk nrmse unseen as {name}", unseen, "", "", "50 runs -> 20 runs, 10 Hz")


def _zeros() -> Iterator[Row]:
    import taufit
    from taufit.calibration import estimate_joint_zeros
    from taufit.fitting import automatic_model
    from taufit.sim import Twin
    from taufit.sim.random_motion import random_fourier

    for name, make, seeds in (("clean", Twin, SEEDS), ("typical", Twin.typical, COUNTED)):
        off, inside, shown = [0.0], [], 0
        for seed in seeds:
            robot = taufit.read_robot(("kr5", "ur10e", "ur5", "iiwa14", "panda")[seed % 5])
            true = np.radians(np.random.default_rng(seed).uniform(-3.0, 3.0, robot.joints))
            run = make(robot).run(random_fourier(robot, seed=100 + seed), seed=seed).recording
            samples = taufit.condition(replace(run, position=run.position - true))
            found = estimate_joint_zeros(
                automatic_model(robot), samples, expected_std=float(np.radians(2.0))
            )
            error = np.abs(found.values - true)[found.identifiable]
            off += error.tolist()
            inside += (error < 1.96 * found.std[found.identifiable]).tolist()
            shown += len(error)
        note = f"{len(seeds)} simulated arms, zeros within 3 deg, {shown} zeros identifiable"
        yield Row(
            f"zeros, {name} drives: worst error", float(np.degrees(max(off))), "deg", "", note
        )
        aim = ">= 93" if name == "typical" else ""
        share = float(np.mean(inside)) if inside else float("nan")
        yield Row(f"zeros, {name} drives: inside 95 %", 100.0 * share, "%", aim, note)


def _spring() -> Iterator[Row]:
    import taufit
    from taufit.fitting import automatic_model
    from taufit.robot import Compensator
    from taufit.sim import Twin
    from taufit.sim.random_motion import random_fourier

    spring = Compensator(1, "spring", base_arm=0.45, link_arm=0.16, angle=1.9)
    robot = replace(taufit.read_robot("kr5"), compensators=(spring,))
    model = automatic_model(robot, friction=taufit.Linear())
    values = model.nominal
    for what, value in (("coulomb", 4.0), ("viscous", 3.0)):
        values[[model.layout.index(f"joint_{k + 1}.{what}") for k in range(6)]] = value
    true = {"rate": 9000.0, "force": 1500.0}
    for what, value in true.items():
        values[model.layout.index(f"joint_2.balance_{what}")] = value
    twin = Twin.from_model(model.with_values(values))
    off: dict[str, list[float]] = {what: [] for what in true}
    for seed in SEEDS:
        run = twin.run(random_fourier(robot, seed=seed)).recording
        fitted = taufit.identify(robot, [run]).model
        for what, value in true.items():
            k = fitted.layout.index(f"joint_2.balance_{what}")
            off[what].append(abs(float(fitted.values[k]) / value - 1.0))
    for what, errors in off.items():
        yield Row(f"spring {what}: worst error", 100.0 * max(errors), "%", "", "KR5, 10 motions")
