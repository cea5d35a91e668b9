"""What the rows so far say of payload, arm and noise, and how it is read out.

At read-out the joints' sums are weighted by how large the residuals turned out, a column per joint
is added for the error of its drive gain (the payload's own torque, scaled: `gain_uncertainty`),
everything but the payload is marginalised (Schur complement: `posterior`), and the most probable
body that can exist is returned (`body`, `read_out`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK, parse_name
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.body import Body, most_probable_body
from taufit.payload.filter.change_detector import RowBlock
from taufit.payload.filter.gain_uncertainty import GainUncertainty
from taufit.payload.filter.joint_sums import JointSums, loaded_joints
from taufit.payload.filter.nuisance_model import NuisanceModel
from taufit.payload.filter.payload_event import PayloadEvent
from taufit.payload.filter.payload_rows import PayloadRows
from taufit.payload.filter.posterior import (
    FilterInformation,
    NuisancePosterior,
    Posterior,
    marginalise_nuisances,
    marginalise_payload,
)
from taufit.payload.filter.posterior_summary import (
    SUSPICIOUS_VARIANCE_RATIO,
    body_estimate,
    estimate_warnings,
    lighter_robot_warning,
    no_load_estimate,
    unexplained_message,
)
from taufit.payload.filter.training_coverage import coverage_inflation, covered_share
from taufit.payload.settings import PayloadSettings

# Contacts are over after this long [s].
_MAX_CONTACT_S = 1.0
# Masses are the same within this many standard deviations.
_MASS_TOLERANCE = 2.0


class MassHistory:
    """The masses of the last second, and the one before it."""

    __slots__ = ("_past",)

    def __init__(self) -> None:
        self._past: deque[tuple[float, float, float]] = deque()

    def add(self, time: float, mass: float, std: float) -> None:
        """A mass that is not worth anything yet, or is so since now.

        Args:
            time: [s].
            mass, std: As read [kg].
        """
        self._past.append((time, mass, std))
        while len(self._past) > 1 and self._past[1][0] <= time - _MAX_CONTACT_S:
            self._past.popleft()

    def ended_contact(self, time: float, mass: float, std: float) -> bool:
        """Whether a change was the end of a contact.

        Args:
            time: When it was noticed [s].
            mass, std: What is carried since then [kg].
        """
        if not self._past:
            return False
        # The last reading is that with which the payload became known.
        first_time, first_mass, first_std = self._past[0]
        ready_time = self._past[-1][0]
        if time - ready_time > _MAX_CONTACT_S or first_time > ready_time - _MAX_CONTACT_S:
            return False
        return abs(mass - first_mass) < _MASS_TOLERANCE * float(np.hypot(std, first_std))


# Residuals of a run may be this much smaller than in training, in variance, and no less.
_MIN_VARIANCE_RATIO = 0.5
# Weight of the training's noise level against the run's, in independent values.
_NOISE_PRIOR_WEIGHT = 20.0
# A body lighter than this many standard deviations may be none.
_EMPTY_LIMIT = 4.0
# An arm lighter than its model by this share of a light payload is another arm.
_LIGHTER_FRACTION = 0.2


class PayloadFilterState:
    """Of one payload; another one begins with what is known of all but the payload
    (`next_payload`).

    Args:
        unknowns: Columns, their prior, noise.
        settings: Of the filter.
        gains: How uncertain the drive gains are.
        step: Time between two rows [s].

    Attributes:
        sums: Of squares, one per joint.
        prior, prior_target: Of all unknowns, in information form.
        phi: Payload parameters that columns may depend on.
        gains, gain_inflation: Errors of the drive gains, and how much wider they are taken.
        scale: Variance of each joint's residuals over that in training.
        state: The unknowns at the last read-out.
        is_correlated: Whether the prior is one of all unknowns together.
        was_ready: Whether the last estimate was worth reading.
        last_estimate: The last estimate, or None.
        mass_history: Estimates before one was worth reading.
        ready_at, stopped_at: When it was, and when as accurate as wanted [s], or None.
    """

    def __init__(
        self,
        unknowns: NuisanceModel,
        settings: PayloadSettings,
        gains: GainUncertainty,
        step: float,
    ) -> None:
        self.unknowns, self.settings, self.step = unknowns, settings, step
        self._gain_uncertainty = gains
        self.joints = len(unknowns.rows)
        self.prior, self.prior_target = unknowns.prior.copy(), unknowns.target.copy()
        self.scale = np.ones(self.joints)
        self.state = np.zeros(len(unknowns))
        self.gain_inflation = 1.0
        self.is_correlated = False
        self.last_estimate: PayloadEstimate | None = None
        self._reset_payload()

    def _reset_payload(self) -> None:
        """Nothing is known of the payload."""
        sizes = [len(rows) + 1 for rows in self.unknowns.rows]
        self.sums = [JointSums(np.zeros((size, size))) for size in sizes]
        self.phi, self.gains = np.zeros(PER_LINK), np.zeros(self.joints)
        self.body: Body | None = None
        self.was_ready = False
        self.mass_history = MassHistory()
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self._negative_mass: float | None = None

    def next_payload(self) -> PayloadFilterState:
        """Of the next payload: all but the payload is known as well as now. This one stays."""
        successor = copy(self)
        successor.prior, successor.prior_target = marginalise_payload(self._filter_information())
        successor._reset_payload()
        # Friction stays known: what the joints have shown of it counts on.
        for sums, previous in zip(successor.sums, self.sums, strict=True):
            sums.forward, sums.backward = previous.forward, previous.backward
        successor.is_correlated = True
        successor.scale = np.maximum(self.scale, 1.0)
        return successor

    # ---- what comes in -------------------------------------------------------------------------

    def add(self, rows: PayloadRows, weight: Float[Array, "n j"]) -> None:
        """Rows with a weight each; what was before fades."""
        if np.isfinite(self.settings.memory_s):
            factor = float(np.exp(-len(rows) * self.step / self.settings.memory_s))
            for sums in self.sums:
                sums.fade(factor)
        for j, sums in enumerate(self.sums):
            joint_rows, w, standing = rows.joint_rows(j), weight[:, j], rows.standing[:, j]
            density = self.unknowns.density[j]
            sums.add(joint_rows, w, standing, rows.velocity[:, j], self.step, density)

    def remove_rows(self, chunks: Sequence[RowBlock]) -> None:
        """The last chunks that were added are not of what was there before them."""
        for chunk in chunks:
            # What has begun to be forgotten is taken back as far as it is still there.
            age = chunks[-1].time - chunk.time
            factor = float(np.exp(-age / self.settings.memory_s))
            for j, ((rows, _), w) in enumerate(zip(chunk.rows, chunk.weights, strict=True)):
                step = factor * chunk.seconds / len(w)
                self.sums[j].remove(rows, w, step, self.unknowns.density[j])

    def marginalise_starts(self) -> None:
        """Where friction stood before a gap no longer matters: integrated out joint by joint."""
        names = self.unknowns.names
        for sums, rows in zip(self.sums, self.unknowns.rows, strict=True):
            starts = np.array(
                [k for k, i in enumerate(rows) if parse_name(names[i]).what.startswith("start_")]
            )
            sums.marginalise(starts, np.diag(self.prior)[rows[starts]])

    def reduce_model_errors(self, share: float, density: Float[Array, " j"], rms: Array) -> None:
        """The arm's own errors are a share of their variance, and noise is of this density."""
        u = self.unknowns
        names = [parse_name(name).what for name in u.names]
        cancels = np.array(
            [
                part == "links" or name.startswith(("cos_", "sin_"))
                for part, name in zip(u.parts, names, strict=True)
            ]
        )
        factor = np.where(cancels, 1.0 / np.sqrt(share), 1.0)
        factor[:PER_LINK] = 1.0
        self.prior = self.prior * np.outer(factor, factor)
        self.prior_target = np.zeros(len(u))
        self.unknowns = replace(u, density=density, rms=rms)

    # ---- what comes out ------------------------------------------------------------------------

    @property
    def has_rows(self) -> bool:
        """Whether any row has come."""
        return sum(sums.seconds for sums in self.sums) > 0.0

    @property
    def covered_share(self) -> float:
        """Share of the motion, at the joints that carry, within what the model was fitted to."""
        return covered_share(self.sums, self.step)

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload with all but the payload and `without` marginalised."""
        return self._posterior(self._gain_covariance(), without)[0]

    def evaluate(self, time: float) -> PayloadEstimate:
        """What is carried, without `estimate_warnings`."""
        settings = self.settings
        gains = self._gain_covariance()
        posterior, nuisances = self._posterior(gains)
        has_rows = self.has_rows
        linear, covariance = posterior.linear()
        self._update_noise_scale(linear, nuisances, gains)
        mass, std = float(linear[0]), float(np.sqrt(covariance[0, 0]))
        if not has_rows or mass < _EMPTY_LIMIT * std:
            estimate = no_load_estimate(time, mass, std, settings.com_std)
        else:
            start = None if self.body is None else self.body.x
            self.body = most_probable_body(posterior.information, posterior.target, settings, start)
            estimate = body_estimate(time, self.body)
        is_lighter = mass < -max(_EMPTY_LIMIT * std, _LIGHTER_FRACTION * settings.light_mass)
        self._negative_mass = mass if is_lighter else None
        ready = self._is_ready(estimate.mass, estimate.mass_std) and not is_lighter
        self.was_ready = ready
        if ready:
            self.phi = estimate.parameters.copy()
        elif has_rows:
            self.phi = np.where(std < 0.5 * mass, 1.0, 0.0) * estimate.parameters
        accurate = self.stopped_at is not None or (ready and self._is_accurate(estimate))
        if has_rows and self.ready_at is None:
            self.mass_history.add(time, mass, std)
        if ready and self.ready_at is None:
            self.ready_at = time
        if accurate and self.stopped_at is None:
            self.stopped_at = time
        return replace(estimate, ready=ready, accurate=accurate)

    def warnings(self, ready: bool, events: list[PayloadEvent]) -> tuple[str, ...]:
        """What a user of the last reading has to know."""
        messages = estimate_warnings(
            events,
            covariance=self.unknowns.covariance,
            ready=ready or self._negative_mass is not None,
            covered_share=self.covered_share,
            scale=self.scale,
        )
        if self._negative_mass is not None and self.has_rows:
            messages = [lighter_robot_warning(self._negative_mass), *messages]
        return tuple(messages)

    @property
    def unexplained(self) -> str:
        """Why the model is not that of this arm, where it is not; else ""."""
        if self._negative_mass is not None and self.has_rows:
            return lighter_robot_warning(self._negative_mass)
        return unexplained_message(self.scale)

    def residual_coefficients(self, j: int) -> Float[Array, " c"]:
        """x with [columns, y] x what is left of joint j's torque, its sign turned."""
        x = np.append(self.state[self.unknowns.rows[j]], -1.0)
        x[:PER_LINK] *= 1.0 + self.gains[j]
        return x

    def _posterior(
        self, gains: Float[Array, "j j"], without: tuple[str, ...] = ()
    ) -> tuple[Posterior, NuisancePosterior]:
        information, target, nuisances = marginalise_nuisances(
            self._filter_information(),
            self.phi,
            np.linalg.inv(self.gain_inflation * gains),
            self.settings.gain_common,
            without,
        )
        inflation = coverage_inflation(self.covered_share)
        posterior = Posterior(information / inflation, target / inflation, self.scale, self.gains)
        return posterior, nuisances

    def _filter_information(self) -> FilterInformation:
        return FilterInformation(
            self.unknowns,
            self.prior,
            self.prior_target,
            [sums.gram for sums in self.sums],
            self.scale,
            self.is_correlated,
        )

    def _gain_covariance(self) -> Float[Array, "j j"]:
        """Of the errors of the drive gains, at the levers of the run: rms arms of the weight."""
        pairs = zip(self.sums, self.unknowns.density, strict=True)
        levers = np.array([sums.lever(self.phi, density) for sums, density in pairs])
        return self._gain_uncertainty.covariance(levers)

    def _update_noise_scale(
        self, phi: Float[Array, " 10"], nuisances: NuisancePosterior, gains: Float[Array, "j j"]
    ) -> None:
        """Everything else with payload phi: gains, and how large each joint's residuals are."""
        u = self.unknowns
        self.state, self.gains = nuisances.given_payload(phi, u.rows, len(u))
        # Joints that contradict each other by more than their gains may differ widen all gains.
        self.gain_inflation = self._gain_uncertainty.inflation(self.gains, gains)
        scale = np.empty(self.joints)
        for j, sums in enumerate(self.sums):
            x = self.residual_coefficients(j)
            residual_power = max(float(x @ sums.gram @ x), 0.0)
            expected = sums.seconds * u.rms[j] ** 2 / u.density[j]
            scale[j] = max(
                (_NOISE_PRIOR_WEIGHT + residual_power) / (_NOISE_PRIOR_WEIGHT + expected),
                _MIN_VARIANCE_RATIO,
            )
        self.scale = scale

    def _is_ready(self, mass: float, std: float) -> bool:
        """The joints that carry the payload were seen in both directions, and it shows."""
        if not any(sums.load > 0.0 for sums in self.sums):
            return False
        loaded = np.flatnonzero(loaded_joints(self.sums))
        if not all(
            self.sums[j].moved_both_ways and self.scale[j] <= SUSPICIOUS_VARIANCE_RATIO
            for j in loaded
        ):
            return False
        return std <= self.settings.ready_mass * max(mass, self.settings.light_mass)

    def _is_accurate(self, estimate: PayloadEstimate) -> bool:
        """Mass and centre as well known as wanted, what no motion shrinks (the gains) apart."""
        settings = self.settings
        if not (estimate.empty or np.all(estimate.centre_std <= settings.com_accuracy)):
            return False
        goal = settings.mass_accuracy * max(estimate.mass, settings.light_mass)
        if estimate.mass_std <= goal:
            return True
        covariance = self.posterior(without=("gains",)).linear()[1]
        return bool(np.sqrt(covariance[0, 0]) <= goal)
