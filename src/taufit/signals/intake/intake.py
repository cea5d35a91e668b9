"""Raw samples in, clean ones out, causally.

Order of the steps: shapes are checked; what lacks a value, is impossible or repeats the torques
before to the last digit in motion is left out; late and repeated stamps are left out; the signal
becomes torque at the joints (gains, then coupling); single spikes are left out; velocity is taken
from position where that tells more; motion is shifted by the model's delay. A sample that is left
out is bridged by whoever puts samples on a grid.

A sample waits for the next one only where it is suspicious or velocity is derived from position.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.signals.intake.sample import CleanSample, Notice
from taufit.signals.intake.screen import HELD, MEASURED, MOVES, Screen
from taufit.signals.intake.shift import MotionShift
from taufit.signals.intake.spikes import spike_guard
from taufit.signals.intake.velocities import VelocityChoice, slope
from taufit.signals.resampling import MERGE

# A step in time longer than this is a gap [s].
GAP_S = 0.1
# A notice of one kind is given at most once in this time [s].
_SAY_AGAIN_S = 1.0
# Stamps in order among themselves, all before the last: the clock has started anew.
_NEW_CLOCK = 5
# So many gaps with no two samples between them, or values missing in a row: no robot is heard.
_HOPELESS, _NOTHING = 20, 500
# Steps after which the period of the samples is known.
_PERIOD_KNOWN = 10
_NOTICES_KEPT = 1000


@dataclass(slots=True)
class StreamCounts:
    """How many samples were pushed, handed on and left out, and why."""

    pushed: int = 0
    taken: int = 0
    spike: int = 0
    late: int = 0
    repeated: int = 0
    missing: int = 0
    held: int = 0
    gap: int = 0
    clock: int = 0


class StreamConditioner:
    """Raw samples of one robot in, clean samples out.

    Args:
        joints: How many the robot has.
        robot: Its name, for messages.
        gain: Joint torque per unit of the torque channel, or None where it is in newton metres.
        coupling: C with motor positions q_m = C q, or None for one motor per joint.
        delay_s: By which motion is delayed to meet the torque.
        floor: Deviations of position, velocity and torque, channel after channel, below which
            nothing is a spike.
        largest: Magnitudes of the same channels beyond which a value is no measurement.
        standstill: Slower than this nothing moves [rad/s or m/s].
        longest: A step in time longer than this is a gap [s].

    Attributes:
        counts: What happened so far.
        notices: The last of them in words; who has read them may clear them.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each property of the robot's line
        self,
        joints: int,
        *,
        robot: str = "the robot",
        gain: Float[Array, " j"] | None = None,
        coupling: Float[Array, "j j"] | None = None,
        delay_s: float = 0.0,
        floor: Float[Array, " c"] | None = None,
        largest: Float[Array, " c"] | None = None,
        standstill: float = 0.02,
        longest: float = GAP_S,
    ) -> None:
        self.joints, self.robot, self.longest = joints, robot, longest
        self._shape = (joints,)
        self._gain = None if gain is None else np.asarray(gain, float)
        self._coupling = None if coupling is None else np.asarray(coupling, float)
        self._standstill = standstill
        self._largest = np.full(3 * joints, 1e12) if largest is None else np.array(largest, float)
        self._screen = Screen(self._largest, standstill)
        self._spikes = spike_guard(np.zeros(3 * joints) if floor is None else floor)
        self._choice = VelocityChoice(joints)
        self._shift = MotionShift(delay_s) if delay_s else None
        self.counts = StreamCounts()
        self.notices: deque[Notice] = deque(maxlen=_NOTICES_KEPT)
        self._said: dict[str, float] = {}
        self._offset, self._period, self._steps = 0.0, 0.0, 0
        self._back: list[float] = []
        self._lonely = self._nothing = 0
        self._heard: float | None = None
        self._warm: Array | None = None
        self._last: tuple[float, Array] | None = None
        # A suspicious sample; one that waits for its neighbour to have a velocity.
        self._wait: tuple[CleanSample, Array] | None = None
        self._open: CleanSample | None = None

    @property
    def measured(self) -> Array:
        """Joints that have a velocity of their own."""
        return ~self._choice.lacking

    @property
    def derived(self) -> Array:
        """Joints whose velocity is taken from position."""
        return self._choice.derived

    # ---- one sample ----------------------------------------------------------------------------

    def push(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded: Float[Array, " j"] | None = None,
    ) -> list[CleanSample]:
        """The samples that are clean now: none, this one, or one that waited and this one.

        Args:
            time: Its stamp [s].
            position: Of the joints [rad or m].
            velocity: Of the joints, or None (or nan per joint) where it is not measured.
            torque: The torque channel, in the unit the gains are for.
            temperature: Of the joints [degC], or None.
            commanded: Commanded velocity, or None.
        """
        self.counts.pushed += 1
        row = self._row(position, velocity, torque)
        looks = self._screen.look(row)
        if not looks & MEASURED or not abs(time) < 1e12:
            self._missing(row)
            self._say("missing", time, "a sample lacks a value or has an impossible one")
            return []
        self._nothing = 0
        at = self._in_order(time, row, looks)
        if at is None:
            return []
        out = self._gap(at) if self._is_gap(at) else []
        joints = self.joints
        torques = row[2 * joints :]
        self._screen.hold(row)
        self._heard = at
        if self._gain is not None:
            torques *= self._gain
        if self._coupling is not None:
            torques[:] = torques @ self._coupling
        sample = CleanSample(
            at,
            row[:joints],
            row[joints : 2 * joints],
            torques,
            self._temperature(temperature),
            commanded,
            self.counts.pushed - 1,
        )
        return self._hand_on(sample, row, out)

    def flush(self) -> list[CleanSample]:
        """What waits for a next sample, without one; what is suspicious is left out."""
        out: list[CleanSample] = []
        if self._wait is not None:
            earlier = self._wait[0]
            self._wait = None
            text = (
                f"the sample at {earlier.time:.3f} s is far from those before it and the last one"
            )
            self._say("spike", earlier.time, text)
        if self._open is not None:
            self._release(self._open, None, out)
            self._open = None
        if self._shift is not None:
            out += self._shift.flush()
        return out

    def _hand_on(
        self, sample: CleanSample, row: Array, out: list[CleanSample]
    ) -> list[CleanSample]:
        if self._wait is not None:
            earlier, values = self._wait
            self._wait = None
            if self._spikes.is_spike(earlier.time, values, sample.time, row):
                text = f"a sample at {earlier.time:.3f} s has a value far from its neighbours"
                self._say("spike", earlier.time, text)
            else:
                self._accept(earlier, values, out)
        if self._spikes.suspicious(sample.time, row):
            self._wait = (sample, row)
        else:
            self._accept(sample, row, out)
        return out

    def _accept(self, sample: CleanSample, row: Array, out: list[CleanSample]) -> None:
        """A measurement; where velocity is derived it waits for its other neighbour."""
        self._spikes.accept(sample.time, row)
        self._choice.add(row[: 2 * self.joints])
        if self._open is not None:
            self._release(self._open, sample, out)
            self._open = None
        if self._choice.any:
            self._open = sample
        else:
            self._release(sample, None, out)

    def _release(
        self, sample: CleanSample, after: CleanSample | None, out: list[CleanSample]
    ) -> None:
        if self._choice.any:
            there = None if after is None else (after.time, after.position)
            motion = slope(sample.time, sample.position, self._last, there)
            velocity = np.where(self._choice.derived, motion, sample.velocity)
            sample = sample._replace(velocity=velocity)
        self._last = (sample.time, sample.position)
        self.counts.taken += 1
        if self._shift is None:
            out.append(sample)
        else:
            out += self._shift(sample)

    # ---- what is no measurement ----------------------------------------------------------------

    def _row(self, position: Array, velocity: Array | None, torque: Array) -> Float[Array, " c"]:
        """The three channels side by side; zero where velocity is not measured.

        Joints whose velocity the first sample lacks have none.
        """
        joints = self.joints
        row = np.empty(3 * joints)
        row[:joints] = self._values(position, "positions")
        row[2 * joints :] = self._values(torque, "torques")
        if velocity is None:
            row[joints : 2 * joints] = 0.0
            if self._choice.measured:
                self._choice.unmeasured(np.ones(joints, bool))
            return row
        speeds = self._values(velocity, "velocities")
        if self.counts.pushed == 1 and np.isnan(speeds).any():
            self._choice.unmeasured(np.isnan(speeds))
        row[joints : 2 * joints] = speeds if self._choice.measured else self._choice.known(speeds)
        return row

    def _values(self, values: Array, what: str) -> Array:
        found = np.asarray(values, float)
        if found.shape != self._shape:
            count = found.shape[0] if found.ndim == 1 else f"an array of shape {found.shape}"
            raise RecordingError(
                f"expected {what} of {self.joints} joints ({self.robot}), found {count}. Give the "
                "model of the robot that is connected, its joints in the model's order."
            )
        return found

    def _temperature(self, temperature: Array | None) -> Array | None:
        """Temperatures change slowly: a missing one is the last; a joint without any has zero."""
        if temperature is None:
            return None
        found = self._values(temperature, "temperatures")
        lacking = ~(np.abs(found) < 1e4)
        if lacking.any():
            found = np.where(lacking, 0.0 if self._warm is None else self._warm, found)
        self._warm = found
        return found

    def _missing(self, row: Array) -> None:
        """Refuse a line on which no sample is a measurement."""
        self._nothing += 1
        if self._nothing < _NOTHING:
            return
        inside = np.abs(row) < self._largest
        channel = int(np.argmin(inside)) if not inside.all() else -1
        if channel < 0:
            what = "time stamps are missing"
        else:
            name = ("position", "velocity", "torque")[channel // self.joints]
            value, most = row[channel], self._largest[channel]
            what = f"the {name} of joint {channel % self.joints + 1} is {value:.4g}"
            what += f", beyond {most:.3g}" if np.isfinite(value) else ""
        raise RecordingError(
            f"{self._nothing} samples in a row are no measurements: {what}. Check units, the "
            "order of the joints and the connection."
        )

    def _in_order(self, time: float, row: Array, looks: int) -> float | None:
        """The sample's time after the last one's; None where it is not later, or says nothing."""
        at = float(time) + self._offset
        last = self._heard
        if last is None:
            return at
        step = at - last
        if step <= 0.0:
            return self._late(at, step)
        self._back.clear()
        if looks & HELD and (looks & MOVES or self._moves(row, step)):
            self._say("held", at, "torques repeat to the last digit while the arm moves")
            return None
        if self._steps >= _PERIOD_KNOWN and step < MERGE * self._period:
            self.counts.repeated += 1
            return None
        if step <= self.longest:
            self._steps += 1
            self._period += (step - self._period) / min(self._steps, 100)
        return at

    def _moves(self, row: Array, step: float) -> bool:
        """Whether a joint without a velocity of its own has moved since the last sample."""
        if self._last is None or not self._choice.lacking.any():
            return False
        way = np.abs(row[: self.joints] - self._last[1])
        return float(np.where(self._choice.lacking, way / step, 0.0).max()) > self._standstill

    def _late(self, at: float, step: float) -> float | None:
        """A stamp at or before the last one: repeated, late, or of a clock that began anew."""
        if step == 0.0:
            self.counts.repeated += 1
            return None
        if step >= -self.longest:
            self._say("late", at, f"a sample came {-step:.3f} s after a newer one")
            self._back.clear()
            return None
        if self._back and at <= self._back[-1]:
            self._back.clear()
        self._back.append(at)
        if len(self._back) < _NEW_CLOCK:
            self._say("late", at, f"a sample came {-step:.3f} s after a newer one")
            return None
        assert self._heard is not None
        now = self._heard + max(self._period, at - self._back[0], 2.0 * self.longest)
        self._offset += now - at
        self._back.clear()
        self._say("clock", now, f"time jumped back by {-step:.2f} s: it goes on from {now:.2f} s")
        return now

    def _is_gap(self, at: float) -> bool:
        return self._heard is not None and at - self._heard > self.longest

    def _gap(self, at: float) -> list[CleanSample]:
        """What waited is handed on; the next sample follows on none."""
        last = self._heard
        assert last is not None
        out = self.flush()
        self._spikes.clear()
        self._last = None
        self._say("gap", at, f"no samples from {last:.2f} s to {at:.2f} s")
        self._lonely = self._lonely + 1 if self._steps < _PERIOD_KNOWN else 0
        if self._lonely >= _HOPELESS:
            raise RecordingError(
                f"samples are {at - last:.3g} s apart; at most {self.longest:.2g} s are needed to "
                "follow the motion. Check that time is in seconds, or record faster."
            )
        return out

    def _say(self, kind: str, time: float, text: str) -> None:
        setattr(self.counts, kind, getattr(self.counts, kind) + 1)
        if kind == "gap" or time - self._said.get(kind, -np.inf) >= _SAY_AGAIN_S:
            self._said[kind] = time
            self.notices.append(Notice(time, kind, text))
