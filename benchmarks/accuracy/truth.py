"""Short, poor and one-sided recordings of real robots: how gracefully defaults degrade.

Reads the recordings beside the project (../shared/data); without them there is nothing to tell.
Where a log is split, it is conditioned as a whole, the first share of its samples in motion is
fitted, and the rest is scored with friction as the motion before left it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE, TRAIN
from taufit.recording import Recording, crop, read_recording
from taufit.robot import Robot, read_robot
from taufit.signals import condition
from taufit.workflow import identify

CUTOFF_HZ = 5.0
LAST = "ur-20_02_12-40sec_12harm"


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    yield from _short()
    yield from _joint_by_joint()
    panda = read_recording(
        DATA / "panda" / "panda_exciting_traj1_part1.csv.gz", column_map=MAPS / "panda_csv.yaml"
    )
    value = split(read_robot("panda"), panda, 0.7, CUTOFF_HZ)
    yield Row("Panda, 70 % of a log -> its rest", value, "", "<= 0.045", "5 Hz")
    arm = read_robot(DATA / "xmate7p" / "XM7p.urdf")
    log = read_recording(
        DATA / "xmate7p" / "xmate7p_traj1.csv.gz", column_map=MAPS / "xmate7p_csv.yaml"
    )
    for hz in (CUTOFF_HZ, 10.0):
        for share, target in ((0.6, 0.33), (0.75, 0.36)):
            value = split(arm, log, share, hz)
            name = f"xMate 7, {100 * share:.0f} % of a log of 5 s -> its rest, {hz:g} Hz"
            yield Row(name, value, "", f"<= {target}", "joint 7 turns one way only")


def _run(name: str, folder: str = "identification_data") -> Recording:
    path: Path = DATA / "ur10e" / folder / f"{name}.csv.gz"
    return read_recording(path, column_map=MAPS / "ur10e_csv.yaml")


def _short() -> Iterator[Row]:
    """The beginning of one UR10e run, on eight others."""
    robot = read_robot(DATA / "ur10e" / "ur10e.urdf")
    unseen = {name: [_run(name)] for name in NINE if name != TRAIN}
    whole = _run(TRAIN)
    samples = condition(whole, cutoff_hz=CUTOFF_HZ)
    begins = float(samples.time[np.flatnonzero(samples.in_motion)[0]])
    for label, end, target in (
        ("first 8 s of motion", begins + 8.0, "<= 0.17"),
        ("first 8 s of the file", 8.0, ""),
    ):
        done = identify(robot, crop(whole, None, end), holdout=unseen, cutoff_hz=CUTOFF_HZ)
        note = (
            f"mean over joints and eight runs, 5 Hz; {done.training_score.seconds:.1f} s of motion"
        )
        yield Row(
            f"UR10e, {label} -> eight runs", _known(done.mean_holdout_nrmse), "", target, note
        )


def _joint_by_joint() -> Iterator[Row]:
    robot = read_robot(DATA / "ur10e" / "ur10e.urdf")
    runs = [_run(f"ur-20_01_22-joint_{k}", "jointwise_motion") for k in range(1, 7)]
    done = identify(robot, runs, holdout={LAST: [_run(LAST)]}, cutoff_hz=CUTOFF_HZ)
    note = "six runs, each of one joint, to one of all joints, 5 Hz"
    yield Row(
        "UR10e, one joint at a time -> all", _known(done.mean_holdout_nrmse), "", "<= 0.045", note
    )


def split(robot: Robot, recording: Recording, share: float, cutoff_hz: float) -> float:
    """Mean nrmse of the last part of a log by a default model of the first."""
    from taufit.fitting import automatic_model, fitted_model
    from taufit.fitting.fit import fit
    from taufit.model import predicted_torque

    samples = condition(recording, cutoff_hz=cutoff_hz)
    moving = np.flatnonzero(samples.in_motion)
    border = moving[int(share * len(moving))]
    first = samples.rows(slice(0, border))
    side = "link" if recording.torque_source == "joint_torque_sensor" else "motor"
    model = automatic_model(robot, side=side)
    fitted = fitted_model(model, fit(model, first), first)
    rest: Sequence[int] = moving[moving >= border].tolist()
    error = (samples.torque - predicted_torque(fitted, samples))[rest]
    return float(np.mean(np.sqrt(np.mean(error**2, axis=0)) / samples.torque[rest].std(axis=0)))


def _known(value: float | None) -> float:
    assert value is not None
    return value
