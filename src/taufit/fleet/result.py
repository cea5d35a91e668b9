"""What a study of a fleet found, and how it is written down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.files import replacing
from taufit.core.names import clean_name
from taufit.core.parameters import joint_name
from taufit.fleet.fleet_prior import FleetPrior
from taufit.fleet.levels import Levels
from taufit.fleet.outliers import FleetOutlier
from taufit.fleet.robot_information import Failed
from taufit.fleet.trends import Trend
from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True, eq=False)
class RobotDay:
    """One robot on one day.

    Attributes:
        day: Its name.
        files, rows, seconds: How much there was.
        nrmse: Residuals over the torque's spread, of the robot's model, per joint.
        friction: Level of each joint by that day's data and the robot's other days.
        adjusted: The same at the usual temperature [N m].
        temperature: Of the joints [degC], or None.
    """

    day: str
    files: int
    rows: int
    seconds: float
    nrmse: Float[Array, " j"]
    friction: Levels
    adjusted: Float[Array, " j"]
    temperature: Float[Array, " j"] | None


@dataclass(frozen=True, slots=True, eq=False)
class RobotResult:
    """One robot.

    Attributes:
        robot: Its name.
        model: Its parameters by its own data and its siblings.
        files, rows, seconds: How much there was.
        nrmse: Residuals over the torque's spread, per joint.
        friction: Level of each joint, by its own data and its siblings.
        alone: The same by its own data.
        surprises: In what it is unlike the others, gravest first.
        days: One by one.
        trend: Over them.
    """

    robot: str
    model: FittedModel
    files: int
    rows: int
    seconds: float
    nrmse: Float[Array, " j"]
    friction: Levels
    alone: Levels
    surprises: tuple[FleetOutlier, ...]
    days: tuple[RobotDay, ...]
    trend: Trend

    @property
    def outlier(self) -> bool:
        """Whether it is unlike the others."""
        return bool(self.surprises)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "robot": self.robot,
            "files": self.files,
            "rows": self.rows,
            "nrmse": self.nrmse.tolist(),
            "friction": self.friction.value.tolist(),
            "friction_alone": self.alone.value.tolist(),
            "trend_per_day": _plain(self.trend.per_day),
            "outlier": self.outlier,
            "reasons": [one.message for one in self.surprises],
            "kinds": [one.kind for one in self.surprises],
            "days": len(self.days),
        }


@dataclass(frozen=True, slots=True, eq=False)
class FleetResult:
    """A fleet.

    Attributes:
        type: Name of the type of robot.
        robots: Worst first.
        typical: What they have in common, as a model a new arm can start from.
        siblings: The same with its spread.
        failed: Files that could not be used.
        incidents: Workers that were lost.
        slopes: Relative change of friction per kelvin, per joint; 0 where nothing shows it.
        named_from: Wear from which each joint is named on 19 of 20 robots, as a factor on its own
            friction; infinite where nothing can be said.
        rows: Of all recordings that were used.
    """

    type: str
    robots: tuple[RobotResult, ...]
    typical: FittedModel
    siblings: FleetPrior
    failed: tuple[Failed, ...]
    incidents: tuple[str, ...]
    slopes: Float[Array, " j"]
    named_from: Float[Array, " j"]
    rows: int

    def __repr__(self) -> str:
        odd = sum(one.outlier for one in self.robots)
        return (
            f"FleetResult({self.type}: {len(self.robots)} robots, {odd} unlike the others, "
            f"{len(self.failed)} files failed)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "type": self.type,
            "robots": [one.to_dict() for one in self.robots],
            "failed": [{"file": one.file, "why": one.why} for one in self.failed],
            "incidents": list(self.incidents),
            "friction_per_kelvin": self.slopes.tolist(),
            "wear_named_from": _plain(self.named_from),
            "rows": self.rows,
        }

    def write_table(self, path: Path) -> None:
        """Parquet with one row per robot and day."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = list(self._rows())
        table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
        with replacing(path) as place:
            pq.write_table(table, place)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for robot in self.robots:
            for day in robot.days:
                row: dict[str, Any] = {
                    "robot": robot.robot,
                    "day": day.day,
                    "files": day.files,
                    "rows": day.rows,
                    "seconds": day.seconds,
                    "mean_nrmse": float(np.mean(day.nrmse)),
                    "outlier": robot.outlier,
                    "reasons": "; ".join(one.message for one in robot.surprises),
                }
                for j in range(len(day.nrmse)):
                    own = joint_name(j)
                    warm = day.temperature
                    row[f"{own}.nrmse"] = float(day.nrmse[j])
                    row[f"{own}.friction"] = float(day.friction.value[j])
                    row[f"{own}.friction_std"] = float(day.friction.value[j] * day.friction.std[j])
                    row[f"{own}.friction_adjusted"] = float(day.adjusted[j])
                    row[f"{own}.temperature"] = None if warm is None else float(warm[j])
                    row[f"{own}.trend_per_day"] = float(robot.trend.per_day[j])
                yield row

    def file_name(self, robot: str) -> str:
        """Of a robot's model; one of its own also where a disk does not tell R0 from r0."""
        name = _file_name(robot)
        alike = [one for one in self.robots if _file_name(one.robot).casefold() == name.casefold()]
        if len(alike) > 1:
            name += (
                "-" + blake2b(robot.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
            )
        return f"{name}.json"


def _file_name(robot: str) -> str:
    return clean_name(robot).replace("/", "_") or "robot"


def _plain(values: Array) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]
