"""The recommended estimator: everything unknown in one linear model, sample by sample.

Rows of joint i (`payload_rows`) add to a sum of squares of their own (`joint_sums`),

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
from taufit.model.model_stream import intake_of, required_temperature
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.causal_lowpass import NOISE_BANDWIDTH
from taufit.payload.filter.change_detector import (
    ChangeDetector,
    ReferenceEstimate,
    RowBlock,
    short_term_density,
)
from taufit.payload.filter.contact_hypothesis import ContactHypothesis
from taufit.payload.filter.filter_state import PayloadFilterState
from taufit.payload.filter.gain_uncertainty import GainUncertainty
from taufit.payload.filter.nuisance_model import NuisanceModel, nuisance_model
from taufit.payload.filter.payload_event import (
    PayloadEvent,
    contact_event,
    earlier_contact_event,
    gap_event,
    measured_change,
    payload_change_event,
    pick_or_contact_event,
)
from taufit.payload.filter.payload_rows import PayloadRowBuilder, PayloadRows
from taufit.payload.filter.posterior import Posterior
from taufit.payload.filter.time_grid import TimeGrid
from taufit.payload.filter.training_coverage import TrainingCoverage
from taufit.payload.settings import PayloadSettings
from taufit.regression.residual_structure import EXTRAS
from taufit.signals.intake import StreamConditioner

__all__ = ["PayloadEvent", "PayloadFilter", "Posterior"]

# Seconds after a gap in which the low-pass still holds what was before, times its cut-off.
_SETTLING_CYCLES = 4.0
# Factor on the noise density of the training where changes are looked for; the alarm goes with it.
_DETECTION_NOISE_FACTOR = 1.15


class PayloadFilter:
    """Mass, centre of mass and inertia of what an arm carries, while it moves.

    Feed it with `update`, ask it with `estimate` (at about 10 Hz). The torque is that of the joints
    in newton metres, from the same drives and with the same gains as the model's training data.

    Attributes:
        model: Of the empty arm (or with the tool that stays on it).
        settings: How it works.
        state_now: What the samples so far say.
        gain_std: Relative standard deviation of each joint's drive gain.
        rate_hz: Of its grid.
        samples, bins: Samples that came, and cells of the grid worked off.
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
        self.rate_hz = rate / np.ceil(rate / settings.max_rate_hz - 1e-9)
        self.step = 1.0 / self.rate_hz
        self.cutoff_hz = min(conditioning.cutoff_hz, 0.2 * self.rate_hz)
        gains = GainUncertainty.from_model(model, settings, gain_std)
        self.gain_std = gains.std
        self.state_now = PayloadFilterState(columns, settings, gains, self.step)
        self._coverage = TrainingCoverage.from_model(model, settings.standstill_speed)
        self._arm = PayloadRowBuilder(
            model,
            columns,
            rate_hz=self.rate_hz,
            cutoff_hz=self.cutoff_hz,
            standstill=settings.standstill_speed,
        )
        self.grid = TimeGrid(self.step, self._arm.channels, max(0.1, 3.5 / self.rate_hz))
        self._row = np.empty(self._arm.channels)
        self.intake: StreamConditioner | None = None
        self.events: list[PayloadEvent] = []
        self.time = np.nan
        self.samples = self.bins = 0
        self.template: Any = None
        self.residual_log: list[tuple[Array, Array, Array]] | None = None
        self.detector = ChangeDetector(max(settings.change_windows))
        self._hypothesis: ContactHypothesis | None = None
        # The change of payload whose size is not known yet, and the mass before it.
        self._open_change: tuple[int, float] | None = None
        self._restart_stream()

    @property
    def unknowns(self) -> NuisanceModel:
        """Columns, their prior, noise."""
        return self.state_now.unknowns

    @property
    def ready_at(self) -> float | None:
        return self.state_now.ready_at

    @property
    def stopped_at(self) -> float | None:
        return self.state_now.stopped_at

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
            self.intake = intake_of(self.model)
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
        if self._arm.uses_temperature:
            row[3 * joints :] = required_temperature(temperature)
        last_time = self.grid.gap_before(time)
        if last_time is not None:
            self._process_bins()
            self.events.append(gap_event(last_time, time))
            self._restart_stream()
        self.samples += 1
        self.time = time
        self.grid.push(time, row)
        if self.grid.complete_bins >= self.settings.bins_per_update:
            self._process_bins()

    def flush(self) -> None:
        """Work off what waits for the next sample or chunk."""
        if self.intake is not None:
            for sample in self.intake.flush():
                self.feed(*sample[:5])
        if self.grid.waiting:
            self._process_bins()

    def cancel_arm(self, share: float, density: Float[Array, " j"] | None, runs: int) -> None:
        """The arm's own errors cancel down to a share of their variance: a template is used.

        Args:
            share: What is left of them.
            density: Noise density of one run as the templates show it, or None with one only.
            runs: How many templates were averaged; their noise adds to that of the run.
        """
        u = self.unknowns
        run_density = (
            u.density if density is None else np.where(np.isnan(density), u.density, density)
        )
        run_density = np.clip(run_density, 0.5 * u.density, 2.0 * u.density)
        run_density = run_density * (1.0 + 1.0 / runs)
        # White noise of that density behind the low-pass.
        self.state_now.reduce_model_errors(
            share, run_density, np.sqrt(run_density * NOISE_BANDWIDTH * self.cutoff_hz)
        )
        # Where the template has been, nothing is new.
        self._coverage = TrainingCoverage.unlimited(self.joints)

    def _restart_stream(self) -> None:
        # Whether a change has ended is not known across a gap.
        self._hypothesis = None
        self.grid.clear()
        self._arm.clear()
        self.detector.clear()
        self._settling = 0
        if self.samples:
            self._settle()
            self.state_now.marginalise_starts()

    def _settle(self) -> None:
        """Rows to come mix both so long as the low-pass still holds what was before."""
        self._settling = int(_SETTLING_CYCLES / self.cutoff_hz * self.rate_hz)

    def _process_bins(self) -> None:
        """Rows of the cells that are complete, into the sums."""
        time, cells = self.grid.take()
        self.bins += len(time)
        rows = self._arm(time, cells, self.state_now.phi) if len(time) else None
        if rows is None:
            return
        if self.residual_log is not None:
            self.residual_log.append((rows.position, rows.velocity, rows.y))
        if self.template is not None:
            rows = rows.subtract_template(*self.template.residual(rows.position, rows.velocity))
        if self._hypothesis is not None:
            self._decide(self._chunk(rows, self._row_weights(rows)))
        skip = min(self._settling, len(rows))
        self._settling -= skip
        if skip < len(rows):
            self._add(rows.skip_first(skip) if skip else rows)

    def _add(self, rows: PayloadRows) -> None:
        weight = self._row_weights(rows)
        self.state_now.add(rows, weight)
        if self.settings.detect_changes:
            chunk = self._chunk(rows, weight)
            self.detector.add(chunk)
            if self.state_now.was_ready and self._hypothesis is None:
                self._detect_change(chunk.time)

    def _row_weights(self, rows: PayloadRows) -> Float[Array, "n j"]:
        """Of each row: at standstill friction is anywhere in its band, for as long as it lasts."""
        u = self.unknowns
        band = (0.5 * u.level + 2.0 * u.rms) ** 2 * 2.0
        weight = 1.0 / (1.0 + band * rows.standing / u.density)
        return self._coverage.reduce_weights(weight, rows.position, rows.velocity)

    def _chunk(self, rows: PayloadRows, weight: Float[Array, "n j"]) -> RowBlock:
        """Rows to look for changes in: in motion only, at standstill friction may do anything."""
        joint_rows = [(rows.joint_rows(j), weight[:, j]) for j in range(self.joints)]
        return RowBlock(
            float(rows.time[-1]),
            len(rows) * self.step,
            tuple(
                (rows_j, np.where(weight_j > 0.5, weight_j, 0.0)) for rows_j, weight_j in joint_rows
            ),
            tuple(weight_j for _, weight_j in joint_rows),
        )

    # ---- picks and drops -----------------------------------------------------------------------

    def _detect_change(self, time: float) -> None:
        reference = self._reference()
        evidence = self.detector.test(
            reference, self.settings.change_windows, self.settings.light_mass
        )
        if evidence.evidence > self.settings.change_threshold:
            self.events.append(pick_or_contact_event(time))
            # The last moments are not of what was there before them.
            self.state_now.remove_rows(self.detector.chunks)
            self.detector.clear()
            event_index, light_mass = len(self.events) - 1, self.settings.light_mass
            self._hypothesis = ContactHypothesis(
                time, event_index, evidence, reference, light_mass, self.state_now
            )
            self.state_now = self.state_now.next_payload()
            self._settle()

    def _decide(self, chunk: RowBlock) -> None:
        """Whether the last change was a pick or a contact, once that is clear."""
        hypothesis = self._hypothesis
        assert hypothesis is not None
        was_contact = hypothesis.test(chunk)
        if was_contact is None:
            return
        self._hypothesis = None
        if not was_contact and self._started_in_contact(hypothesis):
            self.events[hypothesis.event] = earlier_contact_event(hypothesis.time)
            return
        if not was_contact:
            self.events[hypothesis.event] = payload_change_event(hypothesis.time, hypothesis.mass)
            earlier = hypothesis.state_before.last_estimate
            if earlier is not None and earlier.ready:
                self._open_change = (hypothesis.event, earlier.mass)
            return
        self.events[hypothesis.event] = contact_event(hypothesis.time, chunk.time)
        self.state_now = hypothesis.state_before
        self.detector.clear()
        self._settle()

    def _started_in_contact(self, hypothesis: ContactHypothesis) -> bool:
        """Whether what has changed was no payload but a push while the payload was first read."""
        parameters, covariance = self.posterior().linear()
        std = float(np.sqrt(covariance[0, 0]))
        return hypothesis.state_before.mass_history.ended_contact(
            hypothesis.time, float(parameters[0]), std
        )

    def _reference(self) -> ReferenceEstimate:
        """What the last read-out says, column by column."""
        u, state = self.unknowns, self.state_now
        estimate = state.last_estimate
        assert estimate is not None
        noise_scale = np.maximum(state.scale, 1.0)
        density = short_term_density(u.density / self.settings.noise_factor, u.rms, self.cutoff_hz)
        density = density * noise_scale * _DETECTION_NOISE_FACTOR
        # Friction of a joint that has not turned both ways yet may be taken for load.
        unidirectional = [not sums.moved_both_ways for sums in state.sums]
        mass, std = estimate.mass, estimate.mass_std
        moments = np.hypot(max(mass, std) * estimate.centre_std, estimate.centre * std)
        return ReferenceEstimate(
            [state.residual_coefficients(j) for j in range(self.joints)],
            np.where(unidirectional, np.inf, density),
            u.rms * np.sqrt(noise_scale),
            u.level,
            self._slow,
            np.append(std, moments),
        )

    @property
    def is_undecided(self) -> bool:
        """Whether the last change may still turn out to be a contact."""
        return self._hypothesis is not None

    # ---- what comes out ------------------------------------------------------------------------

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload with everything else marginalised.

        Args:
            without: Sources of error taken as known: "links", "friction", "gains".
        """
        return self.state_now.posterior(without)

    @property
    def covered_share(self) -> float:
        """Share of the motion, at the joints that carry, within what the model was fitted to."""
        return self.state_now.covered_share

    @property
    def gain_errors(self) -> Float[Array, " j"]:
        """What the joints say about each other's drive gains, relative."""
        return self.state_now.gains.copy()

    def budget(self) -> dict[str, float]:
        """Share of noise, links, friction and gains in the variance of the mass."""
        sources = ("links", "friction", "gains")

        def variance(without: tuple[str, ...]) -> float:
            return float(self.posterior(without).linear()[1][0, 0])

        full_variance = variance(())
        parts = {name: max(full_variance - variance((name,)), 0.0) for name in sources}
        parts = {"noise": variance(sources), **parts}
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items()}

    def estimate(self) -> PayloadEstimate:
        """What is carried, as far as the chunks worked off so far tell; `flush` for the rest."""
        state = self.state_now
        estimate = state.evaluate(self.time)
        if estimate.ready and self._open_change is not None and self._hypothesis is None:
            event_index, earlier_mass = self._open_change
            self.events[event_index] = measured_change(
                self.events[event_index], earlier_mass, estimate.mass
            )
            self._open_change = None
        state.last_estimate = replace(
            estimate,
            warnings=state.warnings(estimate.ready, self.events),
            unexplained=state.unexplained,
        )
        return state.last_estimate
