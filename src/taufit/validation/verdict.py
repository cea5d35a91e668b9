"""Verdict PASS or FAIL against acceptance limits, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.validation.grades import Grades
from taufit.validation.score import Score, short_name

# Largest mean nrmse without limits of the user and without grades.
DEFAULT_MEAN_NRMSE = 0.35


@dataclass(frozen=True, slots=True)
class AcceptanceLimits:
    """Acceptance limits on every recording; None for no limit.

    Attributes:
        mean_nrmse: Largest mean of nrmse over the joints.
        nrmse: Largest nrmse of any joint.
        rmse: Largest RMSE of any joint, or one limit per joint [N m].
        correlation: Smallest correlation of any joint.
    """

    mean_nrmse: float | None = None
    nrmse: float | None = None
    rmse: tuple[float, ...] | None = None
    correlation: float | None = None

    def __post_init__(self) -> None:
        single = [x for x in (self.mean_nrmse, self.nrmse, *(self.rmse or ())) if x is not None]
        if any(not np.isfinite(x) or x <= 0.0 for x in single):
            raise TaufitError("limits for errors are positive numbers.")
        if self.correlation is not None and not -1.0 <= self.correlation <= 1.0:
            raise TaufitError("a limit for the correlation lies between -1 and 1.")

    @property
    def has_limits(self) -> bool:
        return any(
            x is not None for x in (self.mean_nrmse, self.nrmse, self.rmse, self.correlation)
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a model.

    Attributes:
        passed: Whether every limit holds on every recording.
        reasons: Violated limits; for a pass, the limits that were applied.
    """

    passed: bool
    reasons: tuple[str, ...]

    @property
    def label(self) -> str:
        return "PASS" if self.passed else "FAIL"

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.label, "reasons": list(self.reasons)}


def verdict(
    scores: Sequence[Score], limits: AcceptanceLimits | None = None, grades: Grades | None = None
) -> Verdict:
    """Compare scores with the user's limits, else with their grades: poor fails.

    Without either, the mean nrmse must not exceed 0.35.
    """
    if grades is not None and (limits is None or not limits.has_limits):
        return Verdict(grades.overall != "poor", grades.reasons)
    limits = (
        limits if limits is not None and limits.has_limits else AcceptanceLimits(DEFAULT_MEAN_NRMSE)
    )
    reasons = []
    for score in scores:
        name = short_name(score.file)
        if limits.mean_nrmse is not None and not score.mean_nrmse <= limits.mean_nrmse:
            reasons.append(
                f"{name}: mean nrmse {score.mean_nrmse:.3f} exceeds {limits.mean_nrmse:g}"
            )
        if limits.nrmse is not None:
            reasons += [
                f"{name}: nrmse of joint {j + 1} is {x:.3f}, above {limits.nrmse:g}"
                for j, x in enumerate(score.nrmse)
                if not x <= limits.nrmse
            ]
        if limits.rmse is not None:
            bounds = limits.rmse
            if len(bounds) not in (1, len(score.rmse)):
                raise TaufitError(
                    f"{len(bounds)} RMSE limits were given for {len(score.rmse)} joints: give one, "
                    "or one per joint."
                )
            bounds = bounds * len(score.rmse) if len(bounds) == 1 else bounds
            reasons += [
                f"{name}: RMSE of joint {j + 1} is {x:.3g} N m, above {bound:g}"
                for j, (x, bound) in enumerate(zip(score.rmse, bounds, strict=True))
                if not x <= bound
            ]
        if limits.correlation is not None:
            reasons += [
                f"{name}: correlation of joint {j + 1} is {x:.3f}, below {limits.correlation:g}"
                for j, x in enumerate(score.correlation)
                if not x >= limits.correlation
            ]
    if reasons:
        return Verdict(False, tuple(reasons))
    limit_texts = [
        f"{label} {value:g}" if not isinstance(value, tuple) else f"{label} {list(value)}"
        for label, value in (
            ("mean nrmse <=", limits.mean_nrmse),
            ("nrmse <=", limits.nrmse),
            ("RMSE <=", limits.rmse),
            ("correlation >=", limits.correlation),
        )
        if value is not None
    ]
    from taufit.core.number_text import count_text

    return Verdict(True, (f"{', '.join(limit_texts)} on {count_text(len(scores), 'recording')}",))
