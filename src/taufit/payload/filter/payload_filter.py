"""Recommended payload estimator: one linear model of all unknowns, sample by sample.

Rows of joint i (`arm_rows`) are accumulated (`joint_sums`),

    G_i = integral of [columns, y]' [columns, y] dt / S_i,

S_i the noise density of that joint; `filter_state` holds the sums and evaluates them. Parameters
are constant, so this is a Kalman filter without process noise, in information form: exact,
mergeable, always positive definite. This module accumulates samples and handles payload changes.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.names import RenamedAttribute
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import require_temperature, stream_conditioner
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
    final_change_event,
    gap_event,
    payload_change_event,
    pick_or_contact_event,
)
from taufit.payload.filter.payload_rows import PayloadRowBuilder, PayloadRows
from taufit.payload.filter.posterior import Posterior
from taufit.payload.filter.time_grid import TimeGrid
from taufit.payload.filter.training_coverage import TrainingCoverage
from taufit.payload.settings import PayloadSettings
from taufit.regression.residual_structure import EXTRAS
from taufit.signals.stream import StreamConditioner

__all__ = ["PayloadEvent", "PayloadFilter", "Posterior"]

# Settling time of the low-pass after a gap, times its cut-off.
_SETTLING_CYCLES = 4.0
# Factor on the training noise density for change detection; tuned together with the threshold.
_DETECTION_NOISE_FACTOR = 1.15


Result = TypeVar("Result")


def finish_steps(steps: Generator[None, None, Result]) -> Result:
    """Run what is left of work in parts; return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return cast(Result, stop.value)


class PayloadFilter:
    """Estimates mass, centre of mass and inertia of the payload while the robot moves.

    Feed it with `update`; evaluate it with `estimate` (at about 10 Hz). Torque is joint torque [N
    m] from the same drives and with the same gains as the model's training data.

    Attributes:
        model: Model of the robot without payload (a permanent tool included).
        settings: Settings of the filter.
        filter_state: Filter state: information from the samples so far.
        gain_std: Relative standard deviation of each joint's drive gain.
        rate_hz: Rate of the time grid [Hz].
        samples, bins: Numbers of samples received and of time bins processed.
        conditioner: Stream conditioner of `update`, None before its first call.
        events: Picks, drops and gaps so far.
        ready_at: Time when the estimate became ready [s], or None.
        stopped_at: Time when the required accuracy was reached [s], or None.
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
        # Per joint, the index of the column of low-speed friction.
        self._edges = np.cumsum([len(rows) + 1 for rows in columns.rows])[:-1]
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
        self.filter_state = PayloadFilterState(columns, settings, gains, self.step)
        # Joints that move other tips carry loads that are not known here.
        self._counted_joints = ~model.robot.other_tip_joints
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
        self.conditioner: StreamConditioner | None = None
        self.events: list[PayloadEvent] = []
        self.time = np.nan
        self.samples = self.bins = 0
        self.template: Any = None
        self.residual_log: list[tuple[Array, Array, Array]] | None = None
        self.detector = ChangeDetector(max(settings.change_windows))
        self._hypothesis: ContactHypothesis | None = None
        # Reference of the change detection and the estimate that it was made of.
        self._reference_of: tuple[PayloadEstimate, ReferenceEstimate] | None = None
        # Limits of row weights, and what they were made of.
        self._limits_of: tuple[Any, Any, Array] = (None, None, np.empty(0))
        # Event of a payload change of unknown size, and the mass before it.
        self._open_change: tuple[int, float] | None = None
        self._restart_stream()

    @property
    def unknowns(self) -> NuisanceModel:
        """Nuisance parameters: columns, prior, noise."""
        return self.filter_state.unknowns

    @property
    def ready_at(self) -> float | None:
        return self.filter_state.ready_at

    @property
    def stopped_at(self) -> float | None:
        return self.filter_state.stopped_at

    # ---- samples -------------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """Process one raw sample: time [s], joint positions, velocities and torques [N m].

        Stream conditioning (`taufit.signals.stream`) drops invalid, late and spike samples,
        replaces noisy velocity and shifts motion by the model's delay.
        """
        if self.conditioner is None:
            self.conditioner = stream_conditioner(self.model)
        for sample in self.conditioner.push(time, position, velocity, torque, temperature):
            self.feed(*sample[:5])

    def feed(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """Process one conditioned sample; time must increase."""
        row, joints = self._row, self.joints
        row[:joints] = position
        row[joints : 2 * joints] = velocity
        row[2 * joints : 3 * joints] = torque
        if self._arm.uses_temperature:
            row[3 * joints :] = require_temperature(temperature)
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
        """Process samples that wait for the next sample or time bin."""
        if self.conditioner is not None:
            for sample in self.conditioner.flush():
                self.feed(*sample[:5])
        if self.grid.waiting:
            self._process_bins()

    def cancel_arm(self, share: float, density: Float[Array, " j"] | None, runs: int) -> None:
        """Reduce the errors of the robot model to a fraction of their variance, for a template.

        Args:
            share: Remaining fraction of their variance.
            density: Noise density of one run, from several templates; None with one.
            runs: Number of averaged templates; their noise adds to that of the run.
        """
        u = self.unknowns
        run_density = (
            u.density if density is None else np.where(np.isnan(density), u.density, density)
        )
        run_density = np.clip(run_density, 0.5 * u.density, 2.0 * u.density)
        run_density = run_density * (1.0 + 1.0 / runs)
        # RMS of white noise of that density after the low-pass.
        self.filter_state.reduce_model_errors(
            share, run_density, np.sqrt(run_density * NOISE_BANDWIDTH * self.cutoff_hz)
        )
        # The template covers its motion: no extrapolation.
        self._coverage = TrainingCoverage.without_limits(self.joints)

    def _restart_stream(self) -> None:
        # Across a gap the end of a change is unknown.
        self._hypothesis = None
        self.grid.clear()
        self._arm.clear()
        self.detector.clear()
        self._settling = 0
        if self.samples:
            self._settle()
            self.filter_state.marginalise_starts()

    def _settle(self) -> None:
        """Skip rows for the settling time of the low-pass."""
        self._settling = int(_SETTLING_CYCLES / self.cutoff_hz * self.rate_hz)

    def _process_bins(self) -> None:
        """Accumulate the rows of all complete time bins."""
        time, cells = self.grid.take()
        self.bins += len(time)
        rows = self._arm(time, cells, self.filter_state.phi) if len(time) else None
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
        self.filter_state.add(rows, weight)
        if self.settings.detect_changes:
            chunk = self._chunk(rows, weight)
            self.detector.add(chunk)
            if self.filter_state.was_ready and self._hypothesis is None:
                self._detect_change(chunk.time)

    def _row_weights(self, rows: PayloadRows) -> Float[Array, "n j"]:
        """Weight of each row: at standstill friction lies anywhere within its stiction band."""
        u, coverage = self.unknowns, self._coverage
        if self._limits_of[0] is not u or self._limits_of[1] is not coverage:
            band = (0.5 * u.level + 2.0 * u.rms) ** 2 * 2.0
            self._limits_of = u, coverage, coverage.weight_limits(band / u.density)
        return coverage.row_weights(rows, self._limits_of[2]) * self._counted_joints

    def _chunk(self, rows: PayloadRows, weight: Float[Array, "n j"]) -> RowBlock:
        """Rows for change detection: in motion only, at standstill friction is unknown."""
        counted = np.where(weight > 0.5, weight, 0.0)
        seconds = len(rows) * self.step
        return RowBlock(float(rows.time[-1]), seconds, (), list(weight.T), (rows, counted))

    # ---- payload changes -----------------------------------------------------------------------

    def _detect_change(self, time: float) -> None:
        reference = self._reference()
        evidence = self.detector.test(
            reference, self.settings.change_windows, self.settings.light_mass
        )
        if evidence.evidence > self.settings.change_threshold:
            self.events.append(pick_or_contact_event(time))
            # The newest rows belong to the new payload.
            self.filter_state.remove_rows(self.detector.chunks)
            self.detector.clear()
            event_index, light_mass = len(self.events) - 1, self.settings.light_mass
            self._hypothesis = ContactHypothesis(
                time, event_index, evidence, reference, light_mass, self.filter_state
            )
            self.filter_state = self.filter_state.next_payload()
            self._settle()

    def _decide(self, chunk: RowBlock) -> None:
        """Decide whether the last change was a pick or a contact, once that is clear."""
        hypothesis = self._hypothesis
        assert hypothesis is not None
        was_contact = hypothesis.test(chunk)
        if was_contact is None:
            return
        self._hypothesis = None
        if not was_contact and self._was_contact_at_start(hypothesis):
            self.events[hypothesis.event] = earlier_contact_event(hypothesis.time)
            return
        if not was_contact:
            self.events[hypothesis.event] = payload_change_event(hypothesis.time, hypothesis.mass)
            earlier = hypothesis.state_before.last_estimate
            if earlier is not None and earlier.ready:
                self._open_change = (hypothesis.event, earlier.mass)
            return
        self.events[hypothesis.event] = contact_event(hypothesis.time, chunk.time)
        self.filter_state = hypothesis.state_before
        self.detector.clear()
        self._settle()

    def _was_contact_at_start(self, hypothesis: ContactHypothesis) -> bool:
        """Whether the payload was first estimated during a contact that has now ended."""
        parameters, covariance = self.posterior().linear()
        std = float(np.sqrt(covariance[0, 0]))
        return hypothesis.state_before.mass_history.is_contact_end(
            hypothesis.time, float(parameters[0]), std
        )

    def _reference(self) -> ReferenceEstimate:
        """Newest estimate as reference of the change detection."""
        state = self.filter_state
        estimate = state.last_estimate
        assert estimate is not None
        if self._reference_of is None or self._reference_of[0] is not estimate:
            self._reference_of = estimate, self._make_reference(estimate)
        reference = self._reference_of[1]
        # Friction of a joint without motion in both directions is not separable from load.
        density = np.where(state.has_both_directions, reference.density, np.inf)
        return reference._replace(density=density)

    def _make_reference(self, estimate: PayloadEstimate) -> ReferenceEstimate:
        u, state = self.unknowns, self.filter_state
        noise_scale = np.maximum(state.scale, 1.0)
        density = short_term_density(u.density / self.settings.noise_factor, u.rms, self.cutoff_hz)
        mass, std = estimate.mass, estimate.mass_std
        moments = np.hypot(max(mass, std) * estimate.centre_std, estimate.centre * std)
        return ReferenceEstimate(
            np.split(state.residual_coefficients(), self._edges),
            density * noise_scale * _DETECTION_NOISE_FACTOR,
            u.rms * np.sqrt(noise_scale),
            u.level,
            self._slow,
            np.append(std, moments),
        ).with_kernel_arrays()

    # Former names of 0.1, accepted with a warning until 0.3.
    undecided = RenamedAttribute("is_undecided")
    familiar = RenamedAttribute("coverage")

    @property
    def is_undecided(self) -> bool:
        """Whether the last change may still turn out to be a contact."""
        return self._hypothesis is not None

    # ---- results -------------------------------------------------------------------------------

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload, nuisance parameters marginalised.

        Args:
            without: Error sources with fixed parameters: "links", "friction", "gains".
        """
        return self.filter_state.posterior(without)

    @property
    def coverage(self) -> float:
        """Fraction of the motion of the loaded joints within the training range."""
        return self.filter_state.coverage

    @property
    def gain_errors(self) -> Float[Array, " j"]:
        """Estimated relative errors of the drive gains."""
        return self.filter_state.gains.copy()

    def budget(self) -> dict[str, float]:
        """Fractions of noise, links, friction and gains in the variance of the mass."""
        sources = ("links", "friction", "gains")

        def variance(without: tuple[str, ...]) -> float:
            return float(self.posterior(without).linear()[1][0, 0])

        full_variance = variance(())
        parts = {name: max(full_variance - variance((name,)), 0.0) for name in sources}
        parts = {"noise": variance(sources), **parts}
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items()}

    def estimate(self) -> PayloadEstimate:
        """Payload estimate from the time bins processed so far; see `flush`."""
        return finish_steps(self.estimate_steps())

    def estimate_steps(self) -> Generator[None, None, PayloadEstimate]:
        """`estimate` in parts, to be run over the next samples before further time bins."""
        return self._estimate_steps(self.filter_state, self.time)

    def _estimate_steps(
        self, state: PayloadFilterState, time: float
    ) -> Generator[None, None, PayloadEstimate]:
        estimate = yield from state.evaluation_steps(time)
        yield
        if estimate.ready and self._open_change is not None and self._hypothesis is None:
            event_index, earlier_mass = self._open_change
            self.events[event_index] = final_change_event(
                self.events[event_index], earlier_mass, estimate.mass
            )
            self._open_change = None
        state.last_estimate = replace(
            estimate,
            warnings=state.warnings(estimate.ready, self.events),
            unexplained=state.contradiction,
        )
        if self.settings.detect_changes and state.was_ready and self._hypothesis is None:
            # Before the next time bin, which has enough to do.
            self._reference()
        return state.last_estimate
