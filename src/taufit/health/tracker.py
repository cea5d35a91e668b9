"""Friction tracking while the robot moves: level, slope and offset of every joint, causally.

The residual of the model is

    e = dFc f / Fc + dFv v + d0 + noise,

with f the model's friction torque, Fc its level at creeping speed, and (dFc, dFv, d0) a slow random
walk per joint. Their size at the start of a run differs from day to day: Kalman filters with
different initial standard deviations run in parallel, weighted by their likelihood. They are
updated in time bins of 0.05 s; noise counts by its correlation time. A state is used after a delay
longer than the low-pass looks ahead, so that no torque predicts itself. The result does not depend
on how the samples are split.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level
from taufit.model.predict import friction_torque, predicted_torque
from taufit.signals.samples import Samples

# Tracked parameters, in the order of the state.
TRACKED_PARAMETERS = ("coulomb", "viscous", "offset")


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """Settings of friction tracking.

    Attributes:
        scatters: Initial standard deviations of the parallel filters, relative to the friction
            level. Larger values follow larger differences from the model.
        seconds: Time in which a parameter's random walk reaches that standard deviation [s].
            Smaller values follow faster changes and more noise.
        delay_s: Delay after which a state is used [s].
        cell_s: Width of a time bin, one update each [s].
    """

    initial_stds: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    walk_time_s: float = 100.0
    delay_s: float = 0.5
    bin_s: float = 0.05


class FrictionTracker:
    """Tracks the friction of a robot relative to its model.

    Args:
        model: Fitted model; its residuals give the torque noise.
        rate_hz: Rate of the samples [Hz].
        settings: Settings; default `TrackerSettings()`.

    Attributes:
        state: dFc [N m], dFv [N m s/rad] and d0 [N m] of every joint.
        covariance: Covariance of the state.
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
        self._walk = self._initial_covariance * (
            self._samples_per_bin / rate_hz / tracker_settings.walk_time_s
        )
        self.clear()

    def clear(self) -> None:
        """Start another run: friction is the model's again."""
        self._states = np.zeros(self._initial_covariance.shape[:3])
        self._covariances = self._initial_covariance.copy()
        self.log_likelihood = np.zeros(self._initial_covariance.shape[:2])
        self._combine_filters()
        self._count = 0
        self._delayed_states: deque[Float[Array, "j 3"]] = deque()

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
        delayed_state = (
            self._delayed_states.popleft()
            if len(self._delayed_states) >= self._delay_samples
            else np.zeros_like(columns)
        )
        if self._count % self._samples_per_bin == 0:
            self._update(columns, residual, in_motion & np.isfinite(residual))
        self._count += 1
        self._delayed_states.append(self.state)
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
        weights = np.exp(self.log_likelihood - self.log_likelihood.max(axis=0))
        weights /= weights.sum(axis=0)
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
    """

    correction: Float[Array, "n j"]
    parts: Float[Array, "n j 3"]


@dataclass(frozen=True, slots=True, eq=False)
class TrackingScore:
    """Score of a model with tracked friction.

    Attributes:
        nrmse: nrmse per joint, over the samples in motion.
        second_half: Mean nrmse over the second half of the motion, after convergence.
        second_half_before: Mean nrmse over the second half without tracking.
        parts: dFc [N m], dFv [N m s/rad], d0 [N m] at the end of the recording.
    """

    nrmse: Float[Array, " j"]
    second_half: float
    second_half_before: float
    parts: Float[Array, "j 3"]

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
) -> FrictionTrack:
    """Track friction over conditioned samples, run by run.

    Args:
        model: Fitted model.
        samples: Samples conditioned like its training data.
        predicted: Model torque of the samples, if already computed.
        settings: Settings; default `TrackerSettings()`.
    """
    predicted = predicted_torque(model, samples) if predicted is None else predicted
    residual: Array = samples.torque - predicted
    friction = friction_torque(model, samples)
    in_motion = samples.keep & samples.in_motion[:, None]
    correction = np.zeros_like(residual)
    parts = np.zeros((*residual.shape, 3))
    tracker = FrictionTracker(model, samples.rate_hz, settings)
    for run in samples.run_slices():
        tracker.clear()
        for i in range(run.start, run.stop):
            correction[i], parts[i] = tracker.correct(
                friction[i], samples.velocity[i], residual[i], in_motion[i]
            )
    return FrictionTrack(correction, parts)
