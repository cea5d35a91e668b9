"""taufit beside others on real recordings: the same conditioned samples, the same cut-off.

UR10e, trained on one run of 30 s, scored on the other shared unloaded runs: nrmse (mean over joints
and runs) and CPU seconds from samples to parameters. Every peer runs in a process of its own: the
interpreter in PEER_<NAME>_PYTHON, or this one where it has the package; one that is missing is
skipped and said so. Peers get filtered positions, velocities, accelerations and torques and predict
torque from the first three.

    plain       Pinocchio's regressor, tanh(v / 0.02), viscous, rotor, offset; weighted likewise
    figaroh     FIGAROH's regressor with its own friction terms, weighted least squares
    boosting    scikit-learn's histogram gradient boosting on (q, v, a), joint by joint
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE, TRAIN
from benchmarks.pinocchio_arm import arrays_of

CUTOFF_HZ = 5.0
# What each needs beside NumPy: probed before it is run.
NEEDS = {"plain": "pinocchio", "figaroh": "figaroh", "boosting": "sklearn"}

_HEAD = """
import json, sys, time
import numpy as np
arm = np.load(sys.argv[1])
runs = [arm[f"run_{k}"] for k in range(int(arm["count"]))]
keep = arm["keep"]

def show(predict, cpu):
    out = []
    for q, v, a, torque in runs[1:]:
        error = torque - predict(q, v, a)
        out.append(float(np.mean(np.sqrt(np.mean(error**2, 0)) / torque.std(0))))
    print(json.dumps({"nrmse": out, "cpu": cpu}))

def weighted(rows, torque, keep, rounds=3):
    # rows (n, j, p): joints weighted by what the round before left of them
    scale = torque.std(0)
    for _ in range(rounds):
        picked = [rows[keep[:, j], j] / scale[j] for j in range(torque.shape[1])]
        aims = [torque[keep[:, j], j] / scale[j] for j in range(torque.shape[1])]
        theta = np.linalg.lstsq(np.concatenate(picked), np.concatenate(aims), rcond=1e-10)[0]
        scale = np.array([np.std(torque[keep[:, j], j] - rows[keep[:, j], j] @ theta)
                          for j in range(torque.shape[1])])
    return theta
"""

SCRIPTS = {
    "plain": _HEAD
    + """
import pinocchio
from pinocchio_arm import pinocchio_model
model = pinocchio_model(arm)
data = model.createData()

def rows(q, v, a):
    links = np.stack([pinocchio.computeJointTorqueRegressor(model, data, *x).copy()
                      for x in zip(q, v, a)])
    n, j = q.shape
    rest = np.zeros((n, j, 4 * j))
    for i in range(j):
        rest[:, i, 4 * i:4 * i + 4] = np.stack(
            [np.tanh(v[:, i] / 0.02), v[:, i], a[:, i], np.ones(n)], -1)
    return np.concatenate([links, rest], -1)

start = time.process_time()
q, v, a, torque = runs[0]
theta = weighted(rows(q, v, a), torque, keep)
cpu = time.process_time() - start
show(lambda q, v, a: rows(q, v, a) @ theta, cpu)
""",
    "figaroh": _HEAD
    + """
import types
from figaroh.tools.regressor import build_regressor_basic
from pinocchio_arm import pinocchio_model
model = pinocchio_model(arm)
robot = types.SimpleNamespace(model=model, data=model.createData())
settings = {"has_friction": True, "has_actuator_inertia": True, "has_joint_offset": True,
            "is_joint_torques": True, "act_idxv": list(range(model.nv))}

def rows(q, v, a):
    whole = build_regressor_basic(robot, q, v, a, settings)
    return whole.reshape(model.nv, len(q), -1).transpose(1, 0, 2)

start = time.process_time()
q, v, a, torque = runs[0]
theta = weighted(rows(q, v, a), torque, keep)
cpu = time.process_time() - start
show(lambda q, v, a: rows(q, v, a) @ theta, cpu)
""",
    "boosting": _HEAD
    + """
from sklearn.ensemble import HistGradientBoostingRegressor
start = time.process_time()
q, v, a, torque = runs[0]
x = np.concatenate([q, v, a], -1)
models = [HistGradientBoostingRegressor(random_state=0).fit(x, torque[:, j])
          for j in range(torque.shape[1])]
cpu = time.process_time() - start
show(lambda q, v, a: np.stack([m.predict(np.concatenate([q, v, a], -1)) for m in models], -1), cpu)
""",
}


def run(name: str, file: Path) -> dict[str, float | list[float]] | None:
    """What a peer prints, or None where it is not installed."""
    python = os.environ.get(f"PEER_{name.upper()}_PYTHON", sys.executable)
    probe = subprocess.run(
        [python, "-c", f"import {NEEDS[name]}"], capture_output=True, check=False
    )
    if probe.returncode:
        return None
    here = str(Path(__file__).resolve().parents[1])
    settings = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=here)
    done = subprocess.run(
        [python, "-W", "ignore", "-c", SCRIPTS[name], str(file)],
        capture_output=True,
        text=True,
        env=settings,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def rows() -> Iterator[Row]:
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.workflow import identify

    folder = DATA / "ur10e" / "identification_data"
    if not folder.is_dir():
        return
    robot = read_robot(DATA / "ur10e" / "ur10e.urdf")
    one = {
        name: [read_recording(folder / f"{name}.csv.gz", map=MAPS / "ur10e_csv.yaml")]
        for name in NINE
    }
    start = time.process_time()
    identify(robot, one[TRAIN], cutoff_hz=CUTOFF_HZ)
    cpu = time.process_time() - start
    kept = {name: one[name] for name in NINE if name != TRAIN}
    done = identify(robot, one[TRAIN], holdout=kept, cutoff_hz=CUTOFF_HZ)
    assert done.mean_holdout_nrmse is not None
    note = "UR10e, one 30 s run -> eight others, 5 Hz"
    yield Row("taufit, nrmse", done.mean_holdout_nrmse, "", "", note)
    yield Row("taufit, CPU", cpu, "s", "", "identify with defaults: conditioning, checks and fit")
    arrays = arrays_of(robot)
    for k, samples in enumerate((done.samples, *done.holdout_samples)):
        moving = samples.in_motion
        arrays[f"run_{k}"] = np.stack(
            [
                x[moving]
                for x in (
                    samples.position,
                    samples.velocity,
                    samples.acceleration,
                    samples.torque,
                )
            ]
        )
        if k == 0:
            arrays["keep"] = samples.keep[moving]
    arrays["count"] = np.array(1 + len(done.holdout_samples))
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "samples.npz"
        np.savez(file, **arrays)
        for name in SCRIPTS:
            found = run(name, file)
            if found is None:
                yield Row(
                    f"{name}, skipped", 0.0, "", "", f"set PEER_{name.upper()}_PYTHON to run it"
                )
                continue
            yield Row(f"{name}, nrmse", float(np.mean(found["nrmse"])), "", "", note)
            yield Row(f"{name}, CPU", float(found["cpu"]), "s", "", "regression alone")  # type: ignore[arg-type]
