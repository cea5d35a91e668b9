"""Data of a page about a model: model, recordings and predicted torque."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import friction_torque, rigid_torque
from taufit.signals import Samples
from taufit.validation import AcceptanceLimits, Score
from taufit.validation.grades import Grades, grade, recording_evidence

if TYPE_CHECKING:
    from taufit.signs.unknown_signs import RecoveredSigns
    from taufit.validation.nominal_comparison import NominalComparison


@dataclass(frozen=True, slots=True, eq=False)
class ReportRun:
    """A recording shown with the model.

    Attributes:
        name: Name of the recording.
        samples: Conditioned samples.
        score: Score of the model on them.
        training: Whether the model was fitted to it.
    """

    name: str
    samples: Samples
    score: Score
    training: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TorqueBreakdown:
    """Predicted torque of one run, in parts.

    Attributes:
        links: Torque of the links.
        friction: Torque of friction, filtered like the measured torque.
        total: Sum of all terms.
    """

    links: Float[Array, "n j"]
    friction: Float[Array, "n j"]
    total: Float[Array, "n j"]


def predict_breakdown(model: FittedModel, samples: Samples) -> TorqueBreakdown:
    """Predict the torque of samples, in parts."""
    links = rigid_torque(model, samples)
    motor = model.columns.drive_at(samples, load=links)
    drive_torque = model.columns.term_torque(model.values, samples.acceleration, motor)
    return TorqueBreakdown(
        links, friction_torque(model, samples, motor=motor), links + drive_torque
    )


def _grade_runs(model: FittedModel, runs: Sequence[ReportRun]) -> Grades | None:
    """Grade the runs as `taufit check` does."""
    graded_runs = [run for run in runs if not run.training] or list(runs)
    if not graded_runs:
        return None
    return grade(
        [run.score for run in graded_runs],
        [recording_evidence(model.robot, run.samples, run.score) for run in graded_runs],
        on_holdout=any(not run.training for run in runs),
        training=model.training.score,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ModelView:
    """Data for the sections of a page about a model.

    Attributes:
        model: Fitted model.
        runs: Recordings; the first is shown in detail.
        predictions: Predicted torque of each run.
        warnings: Warnings of the fit.
        nominal: Comparison with the nominal robot, or None.
        signs: Recovered torque signs, or None.
        dropped: Friction terms not supported by the data.
        fitted_to: Samples of the fit; None for a page about a model file.
        grades: Grades of hold-out runs, else of the training runs; None without runs.
        commands: Purposes and commands to run next.
        model_file: Path of the model file, "" if it was not written.
        limits: Acceptance limits of the user, or None.
    """

    model: FittedModel
    runs: tuple[ReportRun, ...]
    predictions: tuple[TorqueBreakdown, ...]
    warnings: tuple[str, ...] = ()
    nominal: NominalComparison | None = None
    signs: RecoveredSigns | None = None
    dropped: tuple[str, ...] = ()
    fitted_to: Samples | None = None
    grades: Grades | None = None
    commands: tuple[tuple[str, str], ...] = ()
    model_file: str = ""
    limits: AcceptanceLimits | None = None

    @classmethod
    def from_runs(  # noqa: PLR0913
        cls,
        model: FittedModel,
        runs: Sequence[ReportRun],
        *,
        warnings: tuple[str, ...] = (),
        nominal: NominalComparison | None = None,
        signs: RecoveredSigns | None = None,
        dropped: tuple[str, ...] = (),
        fitted_to: Samples | None = None,
        grades: Grades | None = None,
        commands: Sequence[tuple[str, str]] = (),
        model_file: str = "",
        limits: AcceptanceLimits | None = None,
    ) -> ModelView:
        """Predict the torque of every run and create the view."""
        return cls(
            model,
            tuple(runs),
            tuple(predict_breakdown(model, run.samples) for run in runs),
            warnings or model.training.warnings,
            nominal,
            signs,
            dropped,
            fitted_to,
            _grade_runs(model, runs) if grades is None else grades,
            tuple(commands),
            model_file,
            limits,
        )

    @property
    def joints(self) -> int:
        """Number of joints."""
        return self.model.robot.joints

    def joint_label(self, joint: int) -> str:
        """Number and name of a joint."""
        return f"Joint {joint + 1}, {self.model.robot.joint_names[joint]}"

    def short_label(self, joint: int) -> str:
        """Number and short name of a joint, for captions."""
        words = self.model.robot.joint_names[joint].replace("_", " ")
        words = words.removesuffix(" joint").removeprefix("joint ")
        number = str(joint + 1)
        return number if words in (number, f"a{number}") or not words else f"{number} {words}"

    def torque_unit(self, joint: int) -> str:
        """Unit of the generalised force of a joint."""
        return "N" if self.model.robot.is_prismatic[joint] else "N m"

    def speed_unit(self, joint: int) -> str:
        """Unit of the velocity of a joint."""
        return "m/s" if self.model.robot.is_prismatic[joint] else "rad/s"

    @staticmethod
    def command(*words: object) -> str:
        """Command as it can be pasted into a shell."""
        return f"taufit {shlex.join(map(str, words))}"
