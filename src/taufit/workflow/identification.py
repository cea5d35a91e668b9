"""Result of an identification: model, scores, grades and findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.names import RenamedAttribute
from taufit.core.notebook_display import NotebookDisplay, draw
from taufit.estimators import is_consistent
from taufit.model.fitted_model import FittedModel
from taufit.model.information_share import measured_speed_range
from taufit.model.score import Score
from taufit.recording import Finding
from taufit.regression import Estimate
from taufit.signals import Samples
from taufit.terms import needs, term_to_dict
from taufit.validation.grades import Grades
from taufit.validation.nominal_comparison import NominalComparison

if TYPE_CHECKING:
    from taufit.temperature.warm_up import WarmUpChange


@dataclass(frozen=True, slots=True, eq=False)
class IdentificationResult(NotebookDisplay):
    """Fitted model with scores, grades and findings.

    Attributes:
        model: Fitted model with its complete training record.
        estimate: Parameters with their uncertainty.
        samples: Training samples, or an excerpt of at most 32,768 of them.
        training_score: Score on all training data.
        holdout_scores: Scores on hold-out recordings.
        holdout_samples: Hold-out recordings, conditioned like the training data; beyond a hundred
            thousand rows only the first rows of each.
        nominal_comparison: Nominal robot on the training data, or None if it has no inertial
            parameters.
        warnings: Messages for the user, most severe first.
        signs: Recovered torque signs, if they were not recorded.
        files: Score on each run of the training data.
        grades: Grades of the model, per joint and overall.
        findings: Findings on the recordings, by kind and joint.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done.consistent, done.grades.overall, done.mean_holdout_nrmse < 0.2
        (True, 'excellent', True)
        >>> axes = done.plot_friction()
    """

    model: FittedModel
    estimate: Estimate
    samples: Samples
    training_score: Score
    holdout_scores: tuple[Score, ...]
    holdout_samples: tuple[Samples, ...]
    nominal_comparison: NominalComparison | None
    warnings: tuple[str, ...]
    signs: Any
    files: tuple[Score, ...]
    grades: Grades
    findings: tuple[Finding, ...] = ()

    # Former names of 0.1, accepted with a warning until 0.3.
    training = RenamedAttribute("training_score")
    holdout = RenamedAttribute("holdout_scores")
    before = RenamedAttribute("nominal_comparison")

    def __repr__(self) -> str:
        from taufit.core.number_text import count_text

        holdout = count_text(len(self.holdout_scores), "unseen recording")
        data_text = holdout if self.holdout_scores else "its training data"
        name, nrmse = self.model.robot.name, self.grades.unexplained
        joints = " ".join(format(x, ".3f") for x in self._judged_score.nrmse)
        return (
            f"IdentificationResult({name}: {self.grades.overall}, nrmse {nrmse:.3f} "
            f"on {data_text})\n"
            f"  nrmse per joint: {joints}\n"
            f"  {count_text(len(self.warnings), 'warning')}; see .model, .warnings, .plot()"
        )

    @property
    def _judged_score(self) -> Score:
        return self.holdout_scores[0] if self.holdout_scores else self.training_score

    def plot(self, joints: Sequence[int] | None = None) -> Any:
        """Plot measured and predicted torque with matplotlib, in the colours of the report."""
        return self.plot_torque(joints)

    def plot_torque(self, joints: Sequence[int] | None = None) -> Any:
        """Plot measured and predicted torque on the first hold-out recording, or on the training
        data.
        """
        samples = self.holdout_samples[0] if self.holdout_samples else self.samples
        return draw("plot_torque", self.model, samples, joints)

    def plot_friction(self, joints: Sequence[int] | None = None) -> Any:
        """Plot friction over speed with matplotlib; returns the axes. Joints count from 0."""
        return draw("plot_friction", self.model, joints)

    @property
    def consistent(self) -> bool:
        """Whether every link is physically consistent and friction is dissipative."""
        return is_consistent(self.model.structure, self.estimate.values)

    @property
    def mean_holdout_nrmse(self) -> float | None:
        """Mean nrmse over hold-out recordings and measured joints; None without hold-out data."""
        return self.grades.unexplained if self.holdout_scores else None

    @property
    def warm_up(self) -> WarmUpChange | None:
        """Effect of the warm-up on torque along the training motion.

        None if friction does not depend on measured temperature.
        """
        if self.model.training.thermal is not None or not needs(self.model.term_sum, "temperature"):
            return None
        from taufit.temperature.warm_up import warm_up

        return warm_up(self.model, self.samples)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        e, conditioning = self.estimate, self.model.training.conditioning
        links = sum(name.startswith("link") for name in e.base_names)
        out: dict[str, Any] = {
            "robot": self.model.robot.name,
            "base_parameters": len(e.base_names),
            "base_parameters_links": links,
            "condition_number": e.condition_number,
            "consistent": self.consistent,
            "rmse": self.training_score.rmse.tolist(),
            "nrmse": self.training_score.nrmse.tolist(),
            "mean_nrmse": self.training_score.mean_nrmse,
            "correlation": self.training_score.correlation.tolist(),
            "samples": self.training_score.samples,
            "seconds": self.training_score.seconds,
            "e_n": self.training_score.e_n,
            "mean_inside": self.training_score.mean_inside,
            "joint_zeros": _zero_offsets(self.model),
            "friction_scatter": None if e.friction_scatter is None else e.friction_scatter.tolist(),
            "from_data": _information_shares(self.model),
            "friction_seen_to": None
            if (speed_range := measured_speed_range(self.model)) is None
            else speed_range.measured.tolist(),
            "cutoff_hz": conditioning.cutoff_hz,
            "rate_hz": conditioning.rate_hz,
            "delay_s": np.atleast_1d(conditioning.delay_s).tolist(),
            "gains": None if conditioning.gain is None else conditioning.gain.tolist(),
            "gains_std": None if conditioning.gain_std is None else conditioning.gain_std.tolist(),
            "friction": term_to_dict(self.model.friction_model),
            "terms": [term_to_dict(term) for term in self.model.terms],
            "friction_dropped": list(e.dropped),
            "rotor_inertia": self.model.has("rotor"),
            "temperature": _temperature_dependence(self.model),
            "warm_up": None if (warm := self.warm_up) is None else warm.to_dict(),
            "settings": dict(e.settings),
            "warnings": list(self.warnings),
            "findings": [finding.to_dict() for finding in self.findings],
            **self.grades.to_dict(),
            "files": [file_score.to_dict() for file_score in self.files],
            "holdout": [file_score.to_dict() for file_score in self.holdout_scores],
            "mean_holdout_nrmse": self.mean_holdout_nrmse,
        }
        if self.nominal_comparison is not None:
            out["before_identification"] = {
                "rmse": self.nominal_comparison.nominal.rmse.tolist(),
                "e_n": self.nominal_comparison.nominal.e_n,
                "e_n_reduction": self.nominal_comparison.reduction,
            }
        if self.signs is not None:
            out |= self.signs.to_dict()
        return out


def _temperature_dependence(model: FittedModel) -> dict[str, Any] | None:
    """Temperature dependence of friction, as plain data; None if there is none."""
    if not needs(model.term_sum, "temperature"):
        return None
    from taufit.temperature.apply import temperature_dependence

    return temperature_dependence(model)


def _information_shares(model: FittedModel) -> dict[str, Any] | None:
    """Information shares by link and by friction term of each joint; None without prior."""
    shares = model.training.from_data
    if shares is None:
        return None
    links = [link.name for link in model.robot.links]
    return {
        "links": dict(zip(links, shares.to_dict()["links"], strict=True)),
        "friction": [
            dict(zip(model.layout.drive_names, joint_shares, strict=True))
            for joint_shares in shares.to_dict()["terms"]
        ],
    }


def _zero_offsets(model: FittedModel) -> dict[str, dict[str, float | bool | str]] | None:
    """Joint zero offsets with standard deviations, by joint; None if none was estimated."""
    if model.training.joint_zero_std is None:
        return None
    from taufit.model.fitted_zeros import zero_offsets_of_model

    return {
        zero.joint: {
            "value": zero.value,
            "std": zero.std,
            "unit": zero.unit,
            "identifiable": zero.identifiable,
        }
        for zero in zero_offsets_of_model(model)
    }
