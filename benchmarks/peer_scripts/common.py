"""What every peer starts from and ends with: the same samples in, nrmse and CPU seconds out.

A peer runs as a script in an interpreter of its own, where taufit is not installed:

    python -m peer_scripts.NAME samples.npz          (PYTHONPATH: the folder benchmarks)

`samples.npz` holds the arm (benchmarks.pinocchio_arm.arrays_of), conditioned runs `run_0`, which is
for training, to `run_<count - 1>`, each (4, n, j): position, velocity, acceleration, torque; and
`keep`, which samples of the training run each joint is fitted to.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Predict = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Given:
    """The samples a peer was given."""

    def __init__(self, file: str) -> None:
        self.arm: Any = np.load(file)
        self.runs = [self.arm[f"run_{k}"] for k in range(int(self.arm["count"]))]
        self.keep = self.arm["keep"]

    def show(self, predict: Predict, cpu: float, **more: float) -> None:
        """Score a prediction on the runs kept out of training and print one line of JSON."""
        out = []
        for q, v, a, torque in self.runs[1:]:
            error = torque - predict(q, v, a)
            out.append(float(np.mean(np.sqrt(np.mean(error**2, 0)) / torque.std(0))))
        print(json.dumps({"nrmse": out, "cpu": cpu, **more}))


def given() -> Given:
    """From the file named on the command line."""
    return Given(sys.argv[1])


def weighted(rows: np.ndarray, torque: np.ndarray, keep: np.ndarray, rounds: int = 3) -> np.ndarray:
    """Least squares of rows (n, j, p), joints weighted by the residuals of the round before."""
    joints = torque.shape[1]
    scale = torque.std(0)
    theta = np.zeros(rows.shape[-1])
    for _ in range(rounds):
        picked = [rows[keep[:, j], j] / scale[j] for j in range(joints)]
        aims = [torque[keep[:, j], j] / scale[j] for j in range(joints)]
        theta = np.linalg.lstsq(np.concatenate(picked), np.concatenate(aims), rcond=1e-10)[0]
        left = [torque[keep[:, j], j] - rows[keep[:, j], j] @ theta for j in range(joints)]
        scale = np.array([np.std(part) for part in left])
    return theta


def beside(links: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Links' columns (n, j, p) and each joint's own (n, j, t) as one matrix (n, j, p + j t)."""
    n, joints, terms = own.shape
    rest = np.zeros((n, joints, joints, terms))
    every = np.arange(joints)
    rest[:, every, every] = own
    return np.concatenate([links, rest.reshape(n, joints, -1)], -1)
