"""Information of recordings about their robot: a triangular factor per joint and a few sums.

One pass: read, condition, diagnose, accumulate. Load-dependent friction uses the nominal robot's
torque as load, so that the information of files adds up exactly, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from taufit.calibration.mounting import estimate_gravity
from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, TaufitError
from taufit.diagnosis import apply_declared_torque_kind, recording_causes, sample_causes
from taufit.dynamics import BaseParameters
from taufit.fitting.selection.friction_terms import (
    MIN_PRIOR_FRACTION,
    NOMINAL_WEIGHT,
    correlation_samples,
    fit_with_prior,
    gaussian_prior,
)
from taufit.fleet.fleet_files import FleetFile
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording
from taufit.recording.files import RecordingFiles
from taufit.recording.read import read_recordings
from taufit.regression.information import Information
from taufit.regression.regression import RowsInMemory
from taufit.regression.rows import RowBuilder, SampleRows, add_information
from taufit.signals import Samples, condition
from taufit.terms import needs
from taufit.workflow.training_data import in_robot_order, select_section, with_drives

# Kinds of findings on the robot instead of the file.
_ROBOT_FINDING_KINDS = ("mounting",)


@dataclass(frozen=True, slots=True, eq=False)
class RobotInformation:
    """Accumulated information of recordings of one robot; sums merge.

    Attributes:
        files, rows, seconds: Amount of data.
        information: Information on base columns, joint by joint, unweighted.
        torque: Sum of the torque of those rows, per joint.
        load: Sum of the magnitude of the nominal links' torque.
        correlation_sum: Correlation length of residuals in samples, times samples.
        samples: Number of samples used.
        temperature_sum, temperature_count: Sum of joint temperatures, and its number of samples.
        gravity_sum: Weighted sum of gravity directions over files whose gravity contradicts the
            mounting.
        gravity_weight: Sum of those weights.
        mounting_findings: Messages about the mounting.
    """

    files: int
    rows: int
    seconds: float
    information: tuple[Information, ...]
    torque: Float[Array, " j"]
    load: Float[Array, " j"]
    correlation_sum: float
    samples: int
    temperature_sum: Float[Array, " j"]
    temperature_count: int
    gravity_sum: Float[Array, " 3"]
    gravity_weight: float
    mounting_findings: tuple[str, ...] = ()

    def __add__(self, other: RobotInformation) -> RobotInformation:
        return RobotInformation(
            self.files + other.files,
            self.rows + other.rows,
            self.seconds + other.seconds,
            add_information(self.information, other.information),
            self.torque + other.torque,
            self.load + other.load,
            self.correlation_sum + other.correlation_sum,
            self.samples + other.samples,
            self.temperature_sum + other.temperature_sum,
            self.temperature_count + other.temperature_count,
            self.gravity_sum + other.gravity_sum,
            self.gravity_weight + other.gravity_weight,
            (*self.mounting_findings, *other.mounting_findings),
        )

    @property
    def count(self) -> Int[Array, " j"]:
        return np.array([joint_information.count for joint_information in self.information])

    @property
    def torque_std(self) -> Float[Array, " j"]:
        """Standard deviation of the torque."""
        n = np.maximum(self.count, 1)
        zero = np.zeros(len(self.information[0].names))
        squares = np.array([joint_information.cost(zero) for joint_information in self.information])
        return np.sqrt(np.maximum(squares / n - (self.torque / n) ** 2, 1e-300))

    @property
    def temperature(self) -> Float[Array, " j"] | None:
        """Mean temperature of each joint, if measured."""
        return self.temperature_sum / self.temperature_count if self.temperature_count else None


@dataclass(frozen=True, slots=True, eq=False)
class FailedFile:
    """File that could not be used.

    Attributes:
        file: Name of the file.
        reason: Error message.
    """

    file: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class AccumulateFiles:
    """Accumulate the information of files; files that cannot be used are reported.

    Attributes:
        model: Torque model of the type, with its nominal links.
        base: Base parameters of the model.
        cutoff_hz: Cut-off of the low-pass [Hz].
        read: Function that reads the runs of a file.
        read_rows: Function that reads some rows of a long file; None to read complete files.
        settings: Settings of reading, for the cache.
    """

    model: TorqueModel
    base: BaseParameters
    cutoff_hz: float
    read: Callable[[Path], list[Recording]] = read_recordings
    read_rows: Callable[[Path, int, int], list[Recording]] | None = None
    settings: tuple[Any, ...] = ()

    def __call__(
        self, files: tuple[FleetFile, ...]
    ) -> tuple[RobotInformation | None, tuple[FailedFile, ...]]:
        total: RobotInformation | None = None
        failed: list[FailedFile] = []
        for file in files:
            try:
                with file.local() as path:
                    file_information = self.accumulate_file(path, file.name)
                total = file_information if total is None else total + file_information
            except TaufitError as error:
                failed.append(FailedFile(file.name, _first_line(error)))
            except Exception as error:  # readers may fail in any way on damaged files
                failed.append(FailedFile(file.name, f"{type(error).__name__}: {error}"))
        return total, tuple(failed)

    def accumulate_file(self, path: Path, name: str) -> RobotInformation:
        """Information of one file, section by section if it is long."""
        files = RecordingFiles((path,), self.read, self.read_rows)
        total: RobotInformation | None = None
        for k in range(len(files)):
            part = self._accumulate_runs(files[k], name, diagnose=k == 0)
            total = part if total is None else total + part
        assert total is not None
        return replace(total, files=1)

    def _accumulate_runs(
        self, runs: list[Recording], name: str, *, diagnose: bool
    ) -> RobotInformation:
        robot = self.model.robot
        ordered = [in_robot_order(robot, recording, name) for recording in runs]
        rows = sum(len(recording.time) for recording in ordered)
        _raise_on_errors([cause.finding for cause in recording_causes(robot, ordered)])
        side = with_drives(robot, ordered).drives.side
        if side != robot.drives.side:
            raise RecordingError(
                f"torque was measured at the {side}, in the fleet's other recordings at the "
                f"{robot.drives.side}. Study them separately."
            )
        ordered, _ = apply_declared_torque_kind(robot, ordered)
        samples = select_section(condition(ordered, cutoff_hz=self.cutoff_hz), ordered)
        mounting = self._diagnose_mounting(ordered, samples) if diagnose else ((), np.zeros(3), 0.0)
        return self._sum_samples(samples.with_column_cache(), rows, *mounting)

    def _diagnose_mounting(
        self, runs: list[Recording], samples: Samples
    ) -> tuple[tuple[str, ...], Float[Array, " 3"], float]:
        """Findings on the mounting, and the weighted gravity direction; other errors raise."""
        robot = self.model.robot
        findings = [cause.finding for cause in sample_causes(robot, runs, samples)]
        _raise_on_errors(
            [finding for finding in findings if finding.kind not in _ROBOT_FINDING_KINDS]
        )
        messages = tuple(
            finding.message for finding in findings if finding.kind in _ROBOT_FINDING_KINDS
        )
        gravity = estimate_gravity(robot, samples) if messages else None
        if gravity is None:
            return messages, np.zeros(3), 0.0
        weight = 1.0 / max(gravity.std, 1e-3) ** 2
        return messages, weight * gravity.direction, weight

    def _sum_samples(
        self,
        samples: Samples,
        rows: int,
        mounting_findings: tuple[str, ...],
        gravity: Float[Array, " 3"],
        weight: float,
    ) -> RobotInformation:
        model, base = self.model, self.base
        load = model.nominal if needs(model.term_sum, "load") else None
        sample_rows: SampleRows = RowBuilder(model, load)(samples)
        regression = RowsInMemory(sample_rows, base)
        prior, centre = _prior(model)
        guess = max(1.0, samples.rate_hz / (2.0 * self.cutoff_hz))
        weak_prior = MIN_PRIOR_FRACTION * NOMINAL_WEIGHT * guess * prior
        theta, _ = fit_with_prior(regression, weak_prior, centre, model.nonnegative)
        correlation = correlation_samples(
            sample_rows.residuals(theta), sample_rows.keep, sample_rows.run
        )
        sample_count = int(np.count_nonzero(sample_rows.keep.any(axis=1)))
        has_temperature = samples.temperature is not None
        moving = samples.in_motion
        joints = samples.joints
        return RobotInformation(
            1,
            rows,
            sample_count / samples.rate_hz,
            regression.by_joint,
            sample_rows.torque.sum(axis=0),
            np.abs(sample_rows.rigid_torque(model.nominal))[sample_rows.keep.any(axis=1)].sum(
                axis=0
            ),
            float(np.mean(correlation)) * sample_count,
            sample_count,
            np.asarray(samples.temperature)[moving].sum(axis=0)
            if has_temperature
            else np.zeros(joints),
            int(np.count_nonzero(moving)) if has_temperature else 0,
            gravity,
            weight,
            mounting_findings,
        )


@lru_cache(maxsize=4)
def _prior(model: TorqueModel) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    return gaussian_prior(model)[:2]


def _raise_on_errors(findings: list[Any]) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise RecordingError(errors[0].message)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


Work = Callable[[tuple[FleetFile, ...]], tuple[RobotInformation | None, tuple[FailedFile, ...]]]
