"""Real robots with the defaults: torque left unexplained on runs a fit has not seen.

Reads the recordings beside the project (../shared/data); without them there is nothing to tell.
Every figure is one `identify` call with defaults and a 5 Hz low-pass (TX40: 10 Hz).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import Row

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
MAPS = ROOT / "examples" / "columns"
TRAIN = "ur-20_02_10-30sec_12harm"
UNSEEN = (
    "ur-20_02_19_14harm50sec",
    "ur-20_02_05-20sec_12harm",
    "ur-20_02_06-20sec_5harm",
    "ur-20_02_10-20sec_7harm",
    "ur-20_01_31-unload",
    "ur-19_12_23_free",
)
NINE = (*UNSEEN, TRAIN, "ur-20_02_12-40sec_12harm", "ur-20_02_05-20sec_8harm")


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    yield from _ur10e()
    yield from _panda()
    yield from _lwr4()
    yield from _tx40()


def _ur10e() -> Iterator[Row]:
    from taufit.fitting import automatic_model
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.signals import condition
    from taufit.terms.friction import Linear, LinearLoad
    from taufit.workflow import cross_validate_structure, identify

    folder = DATA / "ur10e" / "identification_data"
    robot = read_robot(DATA / "ur10e" / "ur10e.urdf")
    runs = {
        name: read_recording(folder / f"{name}.csv.gz", column_map=MAPS / "ur10e_csv.yaml")
        for name in NINE
    }
    unseen = {name: [runs[name]] for name in UNSEEN}
    note = "UR10e, trained on one 30 s run, mean over joints and six runs of other days, 5 Hz"
    for label, friction, target in (
        ("friction auto (presliding)", "auto", "<= 0.068"),
        ("friction linear, hard sign", Linear(), ""),
        ("friction linear, tanh(v/0.02)", Linear(0.02), ""),
        ("friction load-dependent + v|v|", LinearLoad(5e-4, quadratic=True), ""),
    ):
        done = identify(robot, [runs[TRAIN]], holdout=unseen, friction=friction, cutoff_hz=5.0)
        assert done.mean_holdout_nrmse is not None
        yield Row(f"UR10e nrmse unseen, {label}", done.mean_holdout_nrmse, "", target, note)
        if friction == "auto":
            gains = done.samples.gain
            assert done.nominal_comparison is not None
            yield Row(
                "UR10e e_N cut against nominal",
                done.nominal_comparison.reduction,
                "",
                ">= 0.85",
                note,
            )
    samples = [condition(run, cutoff_hz=5.0, gains=gains) for run in runs.values()]
    scores = cross_validate_structure(automatic_model(robot), samples)
    value = float(np.mean([one.mean_nrmse for one in scores]))
    yield Row("UR10e nrmse leave one of nine runs out", value, "", "<= 0.066", "defaults, 5 Hz")


def _panda() -> Iterator[Row]:
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.workflow import identify

    path = DATA / "panda" / "panda_exciting_traj1_part1.csv.gz"
    whole = read_recording(path, column_map=MAPS / "panda_csv.yaml")
    done = identify(
        read_robot("panda"),
        [part(whole, 0.0, 0.7)],
        holdout={"rest": [part(whole, 0.7, 1.0)]},
        cutoff_hz=5.0,
    )
    assert done.mean_holdout_nrmse is not None
    note = "first 70 % of the log -> its rest, 5 Hz, real time stamps"
    yield Row("Panda nrmse unseen", done.mean_holdout_nrmse, "", "<= 0.07", note)


def _lwr4() -> Iterator[Row]:
    from taufit.dynamics import inverse_dynamics
    from taufit.estimators import Wls
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.workflow import identify

    folder = DATA / "kuka_lwr4"
    robot = read_robot(folder / "kuka_lwr4.urdf")
    first, second = (
        read_recording(folder / f"lwr4_run{i}.csv.gz", column_map=MAPS / "lwr4_csv.yaml")
        for i in (1, 2)
    )
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1.8, 1.8, (300, 7)), rng.uniform(-1, 1, (300, 7)), 0
    a = rng.uniform(-2, 2, (300, 7))
    nominal = inverse_dynamics(robot, q, v, a)
    for label, estimator in (("auto", None), ("wls", Wls())):
        done = identify(robot, [first], holdout={"2": [second]}, estimator=estimator, cutoff_hz=5.0)
        assert done.mean_holdout_nrmse is not None
        yield Row(f"LWR4 nrmse repeated run, {label}", done.mean_holdout_nrmse, "", "", "5 Hz")
        far = inverse_dynamics(done.model.robot, q, v, a) - nominal
        change = float(np.mean(far.std(axis=0) / nominal.std(axis=0)))
        note = "rigid torque at random states against the URDF, over its spread, mean of joints"
        yield Row(f"LWR4 change elsewhere, {label}", change, "", "", note)


def _tx40() -> Iterator[Row]:
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.workflow import identify

    folder = DATA / "staubli_tx40"
    recording = read_recording(folder / "tx40_run1.csv.gz", column_map=MAPS / "tx40_csv.yaml")
    done = identify(read_robot(folder / "tx40_mdh_modified.urdf"), [recording], cutoff_hz=10.0)
    for j, peer in enumerate((3.02, 3.85, 2.40, 1.01, 4.37, 1.83)):
        yield Row(
            f"TX40 RMSE joint {j + 1}",
            float(done.training_score.rmse[j]),
            "N m",
            f"< {peer}",
            "training, low-pass 10 Hz; target: FIGAROH on this recording",
        )
    yield Row("TX40 R2 joint 5", float(1.0 - done.training_score.nrmse[4] ** 2), "", "> 0.71")


def part(recording, first: float, last: float):
    """A share of a recording's rows, as a recording."""
    n = len(recording)
    chosen = slice(int(first * n), int(last * n))
    changes = {
        name: getattr(recording, name)[chosen]
        for name in recording.__dataclass_fields__
        if isinstance(getattr(recording, name), np.ndarray) and len(getattr(recording, name)) == n
    }
    return replace(recording, **changes)
