"""Contact detection: external joint torque and contacts, sample by sample.

Samples are averaged in time bins; each gives external torque (`external_torque`), the friction
regime of the joints and the evidence of a change (`change_test`). Evidence above the threshold of
the accepted false alarm rate is a contact; then the torque level before it is frozen
(`active_contact`) and a force is estimated (`force`). Recordings use the same class as live robots.

Not a safety function: not rated, detection takes tens of milliseconds, forces through the joint
axes and within the stiction band at standstill are unobservable. Sensitivity is low for 0.3 s after
start-up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from taufit.contact.active_contact import ActiveContact, ContactSample
from taufit.contact.alarm_calibration import DEFAULT_TAIL
from taufit.contact.bin_noise import BinNoise
from taufit.contact.change_test import ChangeTest, TimeBin, TorqueStep
from taufit.contact.contact import Contact, ContactEvent, ContactReading
from taufit.contact.external_torque import ExternalTorque, ExternalTorqueBlock
from taufit.contact.force import candidate_links, find_force
from taufit.contact.regime_noise import default_noise
from taufit.contact.settings import ContactSettings
from taufit.contact.standstill import StandstillTest
from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.friction_level import friction_level
from taufit.model.model_stream import require_temperature, stream_conditioner
from taufit.model.noise_by_state import NoiseByState
from taufit.payload.filter.time_grid import TimeGrid
from taufit.signals.stream import StreamConditioner
from taufit.terms.friction.states import FAST, TURNING

# Prior standard deviation of a contact, in friction levels and in noise levels.
_PRIOR_FRICTION, _PRIOR_NOISE = 0.7, 3.0
# Shortest time between two messages about acceleration outside the training range [s].
_MESSAGE_INTERVAL_S = 1.0
# Relative excess over the training acceleration that is reported.
_MAX_ACCELERATION_EXCESS = 0.25
# Longest time from the rise of motor torque to the start of motion [s].
_START_DURATION_S = 0.6
# Commanded velocity above which motion is commanded [rad/s]; a command ends after this time at
# zero [s].
_COMMANDED_VELOCITY, _COMMAND_TIMEOUT_S = 1e-5, 0.15
# Relaxation time of friction after a push at standstill [s].
_RELAXATION_S = 1.0
# Start-up time of the detection after a start or a gap [s].
_STARTUP_S = 0.3


class ContactDetector:
    """Detects contacts and estimates external torque, sample by sample.

    Feed it with `update`. Torque is joint torque [N m] from the same drives and with the same gains
    as the model's training data.

    Attributes:
        model: Model of the robot including its tool.
        settings: Settings of the detection.
        noise: Residual noise by friction regime, of the model or as given.
        threshold: Detection threshold of the evidence 2 ln B.
        events: Events so far.
        contacts: Contacts so far; the last may be active.
        last_block: External torque of the time bins completed by the newest sample, or None.
        last_reading: Newest reading, None before the first.
    """

    def __init__(
        self,
        model: FittedModel,
        noise: NoiseByState | None = None,
        *,
        alarms_per_hour: float | None = None,
        settings: ContactSettings | None = None,
    ) -> None:
        self.model = require_fitted(model, "watch for contact")
        model.robot.require_serial("contact detection")
        settings = settings or ContactSettings()
        if alarms_per_hour is not None:
            settings = replace(settings, alarms_per_hour=alarms_per_hour)
        self.settings = settings
        self.noise = noise = noise or model.training.noise or default_noise(model)
        self.tail = noise.tail or DEFAULT_TAIL
        self.threshold = settings.threshold_factor * self.tail.threshold(settings.alarms_per_hour)
        self.joints = model.robot.joints
        self.step = 1.0 / noise.rate_hz
        self.friction = np.maximum(friction_level(model), 1e-3)
        self._external_torque = ExternalTorque.from_noise(model, noise)
        self._grid = TimeGrid(
            self.step, self._external_torque.channels, max(0.1, 3.5 * self.step), capacity=64
        )
        self._row = np.empty(self._external_torque.channels)
        self.conditioner: StreamConditioner | None = None
        self._prior = np.maximum(_PRIOR_FRICTION * self.friction, _PRIOR_NOISE * noise.level[FAST])
        self._fast_noise = noise.level[FAST]
        self._noise = BinNoise(self._external_torque, noise, self.friction)
        self._standstill_test = StandstillTest(self.friction, settings)
        self.events: list[ContactEvent] = []
        self.contacts: list[Contact] = []
        self.last_reading: ContactReading | None = None
        self.last_block: ExternalTorqueBlock | None = None
        self.samples = 0
        self._is_commanded: bool | None = None
        self._last_message_time = -np.inf
        self._bins_to_skip, self._is_starting = 0, False
        self._reset()

    @property
    def observer_step_response(self) -> float:
        """Fraction of a torque step that the momentum observer shows after one time bin."""
        return self._external_torque.step_response

    # ---- samples -------------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded_velocity: Float[Array, " j"] | None = None,
    ) -> ContactReading | None:
        """Process one raw sample; return the newest reading, None before the first time bin.

        Stream conditioning (`taufit.signals.stream`) drops invalid, late and spike samples,
        replaces noisy velocity and shifts motion by the model's delay.

        Args:
            time: Time stamp [s].
            position, velocity: Joint positions and velocities.
            torque: Joint torques [N m].
            temperature: Joint temperatures [degC], required if friction depends on them.
            commanded_velocity: Commanded joint velocities. With them, a push at standstill is
                distinguished from a start of motion immediately.
        """
        if self.conditioner is None:
            self.conditioner = stream_conditioner(self.model)
        raw_sample = (time, position, velocity, torque, temperature, commanded_velocity)
        for sample in self.conditioner.push(*raw_sample):
            self.update_clean(*sample[:6])
        return self.last_reading

    def update_clean(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded_velocity: Float[Array, " j"] | None = None,
    ) -> ContactReading | None:
        """Process one conditioned sample, later than the last."""
        row, joints = self._row, self.joints
        row[:joints] = position
        row[joints : 2 * joints] = velocity
        row[2 * joints : 3 * joints] = torque
        if self._external_torque.uses_temperature:
            row[3 * joints :] = require_temperature(temperature)
        last_time = self._grid.gap_before(time)
        if last_time is not None:
            self._handle_gap(last_time, time)
        self.samples += 1
        if commanded_velocity is not None:
            if float(np.abs(commanded_velocity).max()) > _COMMANDED_VELOCITY:
                self._last_command_time = time
            self._is_commanded = time - self._last_command_time < _COMMAND_TIMEOUT_S
        self._grid.push(time, row)
        self.last_block = None
        if self._grid.complete_bins:
            self.last_block = block = self._external_torque(*self._grid.take())
            if block is not None:
                for i in range(len(block)):
                    self._process_bin(block, i, time)
        return self.last_reading

    def set_payload(self, payload: Float[Array, " 10"], *, is_new: bool = False) -> None:
        """Add a payload to the model: its torque is no longer external.

        Args:
            payload: Ten inertial parameters in the last link's frame.
            is_new: Whether it replaces another payload. An active contact is then taken for the
                payload, and the external torque level is estimated again.
        """
        self._external_torque.set_payload(payload)
        self._noise.clear_mass_matrix()
        if is_new:
            self.accept_as_payload()
            self._external_torque.restart_drift()
            self._test.reset_level(np.ones(self.joints, bool))
            self._test.restart()
            self._bins_to_skip = max(self._bins_to_skip, round(_STARTUP_S / self.step))

    def accept_as_payload(self) -> None:
        """End the active contact and take its torque as the new level, as that of a payload."""
        if self._active is not None and self.last_reading is not None:
            self._end_contact(self.last_reading.time, is_lasting=True)

    def _handle_gap(self, last: float, time: float) -> None:
        text = f"no samples from {last:.2f} s to {time:.2f} s: the watch starts anew"
        if self._active is not None:
            self._end_contact(last)
        self.events.append(ContactEvent(time, "gap", text))
        self._grid.clear()
        self._external_torque.clear()
        self._reset()

    def _reset(self) -> None:
        self._test = ChangeTest(self._prior, self.step)
        self._past: deque[ContactSample] = deque(maxlen=self._test.max_window)
        self._active: ActiveContact | None = None
        self._standstill_test.clear()
        self._is_commanded, self._last_command_time = None, -np.inf
        self._bins_to_skip, self._is_starting = round(_STARTUP_S / self.step), False
        self._was_standing = False

    # ---- one time bin --------------------------------------------------------------------------

    def _process_bin(self, block: ExternalTorqueBlock, i: int, time: float) -> None:
        excess = block.acceleration_excess[i].max()
        if excess > _MAX_ACCELERATION_EXCESS:
            self._report_excess_acceleration(float(excess), time)
        standing = bool(block.standing[i].all())
        if self._is_starting and not standing:
            # Motion has begun: its friction regimes decide.
            self._bins_to_skip, self._is_starting = 0, False
        settling = self._bins_to_skip > 0
        time_bin = self._noise.time_bin(block, i, unobservable=settling)
        if settling:
            self._bins_to_skip -= 1
            if standing:
                # Friction relaxes after a push or a start.
                self._test.reset_level(block.standing[i], time_bin.residual)
        sample = ContactSample(block.position[i], time_bin)
        self._past.append(sample)
        switched = block.regime_changed[i]
        if self._was_standing and not standing:
            # Motor torque rose against friction before the start: no external change.
            self._test.restart()
            self._test.reset_level(np.ones(self.joints, bool), time_bin.residual)
        elif switched.any():
            self._test.reset_level(switched, time_bin.residual)
        self._was_standing = standing
        if self._active is None:
            evidence = self._test.advance(time_bin)
            alarm = self._detect(standing, evidence, time)
            if alarm is not None:
                self._start_contact(alarm, block, i, time)
        else:
            evidence = self.contacts[-1].evidence
            self._active.add(sample, block.standing[i], switched | ~block.observable[i])
            self._update_contact(time)
        self._set_reading(block, i, time, evidence, time_bin)

    def _report_excess_acceleration(self, excess: float, time: float) -> None:
        if time - self._last_message_time > _MESSAGE_INTERVAL_S:
            text = (
                f"acceleration is {100 * (1 + excess):.0f} % of the training's: nothing is said "
                "about contact until it has settled"
            )
            self.events.append(ContactEvent(time, "stop beyond training", text))
        self._last_message_time = time

    def _detect(
        self, standing: bool, evidence: float, time: float
    ) -> tuple[TorqueStep, int] | None:
        """Torque step to report, and time bins since its evidence reached the threshold."""
        if not standing or self._is_commanded is not None:
            self._standstill_test.clear()
            is_starting = bool(self._is_commanded) and standing
            step = (
                self._test.most_likely_step()
                if evidence > self.threshold and not is_starting
                else None
            )
            return None if step is None else (step, 0)
        is_candidate = evidence > self.settings.first_sign * self.threshold
        step = self._test.most_likely_step() if is_candidate else None
        decision = self._standstill_test.decide(self._past, step, self.threshold, time)
        if decision.creep_level is not None:
            self._test.restart()
            self._test.reset_level(np.ones(self.joints, bool), decision.creep_level)
        elif decision.is_start:
            self._test.restart()
            self._bins_to_skip, self._is_starting = round(_START_DURATION_S / self.step), True
        return decision.push

    # ---- contacts ------------------------------------------------------------------------------

    def _start_contact(
        self, alarm: tuple[TorqueStep, int], block: ExternalTorqueBlock, i: int, time: float
    ) -> None:
        step, bins_since = alarm
        age = min(step.age + bins_since, len(self._past))
        self._active = ActiveContact(
            step.level,
            step.variance,
            list(self._past)[-age:],
            self.friction,
            self.step,
            self.settings,
        )
        self._external_torque.hold_drift(True)
        start_time = float(block.time[i]) - (age - 0.5) * self.step
        contact = self._estimate_contact(start_time, time, step.evidence)
        self.contacts.append(contact)
        self._clearest = contact
        self.events.append(ContactEvent(time, contact.kind, str(contact), contact))

    def _estimate_contact(
        self, start_time: float, detection_time: float, evidence: float
    ) -> Contact:
        assert self._active is not None
        change, covariance = self._active.change()
        variance = np.diag(covariance)
        # Pose while the change was averaged, not the present one.
        robot, position = self.model.robot, self._active.position
        force = find_force(
            robot,
            position,
            change,
            covariance,
            tool=self.settings.tool,
            force_std=self.settings.force_std,
            unobservable_std=self.settings.unobservable_std,
        )
        prior_variance = self._prior**2
        joint_evidence = change**2 / variance * prior_variance / (
            prior_variance + variance
        ) - np.log1p(prior_variance / variance)
        joint, links = candidate_links(robot, position, joint_evidence)
        not_vertical = force.vertical_misfit > self.settings.vertical_chi_square
        kind = "contact" if not_vertical else "pick or contact"
        return Contact(
            start_time,
            detection_time,
            evidence,
            change,
            variance,
            position,
            joint,
            links,
            force,
            kind,
            peak=force.size,
        )

    def _update_contact(self, time: float) -> None:
        active, contact = self._active, self.contacts[-1]
        assert active is not None
        if active.is_ended:
            self._end_contact(time - self.settings.end_window)
            return
        if active.duration_s > self.settings.max_duration:
            self._end_contact(time, is_lasting=True)
            return
        updated = self._estimate_contact(
            contact.start_time, contact.detection_time, contact.evidence
        )
        # An excluded pick stays excluded.
        kind = "contact" if contact.kind == "contact" else updated.kind
        updated = replace(updated, kind=kind, peak=max(contact.peak, updated.force.size))
        if kind != contact.kind:
            self.events.append(ContactEvent(time, kind, str(updated), updated))
        self.contacts[-1] = updated
        if updated.chi_square > self._clearest.chi_square:
            self._clearest = updated

    def _end_contact(self, end_time: float, *, is_lasting: bool = False) -> None:
        active, contact = self._active, self.contacts[-1]
        assert active is not None
        # The end is known to within the window of its test; a contact lasts a time bin at least.
        end_time = max(end_time, contact.start_time + self.step)
        # The last estimate averages over the end: the clearest one tells the force.
        ended_contact = replace(
            contact if is_lasting else self._clearest,
            kind=contact.kind,
            peak=contact.peak,
            end_time=end_time,
        )
        self.contacts[-1] = ended_contact
        text = (
            f"contact since {contact.start_time:.2f} s ended after "
            f"{end_time - contact.start_time:.2f} s"
        )
        if is_lasting:
            text = (
                f"the change since {contact.start_time:.2f} s lasts: a payload, or a load that "
                f"stays. It "
                "is the new level"
            )
        self.events.append(ContactEvent(end_time, "contact ended", text, ended_contact))
        self._test.restart()
        self._test.skip_bin(active.level_growth)
        level_lost = np.ones(self.joints, bool) if is_lasting else self._joints_in_stiction()
        self._test.reset_level(level_lost, active.recent_torque)
        self._active = None
        self._external_torque.hold_drift(False)
        pause = _RELAXATION_S if level_lost.all() else self.settings.end_window
        self._bins_to_skip = max(self._bins_to_skip, round(pause / self.step))

    def _joints_in_stiction(self) -> Array:
        """Joints whose friction may hold the rest of a push."""
        return (
            np.ones(self.joints, bool)
            if self.last_reading is None
            else self.last_reading.state >= TURNING
        )

    def _set_reading(
        self, block: ExternalTorqueBlock, i: int, time: float, evidence: float, time_bin: TimeBin
    ) -> None:
        contact = None if self._active is None else self.contacts[-1]
        if contact is None:
            change, std = block.smooth[i] - self._test.level, self._test.std + self._fast_noise
        else:
            change, std = contact.change, np.sqrt(contact.variance)
        self.last_reading = ContactReading(
            time,
            block.smooth[i],
            time_bin.observer_std,
            change,
            std,
            block.state[i],
            block.observable[i],
            evidence,
            self.threshold,
            contact,
        )
