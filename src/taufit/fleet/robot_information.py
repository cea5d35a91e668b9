"""What a recording says about its robot, condensed: a triangle per joint and a few sums.

One pass: read, condition, diagnose, add up. Friction that grows with the load takes the nominal
arm's torque for it, so that what files say adds up exactly, whoever reads them and whenever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from taufit.calibration.mounting import estimate_gravity
from taufit.core.arrays import Array, Float, Int
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
from taufit.workflow.training_data import count_section_only, in_robot_order, with_drives

# Kinds of findings that say something about the robot, not about the file.
_OF_THE_ROBOT = ("mounting",)


@dataclass(frozen=True, slots=True, eq=False)
class RobotInformation:
    """What some recordings of one robot say; two of them add up.

    Attributes:
        files, rows, seconds: How much there was.
        information: On base columns, joint by joint, unweighted.
        torque: Sum of the torque in those rows, per joint.
        load: Sum of the nominal links' torque over samples, as magnitudes.
        correlation: Residuals are independent so many samples apart, times samples.
        samples: Samples in use.
        warmth, warm: Sum of joint temperatures over samples, and how many there were.
        gravity: Sum of gravity's direction over files that do not find it where it should be,
            each weighed by its certainty.
        weight: Sum of those weights.
        tilted: Findings about the mounting, in words.
    """

    files: int
    rows: int
    seconds: float
    information: tuple[Information, ...]
    torque: Float[Array, " j"]
    load: Float[Array, " j"]
    correlation: float
    samples: int
    warmth: Float[Array, " j"]
    warm: int
    gravity: Float[Array, " 3"]
    weight: float
    tilted: tuple[str, ...] = ()

    def __add__(self, other: RobotInformation) -> RobotInformation:
        return RobotInformation(
            self.files + other.files,
            self.rows + other.rows,
            self.seconds + other.seconds,
            add_information(self.information, other.information),
            self.torque + other.torque,
            self.load + other.load,
            self.correlation + other.correlation,
            self.samples + other.samples,
            self.warmth + other.warmth,
            self.warm + other.warm,
            self.gravity + other.gravity,
            self.weight + other.weight,
            (*self.tilted, *other.tilted),
        )

    @property
    def count(self) -> Int[Array, " j"]:
        return np.array([one.count for one in self.information])

    @property
    def spread(self) -> Float[Array, " j"]:
        """Standard deviation of the torque."""
        n = np.maximum(self.count, 1)
        zero = np.zeros(len(self.information[0].names))
        squares = np.array([one.cost(zero) for one in self.information])
        return np.sqrt(np.maximum(squares / n - (self.torque / n) ** 2, 1e-300))

    @property
    def temperature(self) -> Float[Array, " j"] | None:
        """Mean of each joint, where it was measured."""
        return self.warmth / self.warm if self.warm else None


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """A file that could not be used.

    Attributes:
        file: Its name.
        why: In words.
    """

    file: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class AccumulateFiles:
    """Files -> what they say, and which of them cannot be used.

    Attributes:
        model: Of the type of robot, with its nominal links.
        base: Its base parameters.
        cutoff_hz: Of the low-pass.
        read: Gives the runs of a file.
        read_rows: Gives some rows of a long one; None where files are read as a whole.
        settings: What decides, beside its content, what is read from a file.
    """

    model: TorqueModel
    base: BaseParameters
    cutoff_hz: float
    read: Callable[[Path], list[Recording]] = read_recordings
    read_rows: Callable[[Path, int, int], list[Recording]] | None = None
    settings: tuple[Any, ...] = ()

    def __call__(
        self, places: tuple[FleetFile, ...]
    ) -> tuple[RobotInformation | None, tuple[Failed, ...]]:
        total: RobotInformation | None = None
        failed: list[Failed] = []
        for place in places:
            try:
                with place.local() as path:
                    own = self.one(path, place.name)
                total = own if total is None else total + own
            except TaufitError as error:
                failed.append(Failed(place.name, _first_line(error)))
            except Exception as error:  # whatever a poisoned file makes a reader do
                failed.append(Failed(place.name, f"{type(error).__name__}: {error}"))
        return total, tuple(failed)

    def one(self, path: Path, name: str) -> RobotInformation:
        """One file, section by section where it is long."""
        files = RecordingFiles((path,), self.read, self.read_rows)
        total: RobotInformation | None = None
        for k in range(len(files)):
            part = self._part(files[k], name, diagnose=k == 0)
            total = part if total is None else total + part
        assert total is not None
        return replace(total, files=1)

    def _part(self, runs: list[Recording], name: str, *, diagnose: bool) -> RobotInformation:
        robot = self.model.robot
        ordered = [in_robot_order(robot, one, name) for one in runs]
        rows = sum(len(one.time) for one in ordered)
        _refuse([cause.finding for cause in recording_causes(robot, ordered)])
        side = with_drives(robot, ordered).drives.side
        if side != robot.drives.side:
            raise RecordingError(
                f"torque was measured at the {side}, in the fleet's other recordings at the "
                f"{robot.drives.side}. Study them separately."
            )
        ordered, _ = apply_declared_torque_kind(robot, ordered)
        samples = count_section_only(condition(ordered, cutoff_hz=self.cutoff_hz), ordered)
        found = self._diagnosed(ordered, samples) if diagnose else ((), np.zeros(3), 0.0)
        return self._summed(samples.with_column_cache(), rows, *found)

    def _diagnosed(
        self, runs: list[Recording], samples: Samples
    ) -> tuple[tuple[str, ...], Float[Array, " 3"], float]:
        """Findings about the mounting, and where gravity comes from then; other errors raise."""
        robot = self.model.robot
        found = [cause.finding for cause in sample_causes(robot, runs, samples)]
        _refuse([one for one in found if one.kind not in _OF_THE_ROBOT])
        tilted = tuple(one.message for one in found if one.kind in _OF_THE_ROBOT)
        gravity = estimate_gravity(robot, samples) if tilted else None
        if gravity is None:
            return tilted, np.zeros(3), 0.0
        weight = 1.0 / max(gravity.std, 1e-3) ** 2
        return tilted, weight * gravity.direction, weight

    def _summed(
        self,
        samples: Samples,
        rows: int,
        tilted: tuple[str, ...],
        gravity: Float[Array, " 3"],
        weight: float,
    ) -> RobotInformation:
        model, base = self.model, self.base
        load = model.nominal if needs(model.term_sum, "load") else None
        found: SampleRows = RowBuilder(model, load)(samples)
        regression = RowsInMemory(found, base)
        prior, centre = _prior(model)
        guess = max(1.0, samples.rate_hz / (2.0 * self.cutoff_hz))
        weak = MIN_PRIOR_FRACTION * NOMINAL_WEIGHT * guess * prior
        theta, _ = fit_with_prior(regression, weak, centre, model.nonnegative)
        each = correlation_samples(found.residuals(theta), found.keep, found.run)
        used = int(np.count_nonzero(found.keep.any(axis=1)))
        warm = samples.temperature is not None
        moving = samples.in_motion
        joints = samples.joints
        return RobotInformation(
            1,
            rows,
            used / samples.rate_hz,
            regression.by_joint,
            found.torque.sum(axis=0),
            np.abs(found.rigid_torque(model.nominal))[found.keep.any(axis=1)].sum(axis=0),
            float(np.mean(each)) * used,
            used,
            np.asarray(samples.temperature)[moving].sum(axis=0) if warm else np.zeros(joints),
            int(np.count_nonzero(moving)) if warm else 0,
            gravity,
            weight,
            tilted,
        )


@lru_cache(maxsize=4)
def _prior(model: TorqueModel) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    return gaussian_prior(model)[:2]


def _refuse(findings: list[Any]) -> None:
    grave = [finding for finding in findings if finding.severity == "error"]
    if grave:
        raise RecordingError(grave[0].message)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


Work = Callable[[tuple[FleetFile, ...]], tuple[RobotInformation | None, tuple[Failed, ...]]]
