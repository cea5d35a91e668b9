"""Least squares that several tools share: weights per joint, columns of joints and links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.open.run import Run

Rows = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
# Joints slower than this fraction of their top speed are left out of a fit: friction is unknown.
SLOW = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Torque as rows(q, v, a) @ theta, rows of shape (n, j, p); links first, ten columns each."""

    rows: Rows
    theta: np.ndarray
    links: int

    def predict(self, run: Run) -> np.ndarray:
        """Torque (n, j) on the grid."""
        return self.rows(run.q, run.v, run.a) @ self.theta

    def payload_mass(self, run: Run) -> float:
        """Mass that explains the torque beyond the empty arm's, by the last link's columns."""
        use = run.moving
        columns = self.rows(run.q[use], run.v[use], run.a[use])
        last = columns[..., 10 * self.links - 10 : 10 * self.links]
        assert run.torque is not None
        excess = run.torque[use] - self.predict(run)[use]
        scale = excess.std(0)
        columns = (last / scale[:, None]).reshape(-1, 10)
        return float(np.linalg.lstsq(columns, (excess / scale).ravel(), rcond=1e-6)[0][0])


def fit_linear(rows: Rows, runs: list[Run], links: int, rounds: int = 3) -> LinearModel:
    """Least squares, joints weighted by the residuals of the round before."""
    columns = np.concatenate([rows(r.q[r.moving], r.v[r.moving], r.a[r.moving]) for r in runs])
    torque = np.concatenate([r.torque[r.moving] for r in runs if r.torque is not None])
    speed = np.abs(np.concatenate([r.v[r.moving] for r in runs]))
    keep = speed > SLOW * speed.max(0)
    return LinearModel(rows, weighted(columns, torque, keep, rounds), links)


def weighted(rows: np.ndarray, torque: np.ndarray, keep: np.ndarray, rounds: int) -> np.ndarray:
    """Parameters (p) from rows (n, j, p), torque (n, j) and the samples to keep (n, j)."""
    joints = torque.shape[1]
    scale = np.maximum(torque.std(0), 1e-9)
    theta = np.zeros(rows.shape[-1])
    for _ in range(rounds):
        columns = [rows[keep[:, j], j] / scale[j] for j in range(joints)]
        aims = [torque[keep[:, j], j] / scale[j] for j in range(joints)]
        theta = np.linalg.lstsq(np.concatenate(columns), np.concatenate(aims), rcond=1e-10)[0]
        left = [torque[keep[:, j], j] - rows[keep[:, j], j] @ theta for j in range(joints)]
        scale = np.maximum([np.std(part) for part in left], 1e-9)
    return theta


def beside(links: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """Columns of links (n, j, p) and of each joint (n, j, t) as one matrix (n, j, p + j t)."""
    n, count, terms = joints.shape
    rest = np.zeros((n, count, count, terms))
    every = np.arange(count)
    rest[:, every, every] = joints
    return np.concatenate([links, rest.reshape(n, count, -1)], -1)
