"""Causal conditioning of a sample stream.

Steps: check shapes; drop samples with missing or invalid values, samples in motion that repeat the
previous torques exactly, and samples with late or repeated time stamps; convert the signal to joint
torque (gains, then coupling); drop spikes; differentiate position for joints without a good
velocity; shift motion by the model's delay. Dropped samples are interpolated by later resampling.

A sample waits for the next one only if it is a suspected spike or its velocity is derived.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.signals.resampling import MERGE_FRACTION
from taufit.signals.stream.motion_shift import MotionShift
from taufit.signals.stream.row_screen import HELD, MEASURED, MOVES, Screen
from taufit.signals.stream.sample import CleanSample, Notice
from taufit.signals.stream.spike_detector import spike_detector
from taufit.signals.stream.velocity_selection import VelocitySelection, derived_velocity

# Time steps above this are gaps [s].
GAP_S = 0.1
# Minimum time between two notices of one kind [s].
_NOTICE_INTERVAL_S = 1.0
# Number of consecutive earlier time stamps after which the clock counts as restarted.
_CLOCK_RESTART_SAMPLES = 5
# Consecutive gaps without samples between them, and invalid samples, after which an error is
# raised.
_MAX_ISOLATED_GAPS, _MAX_INVALID_SAMPLES = 20, 500
# Time steps after which the sampling period is known.
_MIN_PERIOD_STEPS = 10
_MAX_NOTICES = 1000


@dataclass(slots=True)
class StreamCounts:
    """Numbers of samples received, passed on and dropped, by reason."""

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
    """Conditions a stream of raw samples of one robot.

    Args:
        joints: Number of joints.
        robot: Name of the robot, used in messages.
        gain: Joint torque per unit of the torque channel; None if it is in N m.
        coupling: C with motor positions q_m = C q, or None for one motor per joint.
        delay_s: Delay of torque behind motion [s]; one number or one per joint.
        floor: Minimum size of a spike in position, velocity and torque, channel after channel.
        maximum: Largest valid magnitudes of the same channels.
        standstill: Speed below which a joint stands still [rad/s or m/s].
        max_gap_s: Time steps above this are gaps [s].

    Attributes:
        counts: Sample counts so far.
        notices: Latest notices; may be cleared by the reader.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each property of the robot's line
        self,
        joints: int,
        *,
        robot: str = "the robot",
        gain: Float[Array, " j"] | None = None,
        coupling: Float[Array, "j j"] | None = None,
        delay_s: float | tuple[float, ...] = 0.0,
        floor: Float[Array, " c"] | None = None,
        maximum: Float[Array, " c"] | None = None,
        standstill: float = 0.02,
        max_gap_s: float = GAP_S,
    ) -> None:
        self.joints, self.robot, self.max_gap_s = joints, robot, max_gap_s
        self._shape = (joints,)
        self._gain = None if gain is None else np.asarray(gain, float)
        self._coupling = None if coupling is None else np.asarray(coupling, float)
        self._standstill = standstill
        self._maximum = np.full(3 * joints, 1e12) if maximum is None else np.array(maximum, float)
        self._screen = Screen(self._maximum, standstill)
        self._spikes = spike_detector(np.zeros(3 * joints) if floor is None else floor)
        self._velocity_selection = VelocitySelection(joints)
        self._shift = MotionShift(delay_s) if np.any(delay_s) else None
        self.counts = StreamCounts()
        self.notices: deque[Notice] = deque(maxlen=_MAX_NOTICES)
        self._notice_times: dict[str, float] = {}
        self._offset, self._period, self._steps = 0.0, 0.0, 0
        self._backward_times: list[float] = []
        self._isolated_gaps = self._invalid_count = 0
        self._last_time: float | None = None
        self._last_temperature: Array | None = None
        self._previous: tuple[float, Array] | None = None
        # A suspicious sample; one that waits for its neighbour to have a velocity.
        self._suspect: tuple[CleanSample, Array] | None = None
        self._pending: CleanSample | None = None

    @property
    def velocity_measured(self) -> Array:
        """Joints with measured velocity."""
        return ~self._velocity_selection.lacking

    @property
    def velocity_derived(self) -> Array:
        """Joints whose velocity is differentiated position."""
        return self._velocity_selection.derived

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
        """Process a raw sample; return the samples that are clean now (none, one or several).

        Args:
            time: Time stamp [s].
            position: Joint positions [rad or m].
            velocity: Joint velocities; None (or nan per joint) if not measured.
            torque: Torque channel, in the unit of the gains.
            temperature: Joint temperatures [degC], or None.
            commanded: Commanded joint velocities, or None.
        """
        self.counts.pushed += 1
        row = self._row(position, velocity, torque)
        flags = self._screen.look(row)
        if not flags & MEASURED or not abs(time) < 1e12:
            self._count_invalid(row)
            self._notify("missing", time, "a sample lacks a value or has an impossible one")
            return []
        self._invalid_count = 0
        clean_time = self._in_order(time, row, flags)
        if clean_time is None:
            return []
        out = self._gap(clean_time) if self._is_gap(clean_time) else []
        joints = self.joints
        joint_torque = row[2 * joints :]
        self._screen.hold(row)
        self._last_time = clean_time
        if self._gain is not None:
            joint_torque *= self._gain
        if self._coupling is not None:
            joint_torque[:] = joint_torque @ self._coupling
        sample = CleanSample(
            clean_time,
            row[:joints],
            row[joints : 2 * joints],
            joint_torque,
            self._temperature(temperature),
            commanded,
            self.counts.pushed - 1,
        )
        return self._check_spikes(sample, row, out)

    def flush(self) -> list[CleanSample]:
        """Return pending samples without waiting for the next one; a suspected spike is dropped."""
        out: list[CleanSample] = []
        if self._suspect is not None:
            earlier = self._suspect[0]
            self._suspect = None
            text = (
                f"the sample at {earlier.time:.3f} s is far from those before it and the last one"
            )
            self._notify("spike", earlier.time, text)
        if self._pending is not None:
            self._release(self._pending, None, out)
            self._pending = None
        if self._shift is not None:
            out += self._shift.flush()
        return out

    def _check_spikes(
        self, sample: CleanSample, row: Array, out: list[CleanSample]
    ) -> list[CleanSample]:
        if self._suspect is not None:
            earlier, values = self._suspect
            self._suspect = None
            if self._spikes.is_spike(earlier.time, values, sample.time, row):
                text = f"a sample at {earlier.time:.3f} s has a value far from its neighbours"
                self._notify("spike", earlier.time, text)
            else:
                self._accept(earlier, values, out)
        if self._spikes.suspicious(sample.time, row):
            self._suspect = (sample, row)
        else:
            self._accept(sample, row, out)
        return out

    def _accept(self, sample: CleanSample, row: Array, out: list[CleanSample]) -> None:
        """Accept a valid sample; if velocity is derived it waits for the next sample."""
        self._spikes.accept(sample.time, row)
        self._velocity_selection.add_sample(row[: 2 * self.joints])
        if self._pending is not None:
            self._release(self._pending, sample, out)
            self._pending = None
        if self._velocity_selection.any_derived:
            self._pending = sample
        else:
            self._release(sample, None, out)

    def _release(
        self, sample: CleanSample, after: CleanSample | None, out: list[CleanSample]
    ) -> None:
        if self._velocity_selection.any_derived:
            next_motion = None if after is None else (after.time, after.position)
            derived = self._velocity_selection.derived
            velocity = derived_velocity(sample, derived, self._previous, next_motion)
            sample = sample._replace(velocity=velocity)
        self._previous = (sample.time, sample.position)
        self.counts.taken += 1
        if self._shift is None:
            out.append(sample)
        else:
            out += self._shift(sample)

    # ---- invalid samples ------------------------------------------------------------------------

    def _row(self, position: Array, velocity: Array | None, torque: Array) -> Float[Array, " c"]:
        """Position, velocity and torque side by side; zero velocity for joints without it.

        Velocity counts as not measured for joints whose first sample lacks it.
        """
        joints = self.joints
        row = np.empty(3 * joints)
        row[:joints] = self._values(position, "positions")
        row[2 * joints :] = self._values(torque, "torques")
        if velocity is None:
            row[joints : 2 * joints] = 0.0
            if self._velocity_selection.measured:
                self._velocity_selection.mark_unmeasured(np.ones(joints, bool))
            return row
        velocities = self._values(velocity, "velocities")
        if self.counts.pushed == 1 and np.isnan(velocities).any():
            self._velocity_selection.mark_unmeasured(np.isnan(velocities))
        row[joints : 2 * joints] = (
            velocities
            if self._velocity_selection.measured
            else self._velocity_selection.fill_unmeasured(velocities)
        )
        return row

    def _values(self, values: Array, channel_name: str) -> Array:
        array = np.asarray(values, float)
        if array.shape != self._shape:
            count = array.shape[0] if array.ndim == 1 else f"an array of shape {array.shape}"
            raise RecordingError(
                f"expected {channel_name} of {self.joints} joints ({self.robot}), found {count}. "
                "Give the "
                "model of the robot that is connected, its joints in the model's order."
            )
        return array

    def _temperature(self, temperature: Array | None) -> Array | None:
        """Temperatures with missing values replaced by the last ones (zero before the first)."""
        if temperature is None:
            return None
        current = self._values(temperature, "temperatures")
        is_missing = ~(np.abs(current) < 1e4)
        if is_missing.any():
            current = np.where(
                is_missing,
                0.0 if self._last_temperature is None else self._last_temperature,
                current,
            )
        self._last_temperature = current
        return current

    def _count_invalid(self, row: Array) -> None:
        """Raise a `RecordingError` after too many invalid samples in a row."""
        self._invalid_count += 1
        if self._invalid_count < _MAX_INVALID_SAMPLES:
            return
        inside = np.abs(row) < self._maximum
        channel = int(np.argmin(inside)) if not inside.all() else -1
        if channel < 0:
            problem = "time stamps are missing"
        else:
            name = ("position", "velocity", "torque")[channel // self.joints]
            value, limit = row[channel], self._maximum[channel]
            problem = f"the {name} of joint {channel % self.joints + 1} is {value:.4g}"
            problem += f", beyond {limit:.3g}" if np.isfinite(value) else ""
        raise RecordingError(
            f"{self._invalid_count} samples in a row are no measurements: {problem}. Check units, "
            "the "
            "order of the joints and the connection."
        )

    def _in_order(self, time: float, row: Array, flags: int) -> float | None:
        """Time of the sample if it is after the last one; None if it is to be dropped."""
        shifted_time = float(time) + self._offset
        last = self._last_time
        if last is None:
            return shifted_time
        step = shifted_time - last
        if step <= 0.0:
            return self._handle_backward_time(shifted_time, step)
        self._backward_times.clear()
        if flags & HELD and (flags & MOVES or self._has_moved(row, step)):
            self._notify(
                "held", shifted_time, "torques repeat to the last digit while the arm moves"
            )
            return None
        if self._steps >= _MIN_PERIOD_STEPS and step < MERGE_FRACTION * self._period:
            self.counts.repeated += 1
            return None
        if step <= self.max_gap_s:
            self._steps += 1
            self._period += (step - self._period) / min(self._steps, 100)
        return shifted_time

    def _has_moved(self, row: Array, step: float) -> bool:
        """Whether a joint without measured velocity has moved since the last sample."""
        if self._previous is None or not self._velocity_selection.lacking.any():
            return False
        travel = np.abs(row[: self.joints] - self._previous[1])
        return (
            float(np.where(self._velocity_selection.lacking, travel / step, 0.0).max())
            > self._standstill
        )

    def _handle_backward_time(self, sample_time: float, step: float) -> float | None:
        """Handle a time stamp at or before the last one: repeated, late, or clock restart."""
        if step == 0.0:
            self.counts.repeated += 1
            return None
        if step >= -self.max_gap_s:
            self._notify("late", sample_time, f"a sample came {-step:.3f} s after a newer one")
            self._backward_times.clear()
            return None
        if self._backward_times and sample_time <= self._backward_times[-1]:
            self._backward_times.clear()
        self._backward_times.append(sample_time)
        if len(self._backward_times) < _CLOCK_RESTART_SAMPLES:
            self._notify("late", sample_time, f"a sample came {-step:.3f} s after a newer one")
            return None
        assert self._last_time is not None
        resumed_time = self._last_time + max(
            self._period, sample_time - self._backward_times[0], 2.0 * self.max_gap_s
        )
        self._offset += resumed_time - sample_time
        self._backward_times.clear()
        self._notify(
            "clock",
            resumed_time,
            f"time jumped back by {-step:.2f} s: it goes on from {resumed_time:.2f} s",
        )
        return resumed_time

    def _is_gap(self, at: float) -> bool:
        return self._last_time is not None and at - self._last_time > self.max_gap_s

    def _gap(self, at: float) -> list[CleanSample]:
        """Return the pending samples and restart spike detection and differentiation."""
        last = self._last_time
        assert last is not None
        out = self.flush()
        self._spikes.clear()
        self._previous = None
        self._notify("gap", at, f"no samples from {last:.2f} s to {at:.2f} s")
        self._isolated_gaps = self._isolated_gaps + 1 if self._steps < _MIN_PERIOD_STEPS else 0
        if self._isolated_gaps >= _MAX_ISOLATED_GAPS:
            raise RecordingError(
                f"samples are {at - last:.3g} s apart; at most {self.max_gap_s:.2g} s are needed "
                "to "
                "follow the motion. Check that time is in seconds, or record faster."
            )
        return out

    def _notify(self, kind: str, time: float, text: str) -> None:
        setattr(self.counts, kind, getattr(self.counts, kind) + 1)
        if kind == "gap" or time - self._notice_times.get(kind, -np.inf) >= _NOTICE_INTERVAL_S:
            self._notice_times[kind] = time
            self.notices.append(Notice(time, kind, text))
