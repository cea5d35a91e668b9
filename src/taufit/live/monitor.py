"""Live monitor: causal processing of samples into readings.

A sample passes stream conditioning (`signals.stream`), then the payload filter and the contact
detector, which computes external torque; prediction, friction and temperature follow from that. The
estimated payload is part of the model for contact detection; friction is tracked only without
contact and with a known payload.

At four or more samples per time bin, a payload estimate is computed over the five or six samples
after the one that made it due: a control loop waits for less at once. Until the second time bin
after it readings have the estimate before it and its share of the prediction's interval.

Not thread-safe: feed it from one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from taufit.contact import ContactDetector, ContactSettings
from taufit.contact.external_torque import ExternalTorqueBlock
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import compile_methods, dataclass
from taufit.core.names import RenamedAttribute
from taufit.core.statistics import NORMAL_95
from taufit.health import FrictionTracker
from taufit.live.monitor_source import OpenedSource, Row, open_monitor_source
from taufit.live.prediction_interval import LivePredictionInterval
from taufit.live.reading import MonitorEvent, Reading
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.friction_level import friction_level
from taufit.payload import PayloadEstimate, PayloadFilter, PayloadSettings
from taufit.payload.filter.payload_event import PayloadEvent
from taufit.payload.identification import minimum_gain_std
from taufit.payload.periodic_reader import PayloadReader
from taufit.recording import Recording
from taufit.signals.stream import CleanSample, StreamCounts
from taufit.terms.friction.states import STATES
from taufit.wire.source import Source

_MOTION_REGIMES = (STATES.index("fast"), STATES.index("slow"))
# Sampling period of friction tracking [s].
_TRACKING_PERIOD_S = 0.1
# Smallest relative change, in standard deviations, and duration in motion of a reported change of
# friction.
_MIN_FRICTION_CHANGE, _MIN_SIGMAS, _MIN_CHANGE_S = 0.25, 4.0, 5.0


class LiveFrictionIndex:
    """Friction index 1 + (dFc + dFv speed) / level of each joint, with its uncertainty.

    dFc and dFv are tracked by a `FrictionTracker`; `level` is the model's friction at creeping
    speed and `speed` a third of the largest in training.

    Attributes:
        index, std: Friction index of each joint and its standard deviation.
    """

    def __init__(self, model: FittedModel, rate_hz: float) -> None:
        joints = model.robot.joints
        self._bins_per_update = max(1, round(_TRACKING_PERIOD_S * rate_hz))
        self._tracker = FrictionTracker(model, rate_hz / self._bins_per_update)
        level = np.maximum(friction_level(model), 1e-3)
        span = model.training.ranges.velocity
        fastest = np.ones(joints) if span is None else np.maximum(-span.low, span.high)
        parts = np.stack([np.ones(joints), fastest / 3.0, np.zeros(joints)], -1)
        self._weight = parts / level[:, None]
        self._reported = np.zeros(joints, bool)
        self._seconds = np.zeros(joints)
        self._count = 0
        self.index = np.ones(joints)
        self.std = np.full(joints, np.nan)

    def clear(self) -> None:
        """Start a new run; the tracked state stays."""
        self._count = 0

    def add(self, block: ExternalTorqueBlock, i: int, *, loads_known: bool) -> list[int]:
        """Process one time bin; return joints with a newly detected change of friction.

        Args:
            block: External torque of time bins.
            i: Index of the bin in the block.
            loads_known: Whether all loads are known: no contact, payload estimated.
        """
        self._count += 1
        if not loads_known or self._count % self._bins_per_update:
            return []
        state, velocity = block.state[i], block.velocity[i]
        in_motion = (state == _MOTION_REGIMES[0]) | (state == _MOTION_REGIMES[1])
        residual = -block.smooth[i]
        self._tracker.correct(block.friction[i], velocity, residual, in_motion)
        tracker, weight = self._tracker, self._weight
        self.index = 1.0 + (weight * tracker.state).sum(axis=1)
        projection = (tracker.covariance @ weight[:, :, None])[:, :, 0]
        self.std = np.sqrt(np.maximum((weight * projection).sum(axis=1), 0.0))
        deviation = np.abs(self.index - 1.0)
        is_significant = (deviation > _MIN_FRICTION_CHANGE) & (deviation > _MIN_SIGMAS * self.std)
        self._seconds = np.where(
            is_significant, self._seconds + _TRACKING_PERIOD_S * in_motion, 0.0
        )
        changed: Array = self._seconds > _MIN_CHANGE_S
        newly_changed = changed & ~self._reported
        self._reported |= changed
        return [int(j) for j in np.flatnonzero(newly_changed)] if newly_changed.any() else []


# Reasons for dropping a sample, with their description.
DROP_REASONS = {
    "spike": "spikes",
    "late": "late",
    "repeated": "repeated stamps",
    "missing": "no measurements",
    "held": "repeated torques",
}


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Sample counts: samples = readings + settling + waiting + sum of left_out.

    Attributes:
        samples: Number of samples received.
        readings: Number of readings.
        settling: Samples before the first time bin, at the start and after gaps: without reading.
        waiting: Samples that wait for the next one.
        left_out: Dropped samples by reason, one of `DROP_REASONS`.
    """

    samples: int
    readings: int
    settling: int
    waiting: int
    dropped: dict[str, int]

    @classmethod
    def from_stream(cls, counts: StreamCounts, conditioned: int, readings: int) -> SampleCounts:
        """Sample counts of a stream conditioner, conditioned samples and readings."""
        dropped = {reason: getattr(counts, reason) for reason in DROP_REASONS}
        waiting = counts.pushed - sum(dropped.values()) - conditioned
        return cls(counts.pushed, readings, conditioned - readings, waiting, dropped)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "samples": self.samples,
            "readings": self.readings,
            "settling": self.settling,
            "waiting": self.waiting,
            "left_out": dict(self.dropped),
        }

    def __str__(self) -> str:
        parts = [f"{self.readings} readings"]
        if self.settling:
            parts.append(f"{self.settling} before the first step of the grid")
        if self.waiting:
            parts.append(f"{self.waiting} waiting for the next one")
        dropped_text = [f"{n} {DROP_REASONS[reason]}" for reason, n in self.dropped.items() if n]
        if dropped_text:
            parts.append(f"{sum(self.dropped.values())} left out ({', '.join(dropped_text)})")
        return f"{self.samples} samples: {', '.join(parts)}"


_MAX_EVENTS = 1000
_PAYLOAD_CHANGES = ("pick", "drop", "change")


class Monitor:
    """Monitors payload, contacts, friction and torque prediction of a moving robot.

    Feed it with `update`, or iterate over a source: `for reading in Monitor(model, source)`.

    Args:
        model: Fitted model of the robot including its permanent tool.
        source: Recording, running robot (`taufit.wire`), or iterable of tuples with the arguments
            of `update`; not needed for `update`.
        payload: Whether to estimate the payload.
        contact: Whether to report contacts.
        unit: Unit of the torque given to `update`: "N m" at the joints, or "A" with the model's
            drive gains.
        payload_settings, contact_settings: Settings; by default the standard ones.

    Attributes:
        events: Last thousand events.
        warnings: Messages about the source.
    """

    def __init__(
        self,
        model: FittedModel,
        source: Recording | Source | Iterable[Any] | None = None,
        *,
        payload: bool = True,
        contact: bool = True,
        unit: str = "N m",
        payload_settings: PayloadSettings | None = None,
        contact_settings: ContactSettings | None = None,
    ) -> None:
        self.model = require_fitted(model, "watch a robot")
        self.source, self.unit = source, unit
        self._with_payload, self._with_contact = payload, contact
        self._payload_settings = payload_settings or PayloadSettings()
        self._contact_settings = contact_settings
        compile_methods()
        self.reset()

    def __repr__(self) -> str:
        return f"Monitor({self.model!r}, {self._readings} readings, {len(self.events)} events)"

    def reset(self) -> None:
        """Reset the monitor; the next sample is the first."""
        self._start(open_monitor_source(self.model, (), self.unit))

    def _start(self, opened_source: OpenedSource) -> None:
        model = self.model
        self.conditioner = opened_source.conditioner
        self.warnings = opened_source.warnings
        self.contact_detector = ContactDetector(model, settings=self._contact_settings)
        self._threshold = self.contact_detector.threshold if self._with_contact else np.inf
        self.payload: PayloadReader | None = None
        if self._with_payload:
            settings = self._payload_settings
            gain_std = minimum_gain_std(opened_source.gain_std, settings, model.robot.joints)
            payload_filter = PayloadFilter(model, settings, gain_std=gain_std)
            self.payload = PayloadReader(payload_filter, spread=True)
        self._prediction = LivePredictionInterval(model, self.contact_detector.noise)
        self._friction = LiveFrictionIndex(model, self.contact_detector.noise.rate_hz)
        self.events: deque[MonitorEvent] = deque(maxlen=_MAX_EVENTS)
        self._new_events: list[MonitorEvent] = []
        self._contact_events_sent = 0
        # Payload events sent; the last may still change.
        self._payload_events_sent: list[PayloadEvent] = []
        # Whether the payload was reported; it stays known until the next pick or drop.
        self._payload_reported = False
        self._filtered_torque: tuple[Array, Array] | None = None
        self._half_width: Array | None = None
        self._last_bin: tuple[ExternalTorqueBlock, int] | None = None
        self.newest: Reading | None = None
        self._conditioned = self._readings = 0

    # ---- samples -------------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded_velocity: Float[Array, " j"] | None = None,
    ) -> Reading | None:
        """Process one raw sample and return its reading.

        Returns None before the first time bin, and if the sample is dropped or waits for the next
        one.
        Dropped samples are reported in the events of the next reading.

        Args:
            time: Time stamp [s].
            position: Joint positions [rad or m].
            velocity: Joint velocities, or None if not measured.
            torque: Joint torques in the monitor's unit, from the same drives as in training.
            temperature: Joint temperatures [degC], required if friction depends on them.
            commanded_velocity: Commanded joint velocities; with them a push at standstill is
                distinguished from a start of motion immediately.
        """
        readings = self._push((time, position, velocity, torque, temperature, commanded_velocity))
        return readings[-1] if readings else None

    def run(self, source: Recording | Source | Iterable[Any]) -> Iterator[Reading]:
        """Readings of a source from its first sample; a connection is closed at the end."""
        opened_source = open_monitor_source(self.model, source, self.unit)
        self._start(opened_source)
        rows = opened_source.rows
        try:
            for row in rows:
                if row is not None:
                    yield from self._push(row)
            yield from self.finish()
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()

    def __iter__(self) -> Iterator[Reading]:
        return self.run(() if self.source is None else self.source)

    def finish(self) -> list[Reading]:
        """Process samples that wait for the next one, and evaluate the payload a last time."""
        readings = [r for r in map(self._process_sample, self.conditioner.flush()) if r is not None]
        if self.payload is not None and self.payload.filter.samples:
            self._update_payload(self.payload.finish())
        return readings

    def _push(self, row: Row) -> list[Reading]:
        readings = [self._process_sample(sample) for sample in self.conditioner.push(*row)]
        return [reading for reading in readings if reading is not None]

    def _process_sample(self, sample: CleanSample) -> Reading | None:
        """Process one conditioned sample."""
        self._conditioned += 1
        self._set_threshold()
        contact_reading = self.contact_detector.update_clean(*sample[:6])
        if self.payload is not None:
            payload_estimate = self.payload.feed(*sample[:5])
            if payload_estimate is not None:
                self._update_payload(payload_estimate)
                if self._last_bin is not None:
                    self._half_width = self._prediction.half_width(*self._last_bin)
        block = self.contact_detector.last_block
        if block is not None:
            for i in range(len(block)):
                self._process_bin(block, i)
        self._collect_events()
        if contact_reading is None or self._filtered_torque is None or self._half_width is None:
            return None
        events = tuple(self._new_events)
        self._new_events.clear()
        measured, predicted = self._filtered_torque
        self.newest = Reading(
            sample.time,
            sample.position,
            sample.velocity,
            sample.torque,
            measured,
            predicted,
            self._half_width,
            contact_reading.torque,
            NORMAL_95 * contact_reading.torque_std,
            tuple(map(STATES.__getitem__, contact_reading.state.tolist())),
            contact_reading.evidence,
            contact_reading.threshold,
            contact_reading.contact,
            None if self.payload is None else self.payload.newest,
            sample.temperature,
            self._friction.index,
            self._friction.std,
            sample.number,
            events,
        )
        self._readings += 1
        return self.newest

    @property
    def sample_counts(self) -> SampleCounts:
        """Counts of samples received, processed and dropped."""
        return SampleCounts.from_stream(self.conditioner.counts, self._conditioned, self._readings)

    # Former names of 0.1, accepted with a warning until 0.3.
    account = RenamedAttribute("sample_counts")

    # ---- one time bin --------------------------------------------------------------------------

    def _process_bin(self, block: ExternalTorqueBlock, i: int) -> None:
        measured, predicted = block.measured[i], block.model_torque[i]
        if self._filtered_torque is not None:
            step_response, (last_measured, last_predicted) = (
                self.contact_detector.observer_step_response,
                self._filtered_torque,
            )
            measured, predicted = (
                last_measured + step_response * (measured - last_measured),
                last_predicted + step_response * (predicted - last_predicted),
            )
        self._filtered_torque = measured, predicted
        self._last_bin = block, i
        self._half_width = self._prediction.half_width(block, i)
        contact_reading = self.contact_detector.last_reading
        is_free = contact_reading is None or contact_reading.contact is None
        changed_joints = self._friction.add(
            block, i, loads_known=is_free and self._is_payload_known
        )
        for j in changed_joints:
            index, std = self._friction.index[j], self._friction.std[j]
            text = (
                f"friction of joint {j + 1} is {100 * index:.0f} % of the healthy model's "
                f"(+- {100 * NORMAL_95 * std:.0f} %)"
            )
            self._add_event(MonitorEvent(float(block.time[i]), "friction", text))

    @property
    def _is_payload_known(self) -> bool:
        if self.payload is None:
            return True
        return self._payload_reported and not self.payload.filter.is_undecided

    def _set_threshold(self) -> None:
        """Disable contact alarms in motion until the payload, which resembles contact, is known."""
        # While pick or contact is undecided, contacts are reported.
        is_known = self.payload is None or self._payload_reported or self._is_standing
        self.contact_detector.threshold = self._threshold if is_known else np.inf

    @property
    def _is_standing(self) -> bool:
        contact_reading = self.contact_detector.last_reading
        return contact_reading is None or bool((contact_reading.state >= _STANDING).all())

    # ---- events --------------------------------------------------------------------------------

    def _update_payload(self, estimate: PayloadEstimate) -> None:
        """Add a payload estimate to the model if it is ready."""
        if not estimate.ready or (self.payload is not None and self.payload.filter.is_undecided):
            return
        if not self._payload_reported:
            self._report_payload(estimate)
        self.contact_detector.set_payload(estimate.parameters, is_new=not self._payload_reported)
        self._prediction.set_payload(estimate)
        self._payload_reported = True

    def _report_payload(self, estimate: PayloadEstimate) -> None:
        low, high = estimate.mass_interval
        text = f"the payload is {estimate.mass:.2f} kg ({max(low, 0.0):.2f} to {high:.2f})"
        if estimate.empty:
            text = f"the arm carries nothing heavier than {high:.2f} kg"
        self._add_event(MonitorEvent(estimate.time, "ready", text))

    def _collect_events(self) -> None:
        """Collect new events of stream conditioning, contact detector and payload filter."""
        for notice in self.conditioner.notices:
            self._add_event(MonitorEvent(*notice))
        self.conditioner.notices.clear()
        for event in self.contact_detector.events[self._contact_events_sent :]:
            if event.kind == "gap":
                self._filtered_torque = None
                self._friction.clear()
            elif self._with_contact:
                contact = event.contact
                force = None if contact is None else contact.force.size
                start_time = None if contact is None else contact.start_time
                self._add_event(
                    MonitorEvent(event.time, event.kind, event.text, start_time, None, force)
                )
        self._contact_events_sent = len(self.contact_detector.events)
        if self.payload is not None:
            self._collect_payload(self.payload.filter)

    def _collect_payload(self, payload_filter: PayloadFilter) -> None:
        """Collect payload changes: when detected, decided and measured."""
        sent_events = self._payload_events_sent
        for k in range(max(len(sent_events) - 1, 0), len(payload_filter.events)):
            event = payload_filter.events[k]
            is_decided = event.kind in _PAYLOAD_CHANGES
            if k >= len(sent_events):
                sent_events.append(event)
            elif sent_events[k] is event:
                continue
            else:
                # Measured after the decision, which was already sent: the payload is known.
                is_decided = is_decided and sent_events[k].kind not in _PAYLOAD_CHANGES
                sent_events[k] = event
            if event.kind == "gap":
                continue
            if is_decided:
                self._payload_reported = False
                self.contact_detector.accept_as_payload()
            start_time = None if event.kind == "pick or contact" else event.time
            self._add_event(
                MonitorEvent(payload_filter.time, event.kind, event.text, start_time, event.change)
            )

    def _add_event(self, event: MonitorEvent) -> None:
        self.events.append(event)
        self._new_events.append(event)


_STANDING = STATES.index("standing")
