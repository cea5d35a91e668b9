"""The recommended estimator: everything unknown in one linear model, sample by sample.

Rows of joint i (`arm_rows`) add to a sum of squares of their own (`joint_sums`),

    G_i = integral of [columns, y]' [columns, y] dt / S_i,

S_i the noise density of that joint; `knowledge` keeps the sums and reads them out. Parameters are
constants, so this is the Kalman filter without its process noise, in information form: exact,
mergeable, and never losing definiteness. Here is the way of the samples into the sums, and what
happens when the payload changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import require_temperature, stream_conditioner
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.arm_rows import PayloadRowBuilder, PayloadRows
from taufit.payload.filter.change_detector import (
    ChangeDetector,
    ReferenceEstimate,
    RowBlock,
    quick_density,
)
from taufit.payload.filter.contact_hypothesis import ContactHypothesis
from taufit.payload.filter.event import (
    PayloadEvent,
    contact,
    earlier_contact,
    gap,
    known_change,
    payload_change,
    pick_or_contact,
)
from taufit.payload.filter.filter_state import PayloadFilterState
from taufit.payload.filter.gain_uncertainty import GainUncertainty
from taufit.payload.filter.lowpass import BANDWIDTH
from taufit.payload.filter.nuisance_model import NuisanceModel, nuisance_model
from taufit.payload.filter.posterior import Posterior
from taufit.payload.filter.time_grid import TimeGrid
from taufit.payload.filter.training_coverage import TrainingCoverage
from taufit.payload.settings import PayloadSettings
from taufit.regression.residual_structure import EXTRAS
from taufit.signals.intake import StreamConditioner

__all__ = ["PayloadEvent", "PayloadFilter", "Posterior"]

# Seconds after a gap in which the low-pass still holds what was before, times its cut-off.
_SETTLE = 4.0
# Factor on the noise density of the training where changes are looked for; the alarm goes with it.
_WATCHFUL = 1.15


class PayloadFilter:
    """Mass, centre of mass and inertia of what an arm carries, while it moves.

    Feed it with `update`, ask it with `estimate` (at about 10 Hz). The torque is that of the joints
    in newton metres, from the same drives and with the same gains as the model's training data.

    Attributes:
        model: Of the empty arm (or with the tool that stays on it).
        settings: How it works.
        known: What the samples so far say.
        gain_std: Relative standard deviation of each joint's drive gain.
        rate_hz: Of its grid.
        samples, cells: Samples that came, and cells of the grid worked off.
        intake: Of the samples given to `update`, once there was one.
        events: Picks, drops and gaps so far.
        ready_at: When the estimate became worth reading [s], or None.
        stopped_at: When the wanted accuracy was reached [s], or None.
    """

    def __init__(
        self,
        model: FittedModel,
        settings: PayloadSettings | None = None,
        *,
        gain_std: Float[Array, " j"] | None = None,
    ) -> None:
        self.model = model
        self.settings = settings = settings or PayloadSettings()
        columns = nuisance_model(model, settings)
        self.joints = model.robot.joints
        # Per joint, which of its columns is friction at low speed.
        self._slow = [
            int(np.argmax(rows == columns.names.index(joint_parameter(j, EXTRAS[0]))))
            for j, rows in enumerate(columns.rows)
        ]
        conditioning = model.training.conditioning
        rate = conditioning.rate_hz
        self.rate_hz = rate / np.ceil(rate / settings.fastest_hz - 1e-9)
        self.step = 1.0 / self.rate_hz
        self.cutoff_hz = min(conditioning.cutoff_hz, 0.2 * self.rate_hz)
        gains = GainUncertainty.of(model, settings, gain_std)
        self.gain_std = gains.std
        self.known = PayloadFilterState(columns, settings, gains, self.step)
        self._familiar = TrainingCoverage.of(model, settings.standstill)
        self._arm = PayloadRowBuilder(
            model,
            columns,
            rate_hz=self.rate_hz,
            cutoff_hz=self.cutoff_hz,
            standstill=settings.standstill,
        )
        self.grid = TimeGrid(self.step, self._arm.channels, max(0.1, 3.5 / self.rate_hz))
        self._row = np.empty(self._arm.channels)
        self.intake: StreamConditioner | None = None
        self.events: list[PayloadEvent] = []
        self.time = np.nan
        self.samples = self.cells = 0
        self.template: Any = None
        self.kept: list[tuple[Array, Array, Array]] | None = None
        self.detector = ChangeDetector(max(settings.windows))
        self._rival: ContactHypothesis | None = None
        # The change of payload whose size is not known yet, and the mass before it.
        self._unmeasured: tuple[int, float] | None = None
        self._restart_stream()

    @property
    def unknowns(self) -> NuisanceModel:
        """Columns, their prior, noise."""
        return self.known.unknowns

    @property
    def ready_at(self) -> float | None:
        return self.known.ready_at

    @property
    def stopped_at(self) -> float | None:
        return self.known.stopped_at

    # ---- what comes in -------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """One sample as it comes: time [s], joint positions, velocities and torques [N m].

        It goes through an intake (`taufit.signals.intake`): what is no measurement, late or a spike
        is left out, noisy velocity is replaced, and motion is shifted by the model's delay.
        """
        if self.intake is None:
            self.intake = stream_conditioner(self.model)
        for sample in self.intake.push(time, position, velocity, torque, temperature):
            self.feed(*sample[:5])

    def feed(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """One clean sample, later than the last, as an intake hands it on."""
        row, joints = self._row, self.joints
        row[:joints] = position
        row[joints : 2 * joints] = velocity
        row[2 * joints : 3 * joints] = torque
        if self._arm.warm:
            row[3 * joints :] = require_temperature(temperature)
        since = self.grid.gap_before(time)
        if since is not None:
            self._work()
            self.events.append(gap(since, time))
            self._restart_stream()
        self.samples += 1
        self.time = time
        self.grid.push(time, row)
        if self.grid.complete >= self.settings.chunk:
            self._work()

    def flush(self) -> None:
        """Work off what waits for the next sample or chunk."""
        if self.intake is not None:
            for sample in self.intake.flush():
                self.feed(*sample[:5])
        if self.grid.filled:
            self._work()

    def cancel_arm(self, share: float, density: Float[Array, " j"] | None, runs: int) -> None:
        """The arm's own errors cancel down to a share of their variance: a template is used.

        Args:
            share: What is left of them.
            density: Noise density of one run as the templates show it, or None with one only.
            runs: How many templates were averaged; their noise adds to that of the run.
        """
        u = self.unknowns
        own = u.density if density is None else np.where(np.isnan(density), u.density, density)
        own = np.clip(own, 0.5 * u.density, 2.0 * u.density)
        own = own * (1.0 + 1.0 / runs)
        # White noise of that density behind the low-pass.
        self.known.cancel_arm(share, own, np.sqrt(own * BANDWIDTH * self.cutoff_hz))
        # Where the template has been, nothing is new.
        self._familiar = TrainingCoverage.everywhere(self.joints)

    def _restart_stream(self) -> None:
        # Whether a change has ended is not known across a gap.
        self._rival = None
        self.grid.clear()
        self._arm.clear()
        self.detector.clear()
        self._settling = 0
        if self.samples:
            self._settle()
            self.known.marginalise_starts()

    def _settle(self) -> None:
        """Rows to come mix both so long as the low-pass still holds what was before."""
        self._settling = int(_SETTLE / self.cutoff_hz * self.rate_hz)

    def _work(self) -> None:
        """Rows of the cells that are complete, into the sums."""
        time, cells = self.grid.take()
        self.cells += len(time)
        rows = self._arm(time, cells, self.known.phi) if len(time) else None
        if rows is None:
            return
        if self.kept is not None:
            self.kept.append((rows.position, rows.velocity, rows.y))
        if self.template is not None:
            rows = rows.less(*self.template.residual(rows.position, rows.velocity))
        if self._rival is not None:
            self._decide(self._chunk(rows, self._weight(rows)))
        skip = min(self._settling, len(rows))
        self._settling -= skip
        if skip < len(rows):
            self._add(rows.after(skip) if skip else rows)

    def _add(self, rows: PayloadRows) -> None:
        weight = self._weight(rows)
        self.known.add(rows, weight)
        if self.settings.detect:
            chunk = self._chunk(rows, weight)
            self.detector.add(chunk)
            if self.known.faced and self._rival is None:
                self._look_for_change(chunk.time)

    def _weight(self, rows: PayloadRows) -> Float[Array, "n j"]:
        """Of each row: at standstill friction is anywhere in its band, for as long as it lasts."""
        u = self.unknowns
        band = (0.5 * u.level + 2.0 * u.rms) ** 2 * 2.0
        weight = 1.0 / (1.0 + band * rows.still / u.density)
        return self._familiar.discounted(weight, rows.position, rows.velocity)

    def _chunk(self, rows: PayloadRows, weight: Float[Array, "n j"]) -> RowBlock:
        """Rows to look for changes in: in motion only, at standstill friction may do anything."""
        each = [(rows.of(j), weight[:, j]) for j in range(self.joints)]
        return RowBlock(
            float(rows.time[-1]),
            len(rows) * self.step,
            tuple((own, np.where(w > 0.5, w, 0.0)) for own, w in each),
            tuple(w for _, w in each),
        )

    # ---- picks and drops -----------------------------------------------------------------------

    def _look_for_change(self, time: float) -> None:
        belief = self._belief()
        found = self.detector.look(belief, self.settings.windows, self.settings.light)
        if found.evidence > self.settings.alarm:
            self.events.append(pick_or_contact(time))
            # The last moments are not of what was there before them.
            self.known.take_back(self.detector.chunks)
            self.detector.clear()
            place, light = len(self.events) - 1, self.settings.light
            self._rival = ContactHypothesis(time, place, found, belief, light, self.known)
            self.known = self.known.anew()
            self._settle()

    def _decide(self, chunk: RowBlock) -> None:
        """Whether the last change was a pick or a contact, once that is clear."""
        rival = self._rival
        assert rival is not None
        was_contact = rival.look(chunk)
        if was_contact is None:
            return
        self._rival = None
        if not was_contact and self._was_read_in_contact(rival):
            self.events[rival.event] = earlier_contact(rival.time)
            return
        if not was_contact:
            self.events[rival.event] = payload_change(rival.time, rival.mass)
            before = rival.kept.last
            if before is not None and before.ready:
                self._unmeasured = (rival.event, before.mass)
            return
        self.events[rival.event] = contact(rival.time, chunk.time)
        self.known = rival.kept
        self.detector.clear()
        self._settle()

    def _was_read_in_contact(self, rival: ContactHypothesis) -> bool:
        """Whether what has changed was no payload but a push while the payload was first read."""
        mass, spread = self.posterior().linear()
        std = float(np.sqrt(spread[0, 0]))
        return rival.kept.readings.ended_contact(rival.time, float(mass[0]), std)

    def _belief(self) -> ReferenceEstimate:
        """What the last read-out says, column by column."""
        u, known = self.unknowns, self.known
        last = known.last
        assert last is not None
        louder = np.maximum(known.scale, 1.0)
        density = quick_density(u.density / self.settings.noise_factor, u.rms, self.cutoff_hz)
        density = density * louder * _WATCHFUL
        # Friction of a joint that has not turned both ways yet may be taken for load.
        one_way = [not sums.both_ways for sums in known.sums]
        mass, std = last.mass, last.mass_std
        moments = np.hypot(max(mass, std) * last.centre_std, last.centre * std)
        return ReferenceEstimate(
            [known.explained(j) for j in range(self.joints)],
            np.where(one_way, np.inf, density),
            u.rms * np.sqrt(louder),
            u.level,
            self._slow,
            np.append(std, moments),
        )

    @property
    def undecided(self) -> bool:
        """Whether the last change may still turn out to be a contact."""
        return self._rival is not None

    # ---- what comes out ------------------------------------------------------------------------

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload with everything else marginalised.

        Args:
            without: Sources of error taken as known: "links", "friction", "gains".
        """
        return self.known.posterior(without)

    @property
    def familiar(self) -> float:
        """Share of the motion, at the joints that carry, within what the model was fitted to."""
        return self.known.familiar

    @property
    def gain_errors(self) -> Float[Array, " j"]:
        """What the joints say about each other's drive gains, relative."""
        return self.known.gains.copy()

    def budget(self) -> dict[str, float]:
        """Share of noise, links, friction and gains in the variance of the mass."""
        sources = ("links", "friction", "gains")

        def variance(without: tuple[str, ...]) -> float:
            return float(self.posterior(without).linear()[1][0, 0])

        whole = variance(())
        parts = {name: max(whole - variance((name,)), 0.0) for name in sources}
        parts = {"noise": variance(sources), **parts}
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items()}

    def estimate(self) -> PayloadEstimate:
        """What is carried, as far as the chunks worked off so far tell; `flush` for the rest."""
        known = self.known
        out = known.read(self.time)
        if out.ready and self._unmeasured is not None and self._rival is None:
            place, before = self._unmeasured
            self.events[place] = known_change(self.events[place], before, out.mass)
            self._unmeasured = None
        known.last = replace(
            out, warnings=known.warnings(out.ready, self.events), unexplained=known.unexplained
        )
        return known.last
