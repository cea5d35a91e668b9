"""Hand guiding forces with and without the weight of the payload, from a force log.

With the payload's mass m, gravity g in the tip frame and hand force f on the robot while the hand
carries the payload, a robot that compensates the payload leaves the hand force

    f + m g        (in the tip's axes)

Means are of magnitudes per axis, variances of the force, as tabulated in the literature.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.dynamics import forward_kinematics
from taufit.payload.estimate import PayloadEstimate
from taufit.recording import Recording
from taufit.recording.readers.from_csv import read_csv_table
from taufit.recording.readers.from_parquet import read_columns
from taufit.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class GuidedForce:
    """Force statistics of hand guiding, along the tip's x, y and z.

    Attributes:
        samples: Number of rows of the log.
        mean, variance: Mean magnitude [N] and variance [N^2] of the measured force.
        mean_compensated, variance_compensated: Both without the payload's weight.
        residual: Standard deviation of the uncompensated weight, from that of the mass [N].
        sensor_inverted: Whether the sensor measures the force of the robot on the hand.
    """

    samples: int
    mean: Float[Array, " 3"]
    variance: Float[Array, " 3"]
    mean_compensated: Float[Array, " 3"]
    variance_compensated: Float[Array, " 3"]
    residual: float
    sensor_inverted: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "frame": "tip",
            "samples": self.samples,
            "mean": self.mean.tolist(),
            "variance": self.variance.tolist(),
            "mean_compensated": self.mean_compensated.tolist(),
            "variance_compensated": self.variance_compensated.tolist(),
            "residual_std": self.residual,
            "sensor_counts_the_arm": self.sensor_inverted,
        }


def guiding_force(
    robot: Robot,
    position: Float[Array, "n j"],
    force: Float[Array, "n 3"],
    payload: PayloadEstimate,
) -> GuidedForce:
    """Hand guiding forces with and without the payload's weight.

    The sign convention of the sensor is determined from the weight: a hand that carries it pushes
    against gravity.

    Args:
        robot: Robot with its mounting and tip.
        position: Joint positions.
        force: Measured force in the tip's axes [N].
        payload: Estimated payload.
    """
    valid = np.isfinite(position).all(axis=1) & np.isfinite(force).all(axis=1)
    if np.count_nonzero(valid) < 20:
        raise RecordingError("the force log has fewer than 20 rows with numbers.")
    q, hand_force = position[valid], force[valid]
    tip_rotation = forward_kinematics(robot, q)[:, -1, :3, :3]
    weight = payload.mass * np.einsum("nij,i->nj", tip_rotation, robot.gravity)
    is_inverted = bool(np.sum(hand_force * -weight) < 0.0)
    if is_inverted:
        hand_force = -hand_force
    compensated = hand_force + weight
    return GuidedForce(
        len(q),
        np.abs(hand_force).mean(axis=0),
        hand_force.var(axis=0),
        np.abs(compensated).mean(axis=0),
        compensated.var(axis=0),
        float(payload.mass_std * np.linalg.norm(robot.gravity))
        if payload.has_intervals
        else np.nan,
        is_inverted,
    )


def force_columns(path: Path, recording: Recording, names: Sequence[str]) -> Float[Array, "n 3"]:
    """Three columns of a log (CSV or Parquet), at the rows of the recording.

    Args:
        path: Log file.
        recording: Recording read from it.
        names: Column names of x, y and z.
    """
    columns, rows = _table(path)
    missing = [name for name in names if name not in columns]
    if missing:
        raise RecordingError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(columns)}."
        )
    values = np.column_stack([columns[name] for name in names])
    dropped_rows = [
        row for finding in recording.findings for row in finding.rows if "drop" in str(finding)
    ]
    values = values[~np.isin(rows, dropped_rows)] if len(values) != len(recording) else values
    if len(values) != len(recording):
        raise RecordingError(
            f"{path} has {len(values)} rows of force and {len(recording)} of motion. Give a log in "
            "which both are in every row, one run without gaps."
        )
    return values


def _table(path: Path) -> tuple[dict[str, Array], Array]:
    """Columns by name, and row numbers."""
    if path.suffix.lower() == ".parquet":
        columns, _ = read_columns(path)
        return columns, np.arange(1, len(next(iter(columns.values()))) + 1)
    if path.suffix.lower() not in (".csv", ".tsv", ".txt", ".gz"):
        raise RecordingError(f"{path}: columns of force are read from CSV or Parquet files.")
    csv_table = read_csv_table(path)
    return {name: csv_table.values[:, i] for i, name in enumerate(csv_table.names)}, csv_table.rows
