"""The one causal path: samples in as they come, everything the model can say out.

A sample goes through the intake (`signals.intake`) and from there to the payload filter and to the
contact watch, which makes external torque of it; prediction, friction and temperature are read off
that. Each knows of the others: what is carried is part of what the model expects, so contact is
judged without it; friction is followed only while nothing touches and the payload is known.

Not safe for use from several threads at once: feed it from one, hand readings on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.contact import ContactDetector, ContactSettings
from taufit.contact.external_torque import ExternalTorqueBlock
from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.health import FrictionTracker
from taufit.live.prediction import LivePrediction
from taufit.live.reading import MonitorEvent, Reading
from taufit.live.sources import Opened, Row, open_rows
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

_SLIDES = (STATES.index("fast"), STATES.index("slow"))
# Friction is followed in steps of this length [s].
_EVERY_S = 0.1
# Beyond this share and so many standard deviations, for this long in motion, friction has changed.
_CHANGED, _SIGMAS, _LASTS_S = 0.25, 4.0, 5.0


class FrictionWatch:
    """The friction index 1 + (dFc + dFv speed) / level of each joint, with its uncertainty.

    dFc and dFv are what a `FrictionTracker` finds beside the model; `level` is the model's friction
    at creeping speed and `speed` a third of the fastest in training.

    Attributes:
        index, std: Of each joint.
    """

    def __init__(self, model: FittedModel, rate_hz: float) -> None:
        joints = model.robot.joints
        self._skip = max(1, round(_EVERY_S * rate_hz))
        self._tracker = FrictionTracker(model, rate_hz / self._skip)
        level = np.maximum(friction_level(model), 1e-3)
        span = model.training.ranges.velocity
        fastest = np.ones(joints) if span is None else np.maximum(-span.low, span.high)
        parts = np.stack([np.ones(joints), fastest / 3.0, np.zeros(joints)], -1)
        self._weight = parts / level[:, None]
        self._said = np.zeros(joints, bool)
        self._seconds = np.zeros(joints)
        self._count = 0
        self.index = np.ones(joints)
        self.std = np.full(joints, np.nan)

    def clear(self) -> None:
        """The next step follows on none; what was learnt stays."""
        self._count = 0

    def add(self, felt: ExternalTorqueBlock, i: int, *, known: bool) -> list[int]:
        """One step of the grid; joints whose friction has just been seen to have changed.

        Args:
            felt: Steps of the grid.
            i: Which of them.
            known: Whether all that acts on the arm is known: no contact, payload found.
        """
        self._count += 1
        if not known or self._count % self._skip:
            return []
        state, velocity = felt.state[i], felt.velocity[i]
        moves = (state == _SLIDES[0]) | (state == _SLIDES[1])
        residual = -felt.smooth[i]
        self._tracker.correct(felt.friction[i], velocity, residual, moves)
        own, weight = self._tracker, self._weight
        self.index = 1.0 + (weight * own.state).sum(axis=1)
        reach = (own.covariance @ weight[:, :, None])[:, :, 0]
        self.std = np.sqrt(np.maximum((weight * reach).sum(axis=1), 0.0))
        away = np.abs(self.index - 1.0)
        beyond = (away > _CHANGED) & (away > _SIGMAS * self.std)
        self._seconds = np.where(beyond, self._seconds + _EVERY_S * moves, 0.0)
        changed: Array = self._seconds > _LASTS_S
        new = changed & ~self._said
        self._said |= changed
        return [int(j) for j in np.flatnonzero(new)] if new.any() else []


# Why an intake leaves a sample out, and in words.
REASONS = {
    "spike": "spikes",
    "late": "late",
    "repeated": "repeated stamps",
    "missing": "no measurements",
    "held": "repeated torques",
}


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """samples = readings + settling + waiting + sum of left_out.

    Attributes:
        samples: That have come so far.
        readings: That have a reading of their own.
        settling: Before the first step of the grid, at the beginning and after gaps: no reading.
        waiting: For the next sample.
        left_out: By reason, one of `REASONS`.
    """

    samples: int
    readings: int
    settling: int
    waiting: int
    left_out: dict[str, int]

    @classmethod
    def of(cls, counts: StreamCounts, handed: int, readings: int) -> SampleCounts:
        """Of an intake that has handed on so many samples, which made so many readings."""
        left = {reason: getattr(counts, reason) for reason in REASONS}
        waiting = counts.pushed - sum(left.values()) - handed
        return cls(counts.pushed, readings, handed - readings, waiting, left)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "samples": self.samples,
            "readings": self.readings,
            "settling": self.settling,
            "waiting": self.waiting,
            "left_out": dict(self.left_out),
        }

    def __str__(self) -> str:
        parts = [f"{self.readings} readings"]
        if self.settling:
            parts.append(f"{self.settling} before the first step of the grid")
        if self.waiting:
            parts.append(f"{self.waiting} waiting for the next one")
        left = [f"{n} {REASONS[reason]}" for reason, n in self.left_out.items() if n]
        if left:
            parts.append(f"{sum(self.left_out.values())} left out ({', '.join(left)})")
        return f"{self.samples} samples: {', '.join(parts)}"


_EVENTS_KEPT = 1000
_DECIDED = ("pick", "drop", "change")


class Monitor:
    """Payload, contact, friction and prediction of a robot while it moves.

    Feed it with `update`, or let it listen to a source: `for reading in Monitor(model, source)`.

    Args:
        model: Of the arm with the tool that stays on it, fitted.
        source: A recording, a robot that is on (`taufit.wire`), or an iterable of tuples of
            `update`'s arguments; not needed for `update`.
        payload: Whether to estimate what the arm carries.
        contact: Whether to tell contacts.
        unit: Of the torque given to `update`: "N m" at the joints, or "A" with the model's gains.
        payload_settings, contact_settings: Replace the usual ones.

    Attributes:
        events: The last thousand.
        warnings: What the user should know about the source.
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
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next sample is the first."""
        self._start(open_rows(self.model, (), self.unit))

    def _start(self, opened: Opened) -> None:
        model = self.model
        self.intake = opened.intake
        self.warnings = opened.warnings
        self.watch = ContactDetector(model, settings=self._contact_settings)
        self._alarm = self.watch.threshold if self._with_contact else np.inf
        self.payload: PayloadReader | None = None
        if self._with_payload:
            settings = self._payload_settings
            gain_std = minimum_gain_std(opened.gain_std, settings, model.robot.joints)
            self.payload = PayloadReader(PayloadFilter(model, settings, gain_std=gain_std))
        self._prediction = LivePrediction(model, self.watch.noise)
        self._friction = FrictionWatch(model, self.watch.noise.rate_hz)
        self.events: deque[MonitorEvent] = deque(maxlen=_EVENTS_KEPT)
        self._news: list[MonitorEvent] = []
        self._told_contact = 0
        # Payload events that were passed on; the last may still change.
        self._told_payload: list[PayloadEvent] = []
        # Whether what is carried has been told; until the next pick or drop it stays known.
        self._known = False
        self._lag: tuple[Array, Array] | None = None
        self._half: Array | None = None
        self.newest: Reading | None = None
        self._handed = self._readings = 0

    # ---- what comes in -------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded_velocity: Float[Array, " j"] | None = None,
    ) -> Reading | None:
        """One sample as it comes, and what is known then.

        None before the first step of the grid, and where the sample is left out or waits for the
        next one. What was left out and why is among the events of the next reading.

        Args:
            time: Its stamp [s].
            position: Of the joints [rad or m].
            velocity: Of the joints, or None where it is not measured.
            torque: Of the joints, in the monitor's unit, from the same drives as in training.
            temperature: Of the joints [degC], where friction depends on it.
            commanded_velocity: Lets a push at standstill be told from a start at once.
        """
        readings = self._push((time, position, velocity, torque, temperature, commanded_velocity))
        return readings[-1] if readings else None

    def run(self, source: Recording | Source | Iterable[Any]) -> Iterator[Reading]:
        """Readings of a source from its first sample on; a robot's line is closed at the end."""
        opened = open_rows(self.model, source, self.unit)
        self._start(opened)
        rows = opened.rows
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
        """Readings of samples that waited for a next one; the last read-out of the payload."""
        out = [r for r in map(self._take, self.intake.flush()) if r is not None]
        if self.payload is not None and self.payload.filter.samples:
            self._read(self.payload.finish())
        return out

    def _push(self, row: Row) -> list[Reading]:
        out = [self._take(sample) for sample in self.intake.push(*row)]
        return [reading for reading in out if reading is not None]

    def _take(self, sample: CleanSample) -> Reading | None:
        """A clean sample, to everybody."""
        self._handed += 1
        self._mute()
        seen = self.watch.update_clean(*sample[:6])
        if self.payload is not None:
            read = self.payload.feed(*sample[:5])
            if read is not None:
                self._read(read)
        felt = self.watch.last_block
        if felt is not None:
            for i in range(len(felt)):
                self._step(felt, i)
        self._collect()
        if seen is None or self._lag is None or self._half is None:
            return None
        events = tuple(self._news)
        self._news.clear()
        measured, predicted = self._lag
        self.newest = Reading(
            sample.time,
            sample.position,
            sample.velocity,
            sample.torque,
            measured,
            predicted,
            self._half,
            seen.torque,
            NORMAL_95 * seen.torque_std,
            tuple(map(STATES.__getitem__, seen.state.tolist())),
            seen.evidence,
            seen.threshold,
            seen.contact,
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
    def account(self) -> SampleCounts:
        """Where the samples that have come went."""
        return SampleCounts.of(self.intake.counts, self._handed, self._readings)

    # ---- one step of the grid ------------------------------------------------------------------

    def _step(self, felt: ExternalTorqueBlock, i: int) -> None:
        measured, predicted = felt.measured[i], felt.model_torque[i]
        if self._lag is not None:
            share, (m, p) = self.watch.observer_step_response, self._lag
            measured, predicted = m + share * (measured - m), p + share * (predicted - p)
        self._lag = measured, predicted
        self._half = self._prediction.half_width(felt, i)
        seen = self.watch.last_reading
        quiet = seen is None or seen.contact is None
        changed = self._friction.add(felt, i, known=quiet and self._payload_known)
        for j in changed:
            index, std = self._friction.index[j], self._friction.std[j]
            text = (
                f"friction of joint {j + 1} is {100 * index:.0f} % of the healthy model's "
                f"(+- {100 * NORMAL_95 * std:.0f} %)"
            )
            self._tell(MonitorEvent(float(felt.time[i]), "friction", text))

    @property
    def _payload_known(self) -> bool:
        if self.payload is None:
            return True
        return self._known and not self.payload.filter.is_undecided

    def _mute(self) -> None:
        """In motion an unknown payload looks like contact: nothing is told until it is known."""
        # While it is not clear whether a pick or a contact has begun, contact is what matters.
        known = self.payload is None or self._known or self._standing
        self.watch.threshold = self._alarm if known else np.inf

    @property
    def _standing(self) -> bool:
        seen = self.watch.last_reading
        return seen is None or bool((seen.state >= _STANDING).all())

    # ---- what happened -------------------------------------------------------------------------

    def _read(self, found: PayloadEstimate) -> None:
        """A read-out of the payload: from now on the model expects it."""
        if not found.ready or (self.payload is not None and self.payload.filter.is_undecided):
            return
        if not self._known:
            self._tell_ready(found)
        self.watch.set_payload(found.parameters, is_new=not self._known)
        self._prediction.carry(found)
        self._known = True

    def _tell_ready(self, found: PayloadEstimate) -> None:
        low, high = found.mass_interval
        text = f"the payload is {found.mass:.2f} kg ({max(low, 0.0):.2f} to {high:.2f})"
        if found.empty:
            text = f"the arm carries nothing heavier than {high:.2f} kg"
        self._tell(MonitorEvent(found.time, "ready", text))

    def _collect(self) -> None:
        """Events of intake, watch and filter, passed on once."""
        for notice in self.intake.notices:
            self._tell(MonitorEvent(*notice))
        self.intake.notices.clear()
        for event in self.watch.events[self._told_contact :]:
            if event.kind == "gap":
                self._lag = None
                self._friction.clear()
            elif self._with_contact:
                touch = event.contact
                force = None if touch is None else touch.force.size
                since = None if touch is None else touch.start_time
                self._tell(MonitorEvent(event.time, event.kind, event.text, since, None, force))
        self._told_contact = len(self.watch.events)
        if self.payload is not None:
            self._collect_payload(self.payload.filter)

    def _collect_payload(self, live: PayloadFilter) -> None:
        """Changes of the payload: as they show, as they are decided, and as they are measured."""
        told = self._told_payload
        for k in range(max(len(told) - 1, 0), len(live.events)):
            event = live.events[k]
            decided = event.kind in _DECIDED
            if k >= len(told):
                told.append(event)
            elif told[k] is event:
                continue
            else:
                # Measured later than decided: that was told, and what is carried is known.
                decided = decided and told[k].kind not in _DECIDED
                told[k] = event
            if event.kind == "gap":
                continue
            if decided:
                self._known = False
                self.watch.accept_as_payload()
            since = None if event.kind == "pick or contact" else event.time
            self._tell(MonitorEvent(live.time, event.kind, event.text, since, event.change))

    def _tell(self, event: MonitorEvent) -> None:
        self.events.append(event)
        self._news.append(event)


_STANDING = STATES.index("standing")
