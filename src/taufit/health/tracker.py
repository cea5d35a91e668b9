"""Friction tracking while the robot moves: level, slope and offset of every joint, causally.

The residual of the model is

    e = dFc f / Fc + dFv v + d0 + noise,

with f the model's friction torque, Fc its level at creeping speed, and (dFc, dFv, d0) a slow random
walk per joint. Their size at the start of a run differs from day to day: Kalman filters with
different initial standard deviations run in parallel, weighted by their likelihood. They are
updated in time bins of 0.05 s; noise counts by its correlation time. A state is used after a delay
longer than the low-pass looks ahead, so that no torque predicts itself. A run begins with the state
at the end of the run before it, whose covariance grows by the scatter of friction between runs. The
result does not depend on how the samples are split.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import TYPICAL_FRICTION_SCATTER, coulomb_level, predict_interval
from taufit.model.predict import friction_torque, predicted_torque
from taufit.signals.samples import Samples

# Tracked parameters, in the order of the state.
TRACKED_PARAMETERS = ("coulomb", "viscous", "offset")


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """Settings of friction tracking.

    Attributes:
        initial_stds: Initial standard deviations of the parallel filters, relative to the friction
            level. Larger values follow larger differences from the model.
        walk_time_s: Time in which a parameter's random walk reaches that standard deviation [s].
            Smaller values follow faster changes and more noise.
        delay_s: Delay after which a state is used [s].
        bin_s: Width of a time bin, one update each [s].
        run_scatter: Standard deviation by which friction changes between runs, relative to its
            level. Larger values forget the run before sooner. 0.01, 0.02 and 0.04 were tried on
            UR10e runs and differ by 1 %.
    """

    initial_stds: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    walk_time_s: float = 100.0
    delay_s: float = 0.5
    bin_s: float = 0.05
    run_scatter: float = TYPICAL_FRICTION_SCATTER


@dataclass(frozen=True, slots=True, eq=False)
class FrictionDrift:
    """Friction of a robot relative to its model, at the end of a tracked run.

    Attributes:
        level: Coulomb friction of the model that it belongs to [N m].
        states: dFc [N m], dFv [N m s/rad] and d0 [N m] of every parallel filter and joint.
        covariances: Covariances of the states.
        log_likelihood: Log-likelihood of each filter, per joint.
    """

    level: Float[Array, " j"]
    states: Float[Array, "f j 3"]
    covariances: Float[Array, "f j 3 3"]
    log_likelihood: Float[Array, "f j"]

    @property
    def parts(self) -> Float[Array, "j 3"]:
        """dFc [N m], dFv [N m s/rad] and d0 [N m], weighted by likelihood."""
        return np.asarray((_weights(self.log_likelihood)[..., None] * self.states).sum(axis=0))


def _weights(log_likelihood: Float[Array, "f j"]) -> Float[Array, "f j"]:
    weights = np.exp(log_likelihood - log_likelihood.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


class FrictionTracker:
    """Tracks the friction of a robot relative to its model.

    Args:
        model: Fitted model; its residuals give the torque noise.
        rate_hz: Rate of the samples [Hz].
        settings: Settings; default `TrackerSettings()`.

    Attributes:
        state: dFc [N m], dFv [N m s/rad] and d0 [N m] of every joint.
        covariance: Covariance of the state.
        variance: Variance of the last correction [N m^2]; nan before the first state is used.
        log_likelihood: Log-likelihood of each parallel filter, per joint.
    """

    def __init__(
        self, model: FittedModel, rate_hz: float, settings: TrackerSettings | None = None
    ) -> None:
        self.settings = tracker_settings = settings or TrackerSettings()
        self.joints = joints = model.robot.joints
        self._level = level = np.maximum(coulomb_level(model), 1e-3)
        span = model.training.ranges.velocity
        speed = np.ones(joints) if span is None else np.maximum(-span.low, span.high)
        score = model.training.score
        rms = 0.1 * level if score is None else np.maximum(score.rmse, 1e-6)
        self._samples_per_bin = max(1, round(tracker_settings.bin_s * rate_hz))
        self._delay_samples = max(1, round(tracker_settings.delay_s * rate_hz))
        correlation_bins = max(
            model.training.residuals.correlation_s * rate_hz / self._samples_per_bin, 1.0
        )
        self._noise = rms**2 * correlation_bins
        unit = np.stack([level, level / np.maximum(speed, 1e-3), level], -1)
        scale: Float[Array, "f j 3"] = np.multiply.outer(
            np.array(tracker_settings.initial_stds), unit
        )
        self._initial_covariance = scale[..., None] ** 2 * np.eye(3)
        self._run_covariance = (tracker_settings.run_scatter * unit)[..., None] ** 2 * np.eye(3)
        self._walk = self._initial_covariance * (
            self._samples_per_bin / rate_hz / tracker_settings.walk_time_s
        )
        self.clear()

    def clear(self) -> None:
        """Start another run: friction is the model's again."""
        self._states = np.zeros(self._initial_covariance.shape[:3])
        self._covariances = self._initial_covariance.copy()
        self.log_likelihood = np.zeros(self._initial_covariance.shape[:2])
        self.variance = np.full(self.joints, np.nan)
        self._combine_filters()
        self._count = 0
        self._delayed_states: deque[tuple[Float[Array, "j 3"], Float[Array, "j 3 3"]]] = deque()

    @property
    def drift(self) -> FrictionDrift:
        """State to begin another run with.

        Half of the evidence for the parallel filters: the next run may differ more or less.
        """
        evidence = 0.5 * (self.log_likelihood - self.log_likelihood.max(axis=0))
        return FrictionDrift(self._level, self._states, self._covariances, evidence)

    def start_run(self, drift: FrictionDrift) -> None:
        """Start another run with the friction at the end of the run before it.

        Args:
            drift: State of a tracker of the same model, with the same settings.
        """
        if drift.states.shape != self._states.shape or not np.allclose(drift.level, self._level):
            raise TaufitError(
                "the tracked friction belongs to another model: its Coulomb friction is "
                f"{_numbers(drift.level)} N m, that of this model {_numbers(self._level)} N m. "
                "Start again without it."
            )
        self.clear()
        self._states = drift.states
        self._covariances = drift.covariances + self._run_covariance
        self.log_likelihood = drift.log_likelihood.copy()
        self._combine_filters()
        self._delayed_states.extend([(self.state, self.covariance)] * self._delay_samples)

    def correct(
        self,
        friction: Float[Array, " j"],
        velocity: Float[Array, " j"],
        residual: Float[Array, " j"],
        in_motion: Bool[Array, " j"],
    ) -> tuple[Float[Array, " j"], Float[Array, "j 3"]]:
        """Torque correction of the model at this sample, and the tracked state used.

        Args:
            friction: Model friction at this sample [N m].
            velocity: Joint velocities.
            residual: Measured minus model torque at this sample; used later.
            in_motion: Joints in motion; standing joints are not informative.
        """
        columns = np.ones((self.joints, 3))
        columns[:, 0], columns[:, 1] = friction / self._level, velocity
        delayed_state = np.zeros_like(columns)
        if len(self._delayed_states) >= self._delay_samples:
            delayed_state, covariance = self._delayed_states.popleft()
            self.variance = np.einsum("jk,jkl,jl->j", columns, covariance, columns)
        if self._count % self._samples_per_bin == 0:
            self._update(columns, residual, in_motion & np.isfinite(residual))
        self._count += 1
        self._delayed_states.append((self.state, self.covariance))
        return (columns * delayed_state).sum(axis=1), delayed_state

    def _update(
        self, columns: Float[Array, "j 3"], residual: Float[Array, " j"], is_used: Bool[Array, " j"]
    ) -> None:
        covariance = self._covariances + self._walk
        cross_covariance = (covariance @ columns[:, :, None])[..., 0]
        innovation_variance = (columns * cross_covariance).sum(axis=-1) + self._noise
        gain = cross_covariance * (is_used / innovation_variance)[..., None]
        error = np.where(is_used, residual - (columns * self._states).sum(axis=-1), 0.0)
        self.log_likelihood -= np.where(
            is_used, 0.5 * (np.log(innovation_variance) + error**2 / innovation_variance), 0.0
        )
        self._states = self._states + gain * error[..., None]
        self._covariances = covariance - gain[..., :, None] * cross_covariance[..., None, :]
        self._combine_filters()

    def _combine_filters(self) -> None:
        """Combine state and covariance of all filters, weighted by likelihood."""
        weights = _weights(self.log_likelihood)
        self.state: Float[Array, "j 3"] = (weights[..., None] * self._states).sum(axis=0)
        deviation = self._states - self.state
        covariances = self._covariances + deviation[..., :, None] * deviation[..., None, :]
        self.covariance: Float[Array, "j 3 3"] = (weights[..., None, None] * covariances).sum(
            axis=0
        )


@dataclass(frozen=True, slots=True, eq=False)
class FrictionTrack:
    """Friction tracked over samples.

    Attributes:
        correction: Correction of the model torque [N m].
        parts: dFc [N m], dFv [N m s/rad] and d0 [N m] as used.
        variance: Variance of the correction [N m^2], nan where the model is used alone; or None.
        drift: State at the end, to begin the next run with; or None.
    """

    correction: Float[Array, "n j"]
    parts: Float[Array, "n j 3"]
    variance: Float[Array, "n j"] | None = None
    drift: FrictionDrift | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TrackingScore:
    """Score of a model with tracked friction.

    Attributes:
        nrmse: nrmse per joint, over the samples in motion.
        second_half: Mean nrmse over the second half of the motion, after convergence.
        second_half_before: Mean nrmse over the second half without tracking.
        parts: dFc [N m], dFv [N m s/rad], d0 [N m] at the end of the recording.
        inside: Fraction in the 95 % interval of the tracked model per joint, or None.
    """

    nrmse: Float[Array, " j"]
    second_half: float
    second_half_before: float
    parts: Float[Array, "j 3"]
    inside: Float[Array, " j"] | None = None

    @property
    def mean_inside(self) -> float | None:
        return None if self.inside is None else float(self.inside.mean())

    @property
    def mean_nrmse(self) -> float:
        return float(np.nanmean(self.nrmse))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "nrmse": self.nrmse.tolist(),
            "mean_nrmse": self.mean_nrmse,
            "second_half": self.second_half,
            "second_half_before": self.second_half_before,
            "mean_inside": self.mean_inside,
            **{name: self.parts[:, k].tolist() for k, name in enumerate(TRACKED_PARAMETERS)},
        }


def score_tracking(
    samples: Samples, predicted: Float[Array, "n j"], course: FrictionTrack
) -> TrackingScore:
    """Score a model with and without tracked friction."""
    rows = np.flatnonzero(samples.in_motion)
    second_half = rows[len(rows) // 2 :]
    measured = samples.torque
    torque_std = measured[rows].std(axis=0)
    torque_std = np.where(torque_std > 0.0, torque_std, np.nan)

    def nrmse(expected: Float[Array, "n j"], rows_used: Array) -> Float[Array, " j"]:
        return (
            np.sqrt(np.mean((measured[rows_used] - expected[rows_used]) ** 2, axis=0)) / torque_std
        )

    corrected = predicted + course.correction
    return TrackingScore(
        nrmse(corrected, rows),
        float(np.nanmean(nrmse(corrected, second_half))),
        float(np.nanmean(nrmse(predicted, second_half))),
        course.parts[-1],
    )


def track(
    model: FittedModel,
    samples: Samples,
    *,
    predicted: Float[Array, "n j"] | None = None,
    settings: TrackerSettings | None = None,
    drift: FrictionDrift | None = None,
) -> FrictionTrack:
    """Track friction over conditioned samples, from run to run.

    Args:
        model: Fitted model.
        samples: Samples conditioned like its training data.
        predicted: Model torque of the samples, if already computed.
        settings: Settings; default `TrackerSettings()`.
        drift: State at the end of the run before, from `FrictionTrack.drift`; default none.
    """
    predicted = predicted_torque(model, samples) if predicted is None else predicted
    residual: Array = samples.torque - predicted
    friction = friction_torque(model, samples)
    in_motion = samples.keep & samples.in_motion[:, None]
    correction = np.zeros_like(residual)
    variance = np.empty_like(residual)
    parts = np.zeros((*residual.shape, 3))
    tracker = FrictionTracker(model, samples.rate_hz, settings)
    for run in samples.run_slices():
        if drift is not None:
            tracker.start_run(drift)
        for i in range(run.start, run.stop):
            correction[i], parts[i] = tracker.correct(
                friction[i], samples.velocity[i], residual[i], in_motion[i]
            )
            variance[i] = tracker.variance
        drift = tracker.drift
    return FrictionTrack(correction, parts, variance, drift)


def interval_coverage(
    model: FittedModel, samples: Samples, course: FrictionTrack
) -> Float[Array, " j"]:
    """Fraction of measured torques in the 95 % interval of the tracked model, per joint."""
    rows = np.flatnonzero(samples.in_motion)
    prediction = predict_interval(model, samples, rows, tracked_variance=course.variance)
    return np.asarray(prediction.inside(samples.torque[rows] - course.correction[rows]).mean(0))


def _numbers(values: Float[Array, " j"]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
