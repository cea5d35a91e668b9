"""Keywords of `identify`, for editors and type checkers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.estimators import Estimator
    from taufit.model.fitted_model import FittedModel
    from taufit.recording.read import Map
    from taufit.signs.hints import SignHint
    from taufit.terms import Term
    from taufit.terms.friction import Friction
    from taufit.workflow.inputs import File


class FitChoices(TypedDict, total=False):
    """Keywords of `identify`: the fields of `FitRequest`, for editors and type checkers."""

    column_map: Map | None
    torque_kind: str | None
    cutoff_hz: float | Literal["auto"]
    delay_s: float | tuple[float, ...] | Literal["auto"]
    torque_signs: Literal["recorded", "unknown"]
    friction: Friction | FittedModel | str | None
    terms: Sequence[Term | str]
    rotor_inertia: bool | None
    offset: bool
    compensator: str | Sequence[str] | None
    temperature: str
    joint_zeros: str | Sequence[str] | None
    joint_zero_std: float
    prismatic_zero_std: float
    estimator: Estimator | str | None
    sign_hints: Sequence[SignHint]
    sign_method: Literal["exact", "tree"]
    ignore_contradictions: bool
    allow_standing_joints: bool
    provenance: Mapping[str, Any] | None
    processes: int | None
    cache: Cache | File | None
    allow_repeats: bool
    callback: Callable[[], None] | None
