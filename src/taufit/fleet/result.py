"""Result of a fleet study, with its table and JSON form."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.names import RenamedAttribute, clean_name
from taufit.core.parameters import joint_name
from taufit.fleet.fleet_prior import FleetPrior
from taufit.fleet.levels import FrictionLevels
from taufit.fleet.outliers import FleetOutlier
from taufit.fleet.robot_information import FailedFile
from taufit.fleet.trends import FrictionTrend
from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True, eq=False)
class RobotDay:
    """Result of one robot on one day.

    Attributes:
        day: Name of the day.
        files, rows, seconds: Amount of data.
        nrmse: Nrmse of the robot's model, per joint.
        friction: Friction level of each joint, by that day's data and the robot's other days.
        friction_at_reference: Friction level at the reference temperature [N m].
        temperature: Mean joint temperature [degC], or None.
    """

    day: str
    files: int
    rows: int
    seconds: float
    nrmse: Float[Array, " j"]
    friction: FrictionLevels
    friction_at_reference: Float[Array, " j"]
    temperature: Float[Array, " j"] | None


@dataclass(frozen=True, slots=True, eq=False)
class RobotResult:
    """Result of one robot.

    Attributes:
        robot: Name of the robot.
        model: Model by its own data and the fleet prior.
        files, rows, seconds: Amount of data.
        nrmse: Nrmse per joint.
        friction: Friction level of each joint, by its own data and the fleet prior.
        own_friction: Friction level by its own data.
        outliers: Deviations from the others, most severe first.
        days: Results of single days.
        trend: Trend over the days.
    """

    robot: str
    model: FittedModel
    files: int
    rows: int
    seconds: float
    nrmse: Float[Array, " j"]
    friction: FrictionLevels
    own_friction: FrictionLevels
    outliers: tuple[FleetOutlier, ...]
    days: tuple[RobotDay, ...]
    trend: FrictionTrend

    # Former names of 0.1, accepted with a warning until 0.3.
    surprises = RenamedAttribute("outliers")
    outlier = RenamedAttribute("is_outlier")

    @property
    def is_outlier(self) -> bool:
        """Whether it deviates from the others."""
        return bool(self.outliers)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "robot": self.robot,
            "files": self.files,
            "rows": self.rows,
            "nrmse": self.nrmse.tolist(),
            "friction": self.friction.value.tolist(),
            "friction_alone": self.own_friction.value.tolist(),
            "trend_per_day": _to_json_list(self.trend.per_day),
            "outlier": self.is_outlier,
            "reasons": [outlier.message for outlier in self.outliers],
            "kinds": [outlier.kind for outlier in self.outliers],
            "days": len(self.days),
        }


@dataclass(frozen=True, slots=True, eq=False)
class FleetResult:
    """Result of a fleet study.

    Attributes:
        type: Name of the type of robot.
        robots: Robots, largest deviation first.
        typical: Model of the type's mean, a start for a new robot.
        fleet_prior: Prior distribution of the type.
        failed: Files that could not be used.
        incidents: Lost workers.
        temperature_slopes: Relative change of friction per kelvin, per joint; 0 if not
            identifiable.
        detectable_rise: Rise of friction detected in each joint on 19 of 20 robots, as a factor;
            infinite if unknown.
        rows: Number of rows of all recordings used.
    """

    type: str
    robots: tuple[RobotResult, ...]
    typical: FittedModel
    fleet_prior: FleetPrior
    failed: tuple[FailedFile, ...]
    incidents: tuple[str, ...]
    temperature_slopes: Float[Array, " j"]
    detectable_rise: Float[Array, " j"]
    rows: int

    def __repr__(self) -> str:
        outlier_count = sum(robot.is_outlier for robot in self.robots)
        return (
            f"FleetResult({self.type}: {len(self.robots)} robots, {outlier_count} unlike the "
            f"others, {len(self.failed)} files failed)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "type": self.type,
            "robots": [item.to_dict() for item in self.robots],
            "failed": [{"file": item.file, "why": item.reason} for item in self.failed],
            "incidents": list(self.incidents),
            "friction_per_kelvin": self.temperature_slopes.tolist(),
            "wear_named_from": _to_json_list(self.detectable_rise),
            "rows": self.rows,
        }

    def write_table(self, path: Path) -> None:
        """Write a Parquet table with one row per robot and day."""
        from taufit.recording.writers.to_parquet import write_columns

        rows = list(self._table_rows())
        write_columns(path, {name: np.array([row[name] for row in rows]) for name in rows[0]})

    def _table_rows(self) -> Iterator[dict[str, Any]]:
        for robot in self.robots:
            for day in robot.days:
                row: dict[str, Any] = {
                    "robot": robot.robot,
                    "day": day.day,
                    "files": day.files,
                    "rows": day.rows,
                    "seconds": day.seconds,
                    "mean_nrmse": float(np.mean(day.nrmse)),
                    "outlier": robot.is_outlier,
                    "reasons": "; ".join(outlier.message for outlier in robot.outliers),
                }
                for j in range(len(day.nrmse)):
                    prefix = joint_name(j)
                    temperature = day.temperature
                    row[f"{prefix}.nrmse"] = float(day.nrmse[j])
                    row[f"{prefix}.friction"] = float(day.friction.value[j])
                    row[f"{prefix}.friction_std"] = float(
                        day.friction.value[j] * day.friction.std[j]
                    )
                    row[f"{prefix}.friction_adjusted"] = float(day.friction_at_reference[j])
                    row[f"{prefix}.temperature"] = (
                        np.nan if temperature is None else float(temperature[j])
                    )
                    row[f"{prefix}.trend_per_day"] = float(robot.trend.per_day[j])
                yield row

    def file_name(self, robot: str) -> str:
        """File name of a robot's model, unique also on case-insensitive disks."""
        name = _safe_file_name(robot)
        equal_names = [
            other
            for other in self.robots
            if _safe_file_name(other.robot).casefold() == name.casefold()
        ]
        if len(equal_names) > 1:
            name += (
                "-" + blake2b(robot.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
            )
        return f"{name}.json"


def _safe_file_name(robot: str) -> str:
    return clean_name(robot).replace("/", "_") or "robot"


def _to_json_list(values: Array) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]
