"""Payload identification of a recording by one of the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.names import renamed_keywords
from taufit.core.threads import one_blas_thread
from taufit.model.fitted_model import FittedModel
from taufit.payload.estimate import PayloadEstimate, interval
from taufit.payload.filter import PayloadEvent, PayloadFilter
from taufit.payload.filter.posterior_summary import NOT_READY
from taufit.payload.periodic_reader import PayloadReader
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import Stream, stream
from taufit.payload.unsigned_torque import (
    PayloadSigns,
    is_unsigned,
    recover_payload_signs,
    widen_intervals,
)
from taufit.recording import Recording

# Rated payloads by robot name [kg].
RATED_PAYLOADS = {
    "ur3": 3.0, "ur3e": 3.0, "ur5": 5.0, "ur5e": 5.0, "ur10": 10.0, "ur10e": 12.5,
    "panda": 3.0, "fr3": 3.0, "iiwa7": 7.0, "iiwa14": 14.0, "kr5": 5.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MassReading:
    """Estimate of the mass at one time, from the samples up to then."""

    t: float
    mass: float
    low: float
    high: float
    ready: bool


@dataclass(frozen=True, slots=True, eq=False)
class PayloadRun:
    """Result of a payload identification.

    Attributes:
        method: Name of the method.
        estimate: Estimate at the end of the recording.
        ready_at: Time when the estimate became ready, from the recording's start [s], or None.
        stopped_at: Time when the required accuracy was reached [s], or None.
        history: Estimates of the mass over time.
        events: Picks, drops, gaps.
        budget: Fraction of each error source in the variance of the mass.
        advice: Recommendation to reduce the interval.
        warnings: Messages for the user.
        details: Values specific to the method.
        flange: Flange frame in the last link's frame.
        too_heavy: Message if the mass exceeds the rated payload; else "".
        ready_means: Description of the accuracy at which the mass is ready; "" for methods without
            intervals.
    """

    method: str
    estimate: PayloadEstimate
    ready_at: float | None
    stopped_at: float | None
    history: tuple[MassReading, ...] = ()
    events: tuple[PayloadEvent, ...] = ()
    budget: Mapping[str, float] = field(default_factory=dict)
    advice: str = ""
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    flange: Float[Array, "4 4"] = field(default_factory=lambda: np.eye(4))
    ready_means: str = ""
    too_heavy: str = ""

    def __repr__(self) -> str:
        from taufit.core.number_text import count_text

        state = "never ready" if self.ready_at is None else f"ready at {self.ready_at:.1f} s"
        return (
            f"PayloadRun({self.method}, {state})\n  {self.estimate!r}\n"
            f"  {count_text(len(self.warnings), 'warning')}; see .estimate, .history, .events"
        )

    @property
    def refusal(self) -> str:
        """Reason why the result must not be used; "" if it may."""
        estimate = self.estimate
        if estimate.unexplained:
            return estimate.unexplained
        if estimate.has_intervals and not estimate.ready:
            return NOT_READY
        return self.too_heavy or _inconsistency_message(estimate)

    def set_payload(self) -> dict[str, Any] | None:
        """Payload values and commands for robot controllers, in the flange frame.

        Returns None if the result must not be used (`refusal`).
        """
        return None if self.refusal else self.estimate.set_payload(self.flange)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        estimate = self.estimate.to_dict()
        if self.refusal:
            # A refused result has no intervals.
            for name in ("mass", "com", "inertia"):
                estimate[name] |= {"low": None, "high": None}
        return {
            "method": self.method,
            "refused": self.refusal or None,
            **estimate,
            # Methods without intervals do not know when they are ready.
            "ready": self.estimate.ready if self.estimate.has_intervals else None,
            "ready_means": self.ready_means,
            "empty": self.estimate.empty,
            "ready_at": self.ready_at,
            "stopped_at": self.stopped_at,
            "events": [event.to_dict() for event in self.events],
            "budget": dict(self.budget),
            "advice": self.advice,
            "set_payload": self.set_payload(),
            "frame": "last link's frame; inertia about the centre of mass",
            "warnings": list(self.warnings),
            **dict(self.details),
            "history": [
                {"t": m.t, "mass": m.mass, "low": m.low, "high": m.high, "ready": m.ready}
                if self.estimate.has_intervals
                else {"t": m.t, "mass": m.mass, "low": None, "high": None, "ready": None}
                for m in self.history
            ],
        }


def run_filter(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Recording | Sequence[Recording] | None = None,
    callback: Callable[[PayloadFilter, PayloadEstimate], None] | None = None,
) -> PayloadRun:
    """Run the Bayesian filter sample by sample, evaluated ten times per second."""
    gain_std = minimum_gain_std(source.gain_std, settings, model.robot.joints)
    payload_filter = PayloadFilter(model, settings, gain_std=gain_std)
    if template is not None:
        from taufit.payload.template import Template

        runs = [template] if isinstance(template, Recording) else list(template)
        payload_filter.template = Template(
            model, [stream(model, run) for run in runs], payload_filter
        )
    reader = PayloadReader(payload_filter)
    history: list[MassReading] = []

    def append_reading(estimate: PayloadEstimate) -> None:
        history.append(
            MassReading(estimate.time, estimate.mass, *estimate.mass_interval, estimate.ready)
        )
        if callback is not None:
            callback(payload_filter, estimate)

    for sample in source.samples():
        newest = reader.feed(*sample)
        if newest is not None:
            append_reading(newest)
    estimate = reader.finish()
    if history and history[-1].t == estimate.time:
        history.pop()
    append_reading(estimate)
    budget = payload_filter.budget()
    warnings = [*source.warnings, *estimate.warnings]
    if payload_filter.template is not None and payload_filter.template.match_fraction < 0.9:
        warnings.append(
            f"only {100 * payload_filter.template.match_fraction:.0f} % of the motion is in the "
            f"template; the rest "
            "was left out. Record the same motion empty."
        )
    return PayloadRun(
        "filter" if template is None else "filter (template)",
        estimate,
        reader.ready_at,
        reader.stopped_at,
        tuple(history),
        tuple(payload_filter.events),
        budget,
        accuracy_advice(budget, estimate),
        tuple(dict.fromkeys(warnings)),
        {
            "gain_errors": payload_filter.gain_errors.tolist(),
            "samples": payload_filter.samples,
            "first_moment": _first_moment(payload_filter),
        },
    )


def _first_moment(payload_filter: PayloadFilter) -> dict[str, list[float]]:
    """Mass times centre in the last link's frame, with intervals [kg m]: no prior on the place."""
    values, covariance = payload_filter.posterior().linear()
    low, high = interval(values[1:4], np.sqrt(np.diag(covariance)[1:4]))
    return {"value": values[1:4].tolist(), "low": low.tolist(), "high": high.tolist()}


def minimum_gain_std(
    gain_std: Float[Array, " j"] | None, settings: PayloadSettings, joints: int
) -> Float[Array, " j"]:
    """Relative standard deviations of the drive gains, not below that of drives of one type."""
    if gain_std is None:
        return np.full(joints, settings.gain_std)
    return np.maximum(gain_std, settings.gain_std)


def accuracy_advice(budget: Mapping[str, float], estimate: PayloadEstimate) -> str:
    """Recommend how to reduce the interval, from the largest error source."""
    if not budget:
        return ""
    if not estimate.ready:
        return "Move the joints that carry the payload (2 and 3 on most arms) up and down."
    largest = max(budget, key=lambda name: budget[name])
    return {
        "noise": "Noise dominates: let the arm move longer, or wider and faster.",
        "links": "The arm's own model dominates: fit it to more recordings of the empty arm, or "
        "record the same motion empty and use it as a template.",
        "friction": "Friction dominates: move each joint both ways at several speeds, warm the arm "
        "up as when the model was fitted.",
        "gains": "Drive gains dominate, and no motion shrinks that: calibrate them with a known "
        "mass, or give better ones in the column map.",
    }[largest]


def _overload_message(model: FittedModel, estimate: PayloadEstimate) -> str:
    rated_mass = RATED_PAYLOADS.get(model.robot.name.lower())
    robot_mass = float(model.robot.parameters[model.robot.layout.masses].sum())
    if rated_mass is not None and estimate.mass_interval[0] > rated_mass:
        return (
            f"the payload of {estimate.mass:.2f} kg is heavier than the {rated_mass:g} kg this "
            f"arm is "
            "rated for: check drive gains, mounting and the model before you use it."
        )
    if rated_mass is None and estimate.mass_interval[0] > 0.7 * robot_mass > 0.0:
        return (
            f"the payload of {estimate.mass:.2f} kg is more than most arms of {robot_mass:.0f} "
            f"kg carry: "
            "check drive gains, mounting and the model before you use it."
        )
    return ""


def _inconsistency_message(estimate: PayloadEstimate) -> str:
    """Reason why no body has these values, for methods that do not enforce consistency; or ""."""
    moments = (
        np.linalg.eigvalsh(estimate.inertia) if np.isfinite(estimate.inertia).all() else [np.nan]
    )
    # Tolerance for methods without uncertainty: a tenth of the largest moment.
    tolerance = 0.1 * float(np.max(np.abs(moments)))
    if (
        not (np.isfinite(estimate.mass) and np.isfinite(estimate.centre).all())
        or estimate.mass < 0.0
    ):
        return f"no body has a mass of {estimate.mass:.3f} kg: use the method filter."
    if estimate.empty:
        return ""
    if not (min(moments) >= -tolerance and 2.0 * max(moments) <= sum(moments) + tolerance):
        return (
            "no body has this inertia (a moment is negative or too large): use the method filter."
        )
    return ""


@renamed_keywords(watch="callback")
@one_blas_thread
def identify_payload(
    model: FittedModel,
    recording: Recording,
    *,
    method: str = "filter",
    settings: PayloadSettings | None = None,
    template: Recording | Sequence[Recording] | None = None,
    callback: Callable[[PayloadFilter, PayloadEstimate], None] | None = None,
) -> PayloadRun:
    """Identify the payload carried in a recording.

    Args:
        model: Fitted model of the robot without payload.
        recording: Recording of the same robot with the payload. If its torque is unsigned, the
            payload must not change.
        method: One of `METHODS`.
        settings: Accuracy, prior knowledge, noise.
        template: Recordings of the same motion without payload, once or several times; used by the
            method filter to cancel errors of the model.
        callback: Called with filter and estimate at every evaluation.

    Example:
        >>> import taufit
        >>> model = taufit.read_model("model.json")
        >>> found = taufit.identify_payload(model, taufit.read_recording("other_day.parquet"))
        >>> abs(found.estimate.mass) < 0.5
        True
    """
    from taufit.payload import METHODS

    if method not in METHODS:
        raise TaufitError(f"unknown payload method {method!r}; there are {', '.join(METHODS)}.")
    if template is not None and method != "filter":
        raise TaufitError("a template is used by the method filter only.")
    if method not in ("filter", "direct") and model.robot.other_tip_joints.any():
        model.robot.require_serial(f"the method {method}")
    settings = settings or PayloadSettings()
    signs = recover_payload_signs(model, recording) if is_unsigned(recording) else None
    source = stream(model, recording if signs is None else signs.recording)
    result = METHODS[method](model, source, settings, template=template, callback=callback)
    if signs is not None:
        result = _apply_sign_uncertainty(result, signs)
    if method != "filter":
        # Only the filter compares its residuals with those of the training data.
        reason = run_filter(model, source, settings).estimate.unexplained
        result = replace(result, estimate=replace(result.estimate, unexplained=reason))
    ready_means = settings.ready_means if result.estimate.has_intervals else ""
    overload = _overload_message(model, result.estimate) if result.estimate.has_intervals else ""
    warnings = dict.fromkeys([*result.warnings, *([overload] if overload else [])])
    return replace(
        result,
        flange=model.robot.tip,
        ready_means=ready_means,
        too_heavy=overload,
        warnings=tuple(warnings),
    )


def _apply_sign_uncertainty(result: PayloadRun, signs: PayloadSigns) -> PayloadRun:
    """Widen the intervals of a result on recovered torque signs accordingly."""
    estimate = widen_intervals(result.estimate, signs.widening)
    if not signs.is_unique:
        estimate = replace(estimate, ready=False, accurate=False)
    history = tuple(
        replace(
            reading,
            low=reading.mass + signs.widening * (reading.low - reading.mass),
            high=reading.mass + signs.widening * (reading.high - reading.mass),
            ready=reading.ready and signs.is_unique,
        )
        for reading in result.history
    )
    sign_details = {
        "clear": signs.is_unique,
        "interval_widening": signs.widening,
        "open_share": signs.open_share,
    }
    return replace(
        result,
        estimate=estimate,
        ready_at=result.ready_at if signs.is_unique else None,
        stopped_at=result.stopped_at if signs.is_unique else None,
        history=history,
        warnings=(*signs.warnings, *result.warnings),
        details={**result.details, "torque_signs": sign_details},
    )
