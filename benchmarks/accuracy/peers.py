"""taufit beside others on real recordings: the same conditioned samples, the same cut-off.

UR10e, trained on one run of 30 s, scored on the other shared unloaded runs: nrmse (mean over joints
and runs) and CPU seconds from samples to parameters. Every peer runs in a process of its own: the
interpreter in PEER_<NAME>_PYTHON, else that of build/peers/<NAME>, else this one where it has the
package; one that is missing is a row that says so. `python -m benchmarks.accuracy.peers install`
makes build/peers. Peers get filtered positions, velocities, accelerations and torques and predict
torque from the first three; benchmarks/peer_scripts has one file for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE, TRAIN
from benchmarks.pinocchio_arm import arrays_of

CUTOFF_HZ = 5.0
BENCHMARKS = Path(__file__).resolve().parents[1]
VENVS = BENCHMARKS.parent / "build" / "peers"
# AURT compiles an arm's dynamics symbolically; it is stopped after so many CPU seconds.
COMPILE_S = 60


@dataclass(frozen=True, slots=True)
class Peer:
    """Someone else's way from samples to a model.

    Attributes:
        name: In the rows.
        module: Imported to see whether it is installed.
        packages: What `install` asks the package index for.
        note: What its CPU seconds contain.
    """

    name: str
    module: str
    packages: tuple[str, ...]
    note: str


PEERS = {
    "plain": Peer("plain script", "pinocchio", ("pin",), "regression alone"),
    "figaroh": Peer("FIGAROH 1.0.2", "figaroh", ("figaroh==1.0.2",), "regression alone"),
    "mujoco_sysid": Peer(
        "MuJoCo sysid 4.0",
        "mujoco.sysid.report",
        ("mujoco[sysid]==4.0.0",),
        "60 iterations on every third sample (it moves no more)",
    ),
    "aurt": Peer(
        "AURT 0.0.4",
        "aurt",
        ("aurt==0.0.4", "pin"),
        "its friction and weights beside Pinocchio's columns, without compiling its own",
    ),
    "boosting": Peer("gradient boosting", "sklearn", ("scikit-learn",), "six regressors"),
}


def interpreter(key: str) -> str | None:
    """The Python that has a peer, or None."""
    own = VENVS / key / "bin" / "python"
    named = os.environ.get(f"PEER_{key.upper()}_PYTHON")
    python = named or (str(own) if own.exists() else sys.executable)
    command = [python, "-W", "ignore", "-c", f"import {PEERS[key].module}"]
    probe = subprocess.run(command, capture_output=True, check=False)
    return None if probe.returncode else python


def run(python: str, script: str, *arguments: str) -> dict[str, float | list[float]]:
    """The line of JSON that a script prints last."""
    settings = dict(
        os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=str(BENCHMARKS)
    )
    done = subprocess.run(
        [python, "-W", "ignore", "-m", f"peer_scripts.{script}", *arguments],
        capture_output=True,
        text=True,
        env=settings,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script}: {done.stderr.strip().splitlines()[-1]}")
    out: dict[str, float | list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return out


def install() -> None:
    """An environment for each peer in build/peers, from the package index."""
    for key, peer in PEERS.items():
        venv.create(VENVS / key, with_pip=True)
        python = str(VENVS / key / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", *peer.packages], check=False)


def rows() -> Iterator[Row]:
    from taufit.recording import read_recording
    from taufit.robot import read_robot
    from taufit.workflow import identify

    folder = DATA / "ur10e" / "identification_data"
    if not folder.is_dir():
        return
    robot = read_robot(DATA / "ur10e" / "ur10e.urdf")
    one = {
        name: [read_recording(folder / f"{name}.csv.gz", column_map=MAPS / "ur10e_csv.yaml")]
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
        for key in PEERS:
            yield from _rows_of(key, file, note)


def _rows_of(key: str, file: Path, note: str) -> Iterator[Row]:
    peer, python = PEERS[key], interpreter(key)
    if python is None:
        why = f"not installed: {' '.join(peer.packages)}, or set PEER_{key.upper()}_PYTHON"
        yield Row(f"{peer.name}, not run", 0.0, "", "", why)
        return
    found = run(python, key, str(file))
    # What has to be installed apart is measured by hand: its rows stay when it is missing.
    by_hand = "" if key == "plain" else " (long run)"
    nrmse, cpu = float(np.mean(found["nrmse"])), float(np.sum(found["cpu"]))
    yield Row(f"{peer.name}, nrmse", nrmse, "", "", note + by_hand)
    yield Row(f"{peer.name}, CPU", cpu, "s", "", peer.note + by_hand)
    if key == "aurt":
        made = run(python, "aurt_compile", "6", str(COMPILE_S))
        cpu = float(np.sum(made["cpu"]))
        end = "finished" if made["finished"] else "stopped there, not finished"
        yield Row(f"{peer.name}, compile-rbd of six joints, CPU", cpu, "s", "", end + by_hand)


if __name__ == "__main__":
    if sys.argv[1:] != ["install"]:
        sys.exit("usage: python -m benchmarks.accuracy.peers install")
    install()
