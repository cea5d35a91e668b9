"""A whole recording through one of the methods: what was carried, and how that became known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.core.threads import one_blas_thread
from taufit.model.fitted_model import FittedModel
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter import PayloadEvent, PayloadFilter
from taufit.payload.filter.posterior_summary import NOT_READY
from taufit.payload.reader import PayloadReader
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import Stream, stream
from taufit.payload.unsigned_torque import (
    FoundPayloadSigns,
    is_unsigned,
    widen_intervals,
    with_payload_signs,
)
from taufit.recording import Recording

# Rated payloads of arms that say so [kg].
RATED = {
    "ur3": 3.0, "ur3e": 3.0, "ur5": 5.0, "ur5e": 5.0, "ur10": 10.0, "ur10e": 12.5,
    "panda": 3.0, "fr3": 3.0, "iiwa7": 7.0, "iiwa14": 14.0, "kr5": 5.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MassReading:
    """The mass at one time, as it was known then."""

    t: float
    mass: float
    low: float
    high: float
    ready: bool


@dataclass(frozen=True, slots=True, eq=False)
class PayloadRun:
    """A recording worked through.

    Attributes:
        method: That was used.
        estimate: At the end.
        ready_at: When the estimate became worth reading, from the recording's start [s], or None.
        stopped_at: When the wanted accuracy was reached [s], or None.
        history: The mass over time.
        events: Picks, drops, gaps.
        budget: Share of each source in the variance of the mass.
        advice: What would shrink the interval.
        warnings: What the user should know.
        details: What only this method has.
        flange: Of the robot, in its last link's frame.
        too_heavy: What is wrong with its mass; "" where nothing is.
        ready_means: In words, how well the mass is known when it is ready; "" where that is not
            judged.
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

    @property
    def refusal(self) -> str:
        """Why the result must not be used, where it must not; else ""."""
        found = self.estimate
        if found.unexplained:
            return found.unexplained
        if found.judged and not found.ready:
            return NOT_READY
        return self.too_heavy or _impossible(found)

    def set_payload(self) -> dict[str, Any] | None:
        """What a controller is set to, in the flange's frame, and the lines that do it.

        None where the result must not be used (`refusal`).
        """
        return None if self.refusal else self.estimate.set_payload(self.flange)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found = self.estimate.to_dict()
        if self.refusal:
            # No interval is claimed for what is no result.
            for name in ("mass", "com", "inertia"):
                found[name] |= {"low": None, "high": None}
        return {
            "method": self.method,
            "refused": self.refusal or None,
            **found,
            # A method that does not know how far off it may be cannot say when it is ready.
            "ready": self.estimate.ready if self.estimate.judged else None,
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
                if self.estimate.judged
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
    watch: Callable[[PayloadFilter, PayloadEstimate], None] | None = None,
) -> PayloadRun:
    """The Bayesian filter, sample by sample, read out ten times a second."""
    gain_std = minimum_gain_std(source.gain_std, settings, model.robot.joints)
    live = PayloadFilter(model, settings, gain_std=gain_std)
    if template is not None:
        from taufit.payload.template import Template

        runs = [template] if isinstance(template, Recording) else list(template)
        live.template = Template(model, [stream(model, one) for one in runs], live)
    reader = PayloadReader(live)
    history: list[MassReading] = []

    def note(found: PayloadEstimate) -> None:
        history.append(MassReading(found.time, found.mass, *found.mass_interval, found.ready))
        if watch is not None:
            watch(live, found)

    for sample in source.samples():
        read = reader.feed(*sample)
        if read is not None:
            note(read)
    found = reader.finish()
    if history and history[-1].t == found.time:
        history.pop()
    note(found)
    budget = live.budget()
    warnings = [*source.warnings, *found.warnings]
    if live.template is not None and live.template.matched < 0.9:
        warnings.append(
            f"only {100 * live.template.matched:.0f} % of the motion is in the template; the rest "
            "was left out. Record the same motion empty."
        )
    return PayloadRun(
        "filter" if template is None else "filter (template)",
        found,
        reader.ready_at,
        reader.stopped_at,
        tuple(history),
        tuple(live.events),
        budget,
        accuracy_advice(budget, found),
        tuple(dict.fromkeys(warnings)),
        {"gain_errors": live.gain_errors.tolist(), "samples": live.samples},
    )


def minimum_gain_std(
    gain_std: Float[Array, " j"] | None, settings: PayloadSettings, joints: int
) -> Float[Array, " j"]:
    """Relative standard deviations of the drive gains: drives of one type differ by some."""
    if gain_std is None:
        return np.full(joints, settings.gain_std)
    return np.maximum(gain_std, settings.gain_std)


def accuracy_advice(budget: Mapping[str, float], found: PayloadEstimate) -> str:
    """What would shrink the interval, from what dominates it."""
    if not budget:
        return ""
    if not found.ready:
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


def _too_heavy(model: FittedModel, found: PayloadEstimate) -> str:
    rated = RATED.get(model.robot.name.lower())
    arm = float(model.robot.parameters[model.robot.layout.masses].sum())
    if rated is not None and found.mass_interval[0] > rated:
        return (
            f"the payload of {found.mass:.2f} kg is heavier than the {rated:g} kg this arm is "
            "rated for: check drive gains, mounting and the model before you use it."
        )
    if rated is None and found.mass_interval[0] > 0.7 * arm > 0.0:
        return (
            f"the payload of {found.mass:.2f} kg is more than most arms of {arm:.0f} kg carry: "
            "check drive gains, mounting and the model before you use it."
        )
    return ""


def _impossible(found: PayloadEstimate) -> str:
    """Why no body has these numbers; a method that solves for ten of them may find such."""
    moments = np.linalg.eigvalsh(found.inertia) if np.isfinite(found.inertia).all() else [np.nan]
    # A tenth of the largest moment is within the error of methods that know none.
    slack = 0.1 * float(np.max(np.abs(moments)))
    if not (np.isfinite(found.mass) and np.isfinite(found.centre).all()) or found.mass < 0.0:
        return f"no body has a mass of {found.mass:.3f} kg: use the method filter."
    if found.empty:
        return ""
    if not (min(moments) >= -slack and 2.0 * max(moments) <= sum(moments) + slack):
        return (
            "no body has this inertia (a moment is negative or too large): use the method filter."
        )
    return ""


@one_blas_thread
def identify_payload(
    model: FittedModel,
    recording: Recording,
    *,
    method: str = "filter",
    settings: PayloadSettings | None = None,
    template: Recording | Sequence[Recording] | None = None,
    watch: Callable[[PayloadFilter, PayloadEstimate], None] | None = None,
) -> PayloadRun:
    """What the arm carries in a recording.

    Args:
        model: Of the empty arm, fitted.
        recording: Of the same arm with the payload. Where its torque carries no sign, one payload
            throughout.
        method: One of `METHODS`.
        settings: Accuracy, prior knowledge, noise.
        template: The same motion recorded empty, once or several times, for the filter.
        watch: Called at every read-out, for displays.

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
    settings = settings or PayloadSettings()
    found = with_payload_signs(model, recording) if is_unsigned(recording) else None
    source = stream(model, recording if found is None else found.recording)
    done = METHODS[method](model, source, settings, template=template, watch=watch)
    if found is not None:
        done = _without_signs(done, found)
    if method != "filter":
        # Only the filter compares what is left over with the training's.
        known = run_filter(model, source, settings).estimate.unexplained
        done = replace(done, estimate=replace(done.estimate, unexplained=known))
    means = settings.ready_means if done.estimate.judged else ""
    heavy = _too_heavy(model, done.estimate) if done.estimate.judged else ""
    warnings = dict.fromkeys([*done.warnings, *([heavy] if heavy else [])])
    return replace(
        done,
        flange=model.robot.tip,
        ready_means=means,
        too_heavy=heavy,
        warnings=tuple(warnings),
    )


def _without_signs(done: PayloadRun, found: FoundPayloadSigns) -> PayloadRun:
    """A result on torque whose signs were found, as uncertain as that makes it."""
    estimate = widen_intervals(done.estimate, found.widening)
    if not found.clear:
        estimate = replace(estimate, ready=False, accurate=False)
    history = tuple(
        replace(
            one,
            low=one.mass + found.widening * (one.low - one.mass),
            high=one.mass + found.widening * (one.high - one.mass),
            ready=one.ready and found.clear,
        )
        for one in done.history
    )
    signs = {
        "clear": found.clear,
        "interval_widening": found.widening,
        "open_share": found.open_share,
    }
    return replace(
        done,
        estimate=estimate,
        ready_at=done.ready_at if found.clear else None,
        stopped_at=done.stopped_at if found.clear else None,
        history=history,
        warnings=(*found.warnings, *done.warnings),
        details={**done.details, "torque_signs": signs},
    )
