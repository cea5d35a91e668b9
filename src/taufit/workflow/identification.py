"""What a fit gives: the model, its scores and everything that says how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.views import NotebookDisplay, draw
from taufit.estimators import is_consistent
from taufit.model.fitted_model import FittedModel
from taufit.model.information_share import measured_speed_range
from taufit.model.score import Score
from taufit.recording import Finding
from taufit.regression import Estimate
from taufit.signals import Samples
from taufit.temperature.apply import temperature_dependence
from taufit.terms import needs, term_to_dict
from taufit.validation.grades import Grades
from taufit.validation.nominal_comparison import NominalComparison

if TYPE_CHECKING:
    from taufit.temperature.warm_up import WarmUpChange


@dataclass(frozen=True, slots=True, eq=False)
class IdentificationResult(NotebookDisplay):
    """A fitted model and everything that says how far to trust it.

    Attributes:
        model: Fitted, with all that a model file holds.
        estimate: Its parameters with their uncertainty.
        samples: What it was fitted to, or an excerpt of at most 32,768 of them.
        training: Its score on all of them.
        holdout: Scores on recordings it has not seen.
        holdout_samples: Those recordings, conditioned like the training data.
        before: The nominal robot on the training data, or None where it has no inertia.
        warnings: What the user should know, gravest first.
        signs: What was found about torque signs, where they were not recorded.
        files: Its score on each run of the training data.
        grades: Of the model, per joint and overall.
        findings: What was found about the recordings, by kind and joint.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done.consistent, done.grades.overall, done.mean_holdout_nrmse < 0.2
        (True, 'good', True)
        >>> axes = done.plot_friction()
    """

    model: FittedModel
    estimate: Estimate
    samples: Samples
    training: Score
    holdout: tuple[Score, ...]
    holdout_samples: tuple[Samples, ...]
    before: NominalComparison | None
    warnings: tuple[str, ...]
    signs: Any
    files: tuple[Score, ...]
    grades: Grades
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        unseen = self.mean_holdout_nrmse
        share = self.training.mean_nrmse if unseen is None else unseen
        where = (
            "its training data" if unseen is None else f"{len(self.holdout)} unseen recording(s)"
        )
        name = self.model.robot.name
        return f"Identification({name}: {self.grades.overall}, nrmse {share:.3f} on {where})"

    def plot_torque(self, joints: Sequence[int] | None = None) -> Any:
        """Measured and predicted torque on the first unseen recording, or on the training data."""
        shown = self.holdout_samples[0] if self.holdout_samples else self.samples
        return draw("plot_torque", self.model, shown, joints)

    def plot_friction(self, joints: Sequence[int] | None = None) -> Any:
        """Friction over speed, with matplotlib; returns the axes. Joints count from 0."""
        return draw("plot_friction", self.model, joints)

    @property
    def consistent(self) -> bool:
        """Whether every link is physically possible and friction dissipates."""
        return is_consistent(self.model.structure, self.estimate.values)

    @property
    def mean_holdout_nrmse(self) -> float | None:
        """Mean over hold-out recordings and joints."""
        return float(np.mean([s.mean_nrmse for s in self.holdout])) if self.holdout else None

    @property
    def warm_up(self) -> WarmUpChange | None:
        """What warming up changes along the training motion; None where friction does not follow.

        Temperatures that were estimated, not measured, are left out.
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
            "rmse": self.training.rmse.tolist(),
            "nrmse": self.training.nrmse.tolist(),
            "mean_nrmse": self.training.mean_nrmse,
            "correlation": self.training.correlation.tolist(),
            "samples": self.training.samples,
            "seconds": self.training.seconds,
            "e_n": self.training.e_n,
            "mean_inside": self.training.mean_inside,
            "joint_zeros": _zeros(self.model),
            "friction_scatter": None if e.friction_scatter is None else e.friction_scatter.tolist(),
            "from_data": _from_data(self.model),
            "friction_seen_to": None
            if (known := measured_speed_range(self.model)) is None
            else known.seen.tolist(),
            "cutoff_hz": conditioning.cutoff_hz,
            "rate_hz": conditioning.rate_hz,
            "gains": None if conditioning.gain is None else conditioning.gain.tolist(),
            "gains_std": None if conditioning.gain_std is None else conditioning.gain_std.tolist(),
            "friction": term_to_dict(self.model.friction),
            "terms": [term_to_dict(term) for term in self.model.terms],
            "friction_dropped": list(e.dropped),
            "rotor_inertia": self.model.has("rotor"),
            "temperature": temperature_dependence(self.model),
            "warm_up": None if (warm := self.warm_up) is None else warm.to_dict(),
            "settings": dict(e.settings),
            "warnings": list(self.warnings),
            "findings": [finding.to_dict() for finding in self.findings],
            **self.grades.to_dict(),
            "files": [one.to_dict() for one in self.files],
            "holdout": [one.to_dict() for one in self.holdout],
            "mean_holdout_nrmse": self.mean_holdout_nrmse,
        }
        if self.before is not None:
            out["before_identification"] = {
                "rmse": self.before.nominal.rmse.tolist(),
                "e_n": self.before.nominal.e_n,
                "e_n_reduction": self.before.reduction,
            }
        if self.signs is not None:
            out |= self.signs.to_dict()
        return out


def _from_data(model: FittedModel) -> dict[str, Any] | None:
    """Shares by link and by friction term of each joint; None where nothing was believed before."""
    shares = model.training.from_data
    if shares is None:
        return None
    links = [link.name for link in model.robot.links]
    return {
        "links": dict(zip(links, shares.to_dict()["links"], strict=True)),
        "friction": [
            dict(zip(model.layout.drive_names, own, strict=True))
            for own in shares.to_dict()["terms"]
        ],
    }


def _zeros(model: FittedModel) -> dict[str, dict[str, float | bool | str]] | None:
    """Joint zeros with their standard deviations, by joint; None where none was looked for."""
    if model.training.joint_zero_std is None:
        return None
    from taufit.model.fitted_zeros import fitted_zeros

    return {
        zero.joint: {
            "value": zero.value,
            "std": zero.std,
            "unit": zero.unit,
            "identifiable": zero.identifiable,
        }
        for zero in fitted_zeros(model)
    }
