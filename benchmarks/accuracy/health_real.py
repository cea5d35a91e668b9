"""Wear on a real robot: friction of one joint raised in shared UR10e runs.

Each of nine runs is left out in turn: model and healthy baseline are those of the other eight. In
the run left out, friction of one joint is raised by a part of the model's. The robot's later runs
are these, drawn in random order with replacement, each judged against its own baseline, until the
test raises an alarm for that joint. There are no temperatures in these recordings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE
from taufit.core.arrays import Array
from taufit.health import cusum, judge, start_history
from taufit.health.cusum import sudden_limit
from taufit.model.predict import friction_torque
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.workflow import condition_like, identify

RISES = (0.2, 0.1, 0.05)
ORDERS, LONGEST = 40, 20
REPLAYS = 60


def rows() -> Iterator[Row]:
    folder = DATA / "ur10e" / "identification_data"
    if not folder.is_dir():
        return
    robot = read_robot(DATA / "ur10e" / "ur10e.urdf")
    column_map = MAPS / "ur10e_csv.yaml"
    runs = {n: read_recording(folder / f"{n}.csv.gz", column_map=column_map) for n in NINE}
    # Deviation of each run by rise and joint; the row of rise 0 is the healthy run.
    deviation = np.zeros((len(NINE), 1 + len(RISES), robot.joints))
    scatter = []
    for k, name in enumerate(NINE):
        others = {other: run for other, run in runs.items() if other != name}
        model = identify(robot, list(others.values()), cutoff_hz=5.0).model
        history = start_history(
            model, [(other, condition_like(model, [run])) for other, run in others.items()]
        )
        samples = condition_like(model, [runs[name]])
        friction = friction_torque(model, samples)
        healthy = judge(history.with_run(name, samples))
        scatter.append(np.std(healthy.percent[: len(others)], axis=0, ddof=1))
        deviation[k, 0] = healthy.z[-1]
        for i, j in np.ndindex(len(RISES), robot.joints):
            torque = samples.torque.copy()
            torque[:, j] += RISES[i] * friction[:, j]
            worn = judge(history.with_run(name, replace(samples, torque=torque)))
            deviation[k, 1 + i, j] = worn.z[-1, j]
    limits = healthy.threshold, history.slack, sudden_limit(1e-3, robot.joints, len(NINE) - 1)
    typical = np.median(scatter, axis=0)
    note = f"UR10e, eight runs of a baseline; by joint {' '.join(f'{x:.1f}' for x in typical)}"
    yield Row(
        "scatter of friction between runs, median joint", float(np.median(typical)), "%", "", note
    )
    rng = np.random.default_rng(14)
    sequence = deviation[rng.integers(len(NINE), size=REPLAYS), 0]
    alarms = cusum(sequence, *limits)[1]
    yield Row(
        f"alarms in {REPLAYS} healthy replayed runs", len(alarms), "", "<= 0", "in one history"
    )
    for i, (rise, most) in enumerate(zip(RISES, ("<= 2", "<= 5", ""), strict=True)):
        delays = np.array(
            [
                np.median([_delay(rng, deviation[:, 1 + i, j], limits) for _ in range(ORDERS)])
                for j in range(robot.joints)
            ]
        )
        note = f"median of {ORDERS} orders, by joint {' '.join(f'{x:g}' for x in delays)}"
        words = f"runs until +{100 * rise:.0f} % is found"
        yield Row(f"{words}, median joint", float(np.median(delays)), "", most, note)
        yield Row(f"{words}, worst joint", float(delays.max()), "", "<= 2" if rise == 0.2 else "")


def _delay(rng: np.random.Generator, z: Array, limits: tuple[float, float, float]) -> float:
    """Runs until an alarm; LONGEST + 1 without one."""
    sequence = z[rng.integers(len(z), size=LONGEST)][:, None]
    alarms = cusum(sequence, *limits)[1]
    return float(alarms[0][0] + 1 if alarms else LONGEST + 1)
