"""Settings of a fit as one object, shared by Python interface and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import (
    DEFAULT_CUTOFF_HZ,
    DEFAULT_SLIDE_ZERO_STD,
    DEFAULT_ZERO_STD,
)
from taufit.workflow.inputs import File, Reader

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.estimators import Estimator
    from taufit.recording.read import Map
    from taufit.signs.hints import SignHint
    from taufit.terms import Term
    from taufit.terms.friction import Friction
    from taufit.workflow.fit_choices import FitChoices


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FitRequest:
    """Settings of `identify`, one field per keyword, with defaults.

    Attributes:
        column_map, torque_kind, allow_repeats: Reading of files and frames.
        cutoff_hz, delay_s, torque_signs: Conditioning of recordings.
        friction, terms, rotor_inertia, offset, compensator, temperature: Terms of the model.
        joint_zeros, joint_zero_std, prismatic_zero_std: Joint zero offsets to estimate.
        estimator, sign_hints, sign_method: Estimation of parameters and signs.
        ignore_contradictions, allow_standing_joints: Tolerated contradictions, and whether joints
            that do not move make a poor model instead of an error.
        provenance: Data sources for the model file.
        processes, cache, callback: Execution of the fit.
        allow_repeats: Whether files with equal contents count separately.
    """

    column_map: Map | None = None
    torque_kind: str | None = None
    cutoff_hz: float | Literal["auto"] = DEFAULT_CUTOFF_HZ
    delay_s: float | tuple[float, ...] | Literal["auto"] = 0.0
    torque_signs: Literal["recorded", "unknown"] = "recorded"
    friction: Friction | FittedModel | str | None = "auto"
    terms: Sequence[Term | str] = ()
    rotor_inertia: bool | None = None
    offset: bool = True
    compensator: str | Sequence[str] | None = None
    temperature: str = "auto"
    joint_zeros: str | Sequence[str] | None = None
    joint_zero_std: float = DEFAULT_ZERO_STD
    prismatic_zero_std: float = DEFAULT_SLIDE_ZERO_STD
    estimator: Estimator | str | None = None
    sign_hints: Sequence[SignHint] = ()
    sign_method: Literal["exact", "tree"] = "exact"
    ignore_contradictions: bool = False
    allow_standing_joints: bool = False
    provenance: Mapping[str, Any] | None = None
    processes: int | None = 1
    cache: Cache | File | None = None
    allow_repeats: bool = False
    callback: Callable[[], None] | None = None

    @property
    def reader(self) -> Reader:
        """Reader of files and frames."""
        return Reader(self.column_map, self.torque_kind)

    @property
    def fixed_estimator(self) -> Estimator | None:
        """Requested estimator; None for the automatic one."""
        from taufit.estimators import as_estimator

        return as_estimator(self.estimator)

    @property
    def allows_standing_joints(self) -> bool:
        """Whether joints that do not move are no error."""
        return self.allow_standing_joints or self.ignore_contradictions

    @property
    def selects_terms(self) -> bool:
        """Whether friction terms are selected from the data."""
        return (
            isinstance(self.friction, str) and self.friction == "auto" and not self.fixed_estimator
        )


def apply_choices(request: FitRequest | None, choices: FitChoices, caller: str) -> FitRequest:
    """Request with single settings replaced; a TypeError names a keyword like a wrong one."""
    names = [field.name for field in fields(FitRequest)]
    for key in choices:
        if key not in names:
            matches = get_close_matches(key, [*names, "holdout"], n=1)
            hint = (
                f" Did you mean {matches[0]!r}?" if matches else f" There are {', '.join(names)}."
            )
            raise TypeError(f"{caller}() has no keyword {key!r}.{hint}")
    return replace(request or FitRequest(), **choices)
