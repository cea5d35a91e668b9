"""State of the payload filter: information on payload, robot and noise, and its evaluation.

An evaluation weights the joints' sums by their residuals, adds a column per joint for the error of
its drive gain (the payload's torque, scaled: `gain_uncertainty`), marginalises the nuisance
parameters (Schur complement: `posterior`), and returns the maximum a posteriori body that is
physically consistent (`body`, `posterior_summary`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.parameters import PER_LINK, parse_name
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.body import Body, mass_at_place, most_probable_body
from taufit.payload.filter.change_detector import RowBlock
from taufit.payload.filter.gain_uncertainty import GainUncertainty
from taufit.payload.filter.joint_sums import (
    MIN_DIRECTION_S,
    JointSums,
    add_rows,
    gram_powers,
    joints_under_load,
    lever_arms,
)
from taufit.payload.filter.nuisance_model import NuisanceModel
from taufit.payload.filter.payload_event import PayloadEvent
from taufit.payload.filter.payload_rows import PayloadRows
from taufit.payload.filter.posterior import (
    WEAK_PRIOR,
    FilterInformation,
    NuisancePosterior,
    Posterior,
    marginalise_nuisances,
    marginalise_payload,
)
from taufit.payload.filter.posterior_summary import (
    SUSPICIOUS_VARIANCE_RATIO,
    body_estimate,
    contradiction_message,
    estimate_warnings,
    lighter_robot_warning,
    no_load_estimate,
)
from taufit.payload.filter.training_coverage import coverage_inflation, motion_coverage
from taufit.payload.settings import PayloadSettings

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Longest duration of a contact [s].
_MAX_CONTACT_S = 1.0
# Largest difference of equal masses, in standard deviations.
_MASS_TOLERANCE = 2.0


class MassHistory:
    """Mass estimates of the last second, and the one before it."""

    __slots__ = ("_past",)

    def __init__(self) -> None:
        self._past: deque[tuple[float, float, float]] = deque()

    def add(self, time: float, mass: float, std: float) -> None:
        """Add a mass estimate; the last one added is the first that is ready.

        Args:
            time: Time of the estimate [s].
            mass, std: Mass and its standard deviation [kg].
        """
        self._past.append((time, mass, std))
        while len(self._past) > 1 and self._past[1][0] <= time - _MAX_CONTACT_S:
            self._past.popleft()

    def is_contact_end(self, time: float, mass: float, std: float) -> bool:
        """Whether a change of mass was the end of a contact.

        Args:
            time: Detection time of the change [s].
            mass, std: Mass since then and its standard deviation [kg].
        """
        if not self._past:
            return False
        # The last entry is the estimate that made the payload ready.
        first_time, first_mass, first_std = self._past[0]
        ready_time = self._past[-1][0]
        if time - ready_time > _MAX_CONTACT_S or first_time > ready_time - _MAX_CONTACT_S:
            return False
        return abs(mass - first_mass) < _MASS_TOLERANCE * float(np.hypot(std, first_std))


# Lower limit of the residual variance of a run, relative to the training data.
_MIN_VARIANCE_RATIO = 0.5
# Weight of the training noise level against that of the run, in independent samples.
_NOISE_PRIOR_WEIGHT = 20.0
# Relative standard deviation of drive gains that are known.
_NO_GAIN_STD = 1e-9
# A mass below this many standard deviations may be zero.
_EMPTY_LIMIT = 4.0
# A negative mass beyond this fraction of `light_mass` means a robot lighter than its model.
_LIGHTER_FRACTION = 0.2


class PayloadFilterState:
    """Information on one payload; `next_payload` starts the next with the nuisance posterior.

    Args:
        unknowns: Columns, their prior, noise.
        settings: Settings of the filter.
        gains: Uncertainty of the drive gains.
        step: Time between two rows [s].

    Attributes:
        sums: Accumulated rows, one per joint.
        totals: Durations and loads of every joint, as in `JointSums`.
        prior, prior_target: Prior of all parameters, in information form.
        phi: Payload parameters that columns may depend on.
        gains, gain_inflation: Errors of the drive gains, and factor on their covariance.
        scale: Residual variance of each joint relative to the training data.
        state: Parameters at the last evaluation.
        is_correlated: Whether the prior correlates parameters of different joints.
        was_ready: Whether the last estimate was ready.
        last_estimate: Last estimate, or None.
        mass_history: Mass estimates before the first that was ready.
        ready_at, stopped_at: Times of readiness and of required accuracy [s], or None.
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
        # Columns of one joint after the other with y last, and the joint of each.
        self._edges = np.cumsum([0, *(len(rows) + 1 for rows in unknowns.rows)])
        self._columns = np.concatenate([np.append(rows, 0) for rows in unknowns.rows])
        self._payload_columns = (self._edges[:-1, None] + np.arange(PER_LINK)).ravel()
        self.prior, self.prior_target = unknowns.prior.copy(), unknowns.target.copy()
        self.scale = np.ones(self.joints)
        self.state = np.zeros(len(unknowns))
        self.gain_inflation = 1.0
        self.is_correlated = False
        self.last_estimate: PayloadEstimate | None = None
        self._reset_payload()

    def _reset_payload(self) -> None:
        """Reset the information on the payload."""
        sizes = [len(rows) + 1 for rows in self.unknowns.rows]
        # One array, of which every joint has a part.
        ends = np.cumsum([size**2 for size in sizes])
        self._grams = np.zeros(ends[-1])
        parts = np.split(self._grams, ends[:-1])
        self.totals = np.zeros((self.joints, 5))
        self.sums = [
            JointSums(part.reshape(size, size), totals)
            for part, size, totals in zip(parts, sizes, self.totals, strict=True)
        ]
        self.phi, self.gains = np.zeros(PER_LINK), np.zeros(self.joints)
        self.body: Body | None = None
        self.was_ready = False
        self.mass_history = MassHistory()
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self._negative_mass: float | None = None

    def next_payload(self) -> PayloadFilterState:
        """State for the next payload, with the present nuisance posterior as prior."""
        successor = copy(self)
        successor.prior, successor.prior_target = marginalise_payload(self._filter_information())
        successor._reset_payload()
        # Knowledge of friction remains: so do the durations in both directions.
        for sums, previous in zip(successor.sums, self.sums, strict=True):
            sums.take_directions(previous)
        successor.is_correlated = True
        successor.scale = np.maximum(self.scale, 1.0)
        return successor

    # ---- rows ----------------------------------------------------------------------------------

    def add(self, rows: PayloadRows, weight: Float[Array, "n j"]) -> None:
        """Add weighted rows; older ones fade."""
        if np.isfinite(self.settings.memory_s):
            factor = float(np.exp(-len(rows) * self.step / self.settings.memory_s))
            for sums in self.sums:
                sums.fade(factor)
        add_rows(rows, weight, self.unknowns.density, self.step, self._grams, self.totals)

    def remove_rows(self, chunks: Sequence[RowBlock]) -> None:
        """Remove the last row blocks added: they belong to the next payload."""
        for chunk in chunks:
            # Faded rows are removed with their faded weight.
            age = chunks[-1].time - chunk.time
            factor = float(np.exp(-age / self.settings.memory_s))
            for j, ((rows, _), w) in enumerate(zip(chunk.joint_rows, chunk.weights, strict=True)):
                step = factor * chunk.seconds / len(w)
                self.sums[j].remove(rows, w, step, self.unknowns.density[j])

    def marginalise_starts(self) -> None:
        """Marginalise the friction state before a gap, joint by joint."""
        names = self.unknowns.names
        for sums, rows in zip(self.sums, self.unknowns.rows, strict=True):
            starts = np.array(
                [
                    k
                    for k, i in enumerate(rows)
                    if parse_name(names[i]).quantity.startswith("start_")
                ]
            )
            sums.marginalise(starts, np.diag(self.prior)[rows[starts]])

    def reduce_model_errors(self, share: float, density: Float[Array, " j"], rms: Array) -> None:
        """Reduce the errors of the robot model to a fraction of their variance; set the noise."""
        u = self.unknowns
        names = [parse_name(name).quantity for name in u.names]
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

    # ---- results -------------------------------------------------------------------------------

    @property
    def has_rows(self) -> bool:
        """Whether any row was added."""
        return bool(self.totals[:, 0].sum() > 0.0)

    @property
    def has_both_directions(self) -> Bool[Array, " j"]:
        """Joints that moved long enough in both directions to separate friction from load."""
        out: Array = self.totals[:, 2:4].min(axis=1) >= MIN_DIRECTION_S
        return out

    @property
    def coverage(self) -> float:
        """Fraction of the motion of the loaded joints within the training range."""
        return motion_coverage(self.totals, self.step)

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload; parameters of the sources `without` are fixed."""
        return self._posterior(self._gain_covariance(), without)[0]

    def evaluation_steps(self, time: float) -> Generator[None, None, PayloadEstimate]:
        """Payload estimate, without `warnings`, in four or five parts of similar work."""
        settings = self.settings
        gains = self._gain_covariance()
        yield
        has_rows = self.has_rows
        posterior, mass, std = self._read_out(gains)
        if settings.place is not None:
            mass, std = mass_at_place(posterior.information, posterior.target, settings)
        yield
        self._update_noise_scale(gains)
        yield
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
        if ready and self.stopped_at is None:
            yield
        accurate = self.stopped_at is not None or (ready and self._is_accurate(estimate))
        if has_rows and self.ready_at is None:
            self.mass_history.add(time, mass, std)
        if ready and self.ready_at is None:
            self.ready_at = time
        if accurate and self.stopped_at is None:
            self.stopped_at = time
        return replace(estimate, ready=ready, accurate=accurate)

    def warnings(self, ready: bool, events: list[PayloadEvent]) -> tuple[str, ...]:
        """Messages about the last estimate."""
        messages = estimate_warnings(
            events,
            covariance=self.unknowns.covariance,
            ready=ready or self._negative_mass is not None,
            covered_share=self.coverage,
            scale=self.scale,
        )
        if self._negative_mass is not None and self.has_rows:
            messages = [lighter_robot_warning(self._negative_mass), *messages]
        return tuple(messages)

    @property
    def contradiction(self) -> str:
        """Reason why the model does not describe this robot; "" if it does."""
        if self._negative_mass is not None and self.has_rows:
            return lighter_robot_warning(self._negative_mass)
        return contradiction_message(self.scale)

    def residual_coefficients(self) -> Float[Array, " c"]:
        """x of one joint after the other such that [columns, y] x is its negative residual."""
        x = self.state[self._columns]
        x[self._edges[1:] - 1] = -1.0
        x[self._payload_columns] *= np.repeat(1.0 + self.gains, PER_LINK)
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
        inflation = coverage_inflation(self.coverage)
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
        """Covariance of the errors of the drive gains at the RMS lever arms of the run."""
        payload = np.zeros(self._edges[-1])
        payload[self._payload_columns] = np.tile(self.phi, self.joints)
        powers = gram_powers(self._grams, self._edges, payload) * self.unknowns.density
        levers = lever_arms(self.totals, np.maximum(powers, 0.0), float(self.phi[0]))
        return self._gain_uncertainty.covariance(levers)

    def _read_out(self, gains: Float[Array, "j j"]) -> tuple[Posterior, float, float]:
        """Posterior of the payload, and mass and its standard deviation under a wide prior.

        Parameters and gains given that payload are stored.
        """
        u = self.unknowns
        if _kernel is None or self.is_correlated:
            posterior, nuisances = self._posterior(gains)
            linear, covariance = posterior.linear()
            self.state, self.gains = nuisances.condition_on(linear, u.rows, len(u))
            return posterior, float(linear[0]), float(np.sqrt(covariance[0, 0]))
        gain_information = np.linalg.inv(self.gain_inflation * gains)
        posterior, mass, std, self.state, self.gains = self._kernel_read_out(
            gain_information, max(self.settings.gain_common, _NO_GAIN_STD)
        )
        return posterior, mass, std

    def _kernel_read_out(
        self, gain_information: Float[Array, "j j"], common_std: float
    ) -> tuple[Posterior, float, float, Float[Array, " p"], Float[Array, " j"]]:
        """Posterior, mass, its standard deviation, parameters and gains, by the kernel."""
        u = self.unknowns
        information, target, linear = np.empty((10, 10)), np.empty(10), np.empty(10)
        state, gain_errors = np.empty(len(u)), np.empty(self.joints)
        variance = _kernel.payload_read_out(
            *(self._grams, self._edges, self._columns, self.prior, self.prior_target, u.shared),
            *(self.phi, self.scale, gain_information),
            *(common_std, coverage_inflation(self.coverage)),
            *(WEAK_PRIOR, information, target, linear, state, gain_errors),
        )
        posterior = Posterior(information, target, self.scale, self.gains)
        return posterior, float(linear[0]), float(np.sqrt(variance)), state, gain_errors

    def _update_noise_scale(self, gains: Float[Array, "j j"]) -> None:
        """Update residual variances and the covariance of the gains."""
        u = self.unknowns
        # Joints that contradict each other beyond their gain errors widen the covariance of all
        # gains.
        self.gain_inflation = self._gain_uncertainty.inflation(self.gains, gains)
        powers = gram_powers(self._grams, self._edges, self.residual_coefficients())
        expected = self.totals[:, 0] * u.rms**2 / u.density
        ratio = (_NOISE_PRIOR_WEIGHT + np.maximum(powers, 0.0)) / (_NOISE_PRIOR_WEIGHT + expected)
        self.scale = np.maximum(ratio, _MIN_VARIANCE_RATIO)

    def _is_ready(self, mass: float, std: float) -> bool:
        """Whether the loaded joints moved both ways with small residuals and the mass is known."""
        if not (self.totals[:, 4] > 0.0).any():
            return False
        loaded = joints_under_load(self.totals)
        is_separable = self.has_both_directions & (self.scale <= SUSPICIOUS_VARIANCE_RATIO)
        if not is_separable[loaded].all():
            return False
        return std <= self.settings.ready_mass * max(mass, self.settings.light_mass)

    def _is_accurate(self, estimate: PayloadEstimate) -> bool:
        """Whether mass and centre have the required accuracy, without the error of the gains."""
        settings = self.settings
        if not (estimate.empty or np.all(estimate.centre_std <= settings.com_accuracy)):
            return False
        goal = settings.mass_accuracy * max(estimate.mass, settings.light_mass)
        if estimate.mass_std <= goal:
            return True
        return self.mass_std_without_gains() <= goal

    def mass_std_without_gains(self) -> float:
        """Standard deviation of the mass if the drive gains were known [kg]."""
        if _kernel is None or self.is_correlated:
            covariance = self.posterior(without=("gains",)).linear()[1]
            return float(np.sqrt(covariance[0, 0]))
        known_gains = np.eye(self.joints) / _NO_GAIN_STD**2
        return self._kernel_read_out(known_gains, _NO_GAIN_STD)[2]
