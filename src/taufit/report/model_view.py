"""What a page about a model shows: the model, recordings, and their predicted torque, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import friction_torque, rigid_torque
from taufit.signals import Samples
from taufit.validation import Score
from taufit.validation.grades import Grades, achievable_nrmse, grade

if TYPE_CHECKING:
    from taufit.signs.unknown_signs import RecoveredSigns
    from taufit.validation.nominal_comparison import NominalComparison


@dataclass(frozen=True, slots=True, eq=False)
class ReportRun:
    """A recording the model is shown on.

    Attributes:
        name: What to call it.
        samples: Conditioned.
        score: The model's, on them.
        training: Whether the model was fitted to it.
    """

    name: str
    samples: Samples
    score: Score
    training: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TorqueBreakdown:
    """Torque the model predicts on one run, in parts.

    Attributes:
        links: Of the links alone.
        friction: Of friction alone, filtered as the measured torque was.
        total: Everything.
    """

    links: Float[Array, "n j"]
    friction: Float[Array, "n j"]
    total: Float[Array, "n j"]


def predict(model: FittedModel, samples: Samples) -> TorqueBreakdown:
    """One pass over the samples."""
    links = rigid_torque(model, samples)
    motor = model.columns.drive_at(samples, load=links)
    rest = model.columns.term_torque(model.values, samples.acceleration, motor)
    return TorqueBreakdown(links, friction_torque(model, samples, motor=motor), links + rest)


def _graded(model: FittedModel, runs: Sequence[ReportRun]) -> Grades | None:
    """Grades as `taufit check` gives them."""
    tested = [run for run in runs if not run.training] or list(runs)
    if not tested:
        return None
    return grade(
        [run.score for run in tested],
        [achievable_nrmse(model.robot, run.samples) for run in tested],
        on_holdout=any(not run.training for run in runs),
        training=model.training.score,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ModelView:
    """Everything the sections of a page about a model look at.

    Attributes:
        model: Fitted.
        runs: Recordings; the first is shown in full.
        predictions: One per run.
        warnings: Of the fit.
        nominal: How the robot's description did, or None.
        signs: Torque signs that had to be found, or None.
        dropped: Friction terms the data do not support.
        fitted_to: Samples of the fit, or None where the page is about a model file.
        grades: Of the runs it was not fitted to, else of its training; None without runs.
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

    @classmethod
    def of(
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
    ) -> ModelView:
        """With the torque of every run predicted."""
        return cls(
            model,
            tuple(runs),
            tuple(predict(model, run.samples) for run in runs),
            warnings or model.training.warnings,
            nominal,
            signs,
            dropped,
            fitted_to,
            _graded(model, runs) if grades is None else grades,
        )

    @property
    def joints(self) -> int:
        """How many."""
        return self.model.robot.joints

    def joint_label(self, joint: int) -> str:
        """Number and name."""
        return f"Joint {joint + 1}, {self.model.robot.joint_names[joint]}"
