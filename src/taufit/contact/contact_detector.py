"""The arm's sense of touch: fed sample by sample, it says what the outside does to the joints.

Samples go onto a grid; each step of it gives external torque (`external_torque`), the joints'
friction states, and the evidence for a change (`change_test`). Evidence beyond the threshold of the
accepted rate of false alarms is a contact; from then on the level before it is frozen (`touch`) and
a force is found (`force`). A file is fed to the same class, so both say the same.

This is no safety function: it is not rated, needs tens of milliseconds, and is blind to forces
through the axes and to what friction holds at standstill. For 0.3 s after a start it hardly feels
anything.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from taufit.contact.active_contact import ActiveContact, ContactSample
from taufit.contact.bin_noise import BinNoise
from taufit.contact.calibrate import DEFAULT_TAIL
from taufit.contact.change_test import ChangeTest, TimeBin, TorqueStep
from taufit.contact.contact import Contact, ContactEvent, ContactReading
from taufit.contact.external_torque import ExternalTorque, ExternalTorqueBlock
from taufit.contact.force import candidate_links, find_force
from taufit.contact.noise import default_noise
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

# Size of contacts before anything is known, in friction levels and in levels of noise.
_PRIOR_FRICTION, _PRIOR_NOISE = 0.7, 3.0
# A stop beyond training is said again only after this long [s].
_SAY_AGAIN_S = 1.0
# Acceleration beyond the training's, relative, that is worth saying.
_JOLT = 0.25
# An arm that begins to go where its motors push starts within this time [s].
_STARTS_S = 0.6
# Commanded velocities beyond this are a motion: motors push long before anything moves [rad/s]. A
# command that passes through zero has not ended [s].
_COMMANDED, _COMMAND_LASTS_S = 1e-5, 0.15
# After a push at standstill friction unwinds for this long at least [s].
_UNWINDS_S = 1.0
# Settling after a start or a gap [s].
_SETTLE_S = 0.3


class ContactDetector:
    """External torque and contacts of an arm, sample by sample.

    Feed it with `update`; the torque is that of the joints in newton metres, from the same drives
    and with the same gains as the model's training data.

    Attributes:
        model: Of the arm with all that is on it.
        settings: How it works.
        noise: Residuals by friction state, of the model or as given.
        threshold: Evidence that an alarm needs.
        events: What happened so far.
        contacts: All contacts so far, the last may still last.
        felt: The steps of the grid that the last sample has completed, or None.
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
        settings = settings or ContactSettings()
        if alarms_per_hour is not None:
            settings = replace(settings, alarms_per_hour=alarms_per_hour)
        self.settings = settings
        self.noise = noise = noise or model.training.noise or default_noise(model)
        self.tail = noise.tail or DEFAULT_TAIL
        self.threshold = settings.margin * self.tail.threshold(settings.alarms_per_hour)
        self.joints = model.robot.joints
        self.step = 1.0 / noise.rate_hz
        self.friction = np.maximum(friction_level(model), 1e-3)
        self._felt = ExternalTorque.of(model, noise)
        self._grid = TimeGrid(
            self.step, self._felt.channels, max(0.1, 3.5 * self.step), capacity=64
        )
        self._row = np.empty(self._felt.channels)
        self.intake: StreamConditioner | None = None
        self._prior = np.maximum(_PRIOR_FRICTION * self.friction, _PRIOR_NOISE * noise.level[FAST])
        self._usual = noise.level[FAST]
        self._noise = BinNoise(self._felt, noise, self.friction)
        self._rest = StandstillTest(self.friction, settings)
        self.events: list[ContactEvent] = []
        self.contacts: list[Contact] = []
        self.seen: ContactReading | None = None
        self.felt: ExternalTorqueBlock | None = None
        self.samples = 0
        self._commanded: bool | None = None
        self._said = -np.inf
        self._settling, self._starting = 0, False
        self._restart()

    @property
    def share(self) -> float:
        """Of a new step in what the momentum observer shows."""
        return self._felt.share

    # ---- what comes in -------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded_velocity: Float[Array, " j"] | None = None,
    ) -> ContactReading | None:
        """One sample as it comes, and what is felt then; None before the first step of the grid.

        It goes through an intake (`taufit.signals.stream`): what is no measurement, late or a spike
        is left out, noisy velocity is replaced, and motion is shifted by the model's delay.

        Args:
            time: [s].
            position, velocity: Of the joints.
            torque: Of the joints [N m].
            temperature: Of the joints [degC], where friction depends on it.
            commanded_velocity: What the joints were told to do: with it a push at standstill is
                told from a start at once.
        """
        if self.intake is None:
            self.intake = stream_conditioner(self.model)
        given = (time, position, velocity, torque, temperature, commanded_velocity)
        for sample in self.intake.push(*given):
            self.feed(*sample[:6])
        return self.seen

    def feed(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
        commanded_velocity: Float[Array, " j"] | None = None,
    ) -> ContactReading | None:
        """One clean sample, later than the last, as an intake hands it on."""
        row, joints = self._row, self.joints
        row[:joints] = position
        row[joints : 2 * joints] = velocity
        row[2 * joints : 3 * joints] = torque
        if self._felt.warm:
            row[3 * joints :] = require_temperature(temperature)
        since = self._grid.gap_before(time)
        if since is not None:
            self._gap(since, time)
        self.samples += 1
        if commanded_velocity is not None:
            if float(np.abs(commanded_velocity).max()) > _COMMANDED:
                self._ordered = time
            self._commanded = time - self._ordered < _COMMAND_LASTS_S
        self._grid.push(time, row)
        self.felt = None
        if self._grid.complete_bins:
            self.felt = felt = self._felt(*self._grid.take())
            if felt is not None:
                for i in range(len(felt)):
                    self._feel(felt, i, time)
        return self.seen

    def carry(self, payload: Float[Array, " 10"], *, anew: bool = False) -> None:
        """The arm carries this body from now on: its torque comes from inside.

        Args:
            payload: Ten inertial parameters in the last link's frame.
            anew: It is another body than before: a contact that lasts was it, and what the outside
                does is learnt anew.
        """
        self._felt.carry(payload)
        self._noise.forget()
        if anew:
            self.accept()
            self._test.lose(np.ones(self.joints, bool))
            self._test.forget()
            self._settling = max(self._settling, round(_SETTLE_S / self.step))

    def accept(self) -> None:
        """What touches the arm is something it carries: its torque is the new level."""
        if self._touch is not None and self.seen is not None:
            self._end(self.seen.time, lasting=True)

    def _gap(self, last: float, time: float) -> None:
        text = f"no samples from {last:.2f} s to {time:.2f} s: the watch starts anew"
        if self._touch is not None:
            self._end(last)
        self.events.append(ContactEvent(time, "gap", text))
        self._grid.clear()
        self._felt.clear()
        self._restart()

    def _restart(self) -> None:
        self._test = ChangeTest(self._prior, self.step)
        self._past: deque[ContactSample] = deque(maxlen=self._test.longest)
        self._touch: ActiveContact | None = None
        self._rest.clear()
        self._commanded, self._ordered = None, -np.inf
        self._settling, self._starting = round(_SETTLE_S / self.step), False
        self._stands = False

    # ---- one step of the grid ------------------------------------------------------------------

    def _feel(self, felt: ExternalTorqueBlock, i: int, time: float) -> None:
        jolt = felt.jolts[i].max()
        if jolt > _JOLT:
            self._say_jolt(float(jolt), time)
        standing = bool(felt.standing[i].all())
        if self._starting and not standing:
            # It has started: from now on its friction states say what can be told.
            self._settling, self._starting = 0, False
        settling = self._settling > 0
        cell = self._noise.cell(felt, i, blind=settling)
        if settling:
            self._settling -= 1
            if standing:
                # Friction that a push or a start has wound up unwinds.
                self._test.lose(felt.standing[i], cell.residual)
        moment = ContactSample(felt.position[i], cell)
        self._past.append(moment)
        switched = felt.switched[i]
        if self._stands and not standing:
            # Motors have pushed against friction before the arm went: that is no change.
            self._test.forget()
            self._test.lose(np.ones(self.joints, bool), cell.residual)
        elif switched.any():
            self._test.lose(switched, cell.residual)
        self._stands = standing
        if self._touch is None:
            evidence = self._test.advance(cell)
            alarm = self._alarm(standing, evidence, time)
            if alarm is not None:
                self._begin(alarm, felt, i, time)
        else:
            evidence = self.contacts[-1].evidence
            self._touch.add(moment, felt.standing[i], switched | ~felt.sure[i])
            self._follow(time)
        self._see(felt, i, time, evidence, cell)

    def _say_jolt(self, jolt: float, time: float) -> None:
        if time - self._said > _SAY_AGAIN_S:
            text = (
                f"acceleration is {100 * (1 + jolt):.0f} % of the training's: nothing is said "
                "about contact until it has settled"
            )
            self.events.append(ContactEvent(time, "stop beyond training", text))
        self._said = time

    def _alarm(self, standing: bool, evidence: float, time: float) -> tuple[TorqueStep, int] | None:
        """A step to be told, and cells that have passed since its evidence was enough."""
        if not standing or self._commanded is not None:
            self._rest.clear()
            starts = bool(self._commanded) and standing
            step = self._test.found() if evidence > self.threshold and not starts else None
            return None if step is None else (step, 0)
        may_be = evidence > self.settings.sign * self.threshold
        step = self._test.found() if may_be else None
        found = self._rest.judge(self._past, step, self.threshold, time)
        if found.creeps is not None:
            self._test.forget()
            self._test.lose(np.ones(self.joints, bool), found.creeps)
        elif found.starts:
            self._test.forget()
            self._settling, self._starting = round(_STARTS_S / self.step), True
        return found.push

    # ---- contacts ------------------------------------------------------------------------------

    def _begin(
        self, alarm: tuple[TorqueStep, int], felt: ExternalTorqueBlock, i: int, time: float
    ) -> None:
        step, cells = alarm
        age = min(step.age + cells, len(self._past))
        self._touch = ActiveContact(
            step.level,
            step.variance,
            list(self._past)[-age:],
            self.friction,
            self.step,
            self.settings,
        )
        since = float(felt.time[i]) - (age - 0.5) * self.step
        contact = self._contact(since, time, step.evidence)
        self.contacts.append(contact)
        self.events.append(ContactEvent(time, contact.kind, str(contact), contact))

    def _contact(self, since: float, noticed: float, evidence: float) -> Contact:
        assert self._touch is not None
        change, covariance = self._touch.over()
        variance = np.diag(covariance)
        # Where the arm was while the change was averaged, not where it is by now.
        robot, position = self.model.robot, self._touch.position
        force = find_force(
            robot,
            position,
            change,
            covariance,
            tool=self.settings.tool,
            force_std=self.settings.force_std,
            blind_std=self.settings.blind_std,
        )
        wide = self._prior**2
        parts = change**2 / variance * wide / (wide + variance) - np.log1p(wide / variance)
        joint, links = candidate_links(robot, position, parts)
        excluded = force.vertical_misfit > self.settings.off_vertical
        kind = "contact" if excluded else "pick or contact"
        return Contact(
            since,
            noticed,
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

    def _follow(self, time: float) -> None:
        touch, known = self._touch, self.contacts[-1]
        assert touch is not None
        if touch.ended:
            self._end(time - self.settings.end)
            return
        if touch.seconds > self.settings.longest:
            self._end(time, lasting=True)
            return
        now = self._contact(known.since, known.noticed, known.evidence)
        # What has been excluded stays so.
        kind = "contact" if known.kind == "contact" else now.kind
        now = replace(now, kind=kind, peak=max(known.peak, now.force.size))
        if kind != known.kind:
            self.events.append(ContactEvent(time, kind, str(now), now))
        self.contacts[-1] = now

    def _end(self, until: float, *, lasting: bool = False) -> None:
        touch, known = self._touch, self.contacts[-1]
        assert touch is not None
        done = replace(known, until=until)
        self.contacts[-1] = done
        text = f"contact since {known.since:.2f} s ended after {until - known.since:.2f} s"
        if lasting:
            text = (
                f"the change since {known.since:.2f} s lasts: a payload, or a load that stays. It "
                "is the new level"
            )
        self.events.append(ContactEvent(until, "contact ended", text, done))
        self._test.forget()
        self._test.wait(touch.walked)
        stays = np.ones(self.joints, bool) if lasting else self._stood()
        self._test.lose(stays, touch.now)
        self._touch = None
        pause = _UNWINDS_S if stays.all() else self.settings.end
        self._settling = max(self._settling, round(pause / self.step))

    def _stood(self) -> Array:
        """Joints whose friction may hold what is left of a push."""
        return np.ones(self.joints, bool) if self.seen is None else self.seen.state >= TURNING

    def _see(
        self, felt: ExternalTorqueBlock, i: int, time: float, evidence: float, cell: TimeBin
    ) -> None:
        contact = None if self._touch is None else self.contacts[-1]
        if contact is None:
            change, spread = felt.smooth[i] - self._test.level, self._test.std + self._usual
        else:
            change, spread = contact.change, np.sqrt(contact.variance)
        self.seen = ContactReading(
            time,
            felt.smooth[i],
            cell.spread,
            change,
            spread,
            felt.state[i],
            felt.sure[i],
            evidence,
            self.threshold,
            contact,
        )
