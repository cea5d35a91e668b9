"""Friction that is followed while the arm moves: level, slope and offset of every joint, causally.

The residual of the model is taken as

    e = dFc f / Fc + dFv v + d0 + noise,

with f the friction torque that the model expects, Fc its level at creeping speed, and (dFc, dFv,
d0) a slow random walk per joint. How far these are from zero when a run begins differs from day to
day: Kalman filters that expect next to nothing, little, the usual and much run side by side, and
each counts as much as what it expected before has come true. They work in cells of a twentieth of a
second; noise counts as long as it is correlated. What is known at a moment is used a delay later,
longer than the low-pass looks ahead, so that no torque helps to predict itself. Fed sample by
sample or chunk by chunk, the course is the same.
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

# What is followed, in the order of the state.
FOLLOWED = ("coulomb", "viscous", "offset")


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """How far friction may be from the model, and how fast it moves.

    Attributes:
        scatters: Standard deviations of every part when a run begins, over the friction level, of
            the filters that run side by side.
        seconds: In which a part walks as far as that.
        delay_s: After which what is known is used.
        cell_s: Between two corrections.
    """

    scatters: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    seconds: float = 100.0
    delay_s: float = 0.5
    cell_s: float = 0.05


class FrictionTracker:
    """Follows the friction of an arm beside its model.

    Args:
        model: Fitted; its residuals say how noisy torque is.
        rate_hz: Of the samples to come.
        settings: Replaces the usual ones.

    Attributes:
        state: dFc [N m], dFv [N m s/rad] and d0 [N m] of every joint.
        covariance: Of these.
        odds: Logarithms of how likely each filter's expectation is, joint by joint.
    """

    def __init__(
        self, model: FittedModel, rate_hz: float, settings: TrackerSettings | None = None
    ) -> None:
        self.settings = own = settings or TrackerSettings()
        self.joints = joints = model.robot.joints
        self._level = level = np.maximum(coulomb_level(model), 1e-3)
        span = model.training.ranges.velocity
        speed = np.ones(joints) if span is None else np.maximum(-span.low, span.high)
        score = model.training.score
        rms = 0.1 * level if score is None else np.maximum(score.rmse, 1e-6)
        self._every = max(1, round(own.cell_s * rate_hz))
        self._delay = max(1, round(own.delay_s * rate_hz))
        alike = max(model.training.residuals.correlation_s * rate_hz / self._every, 1.0)
        self._noise = rms**2 * alike
        unit = np.stack([level, level / np.maximum(speed, 1e-3), level], -1)
        scale: Float[Array, "f j 3"] = np.multiply.outer(np.array(own.scatters), unit)
        self._start = scale[..., None] ** 2 * np.eye(3)
        self._walk = self._start * (self._every / rate_hz / own.seconds)
        self.clear()

    def clear(self) -> None:
        """The next sample begins another run: friction is the model's again."""
        self._states = np.zeros(self._start.shape[:3])
        self._covariances = self._start.copy()
        self.odds = np.zeros(self._start.shape[:2])
        self._mix()
        self._count = 0
        self._known: deque[Float[Array, "j 3"]] = deque()

    def correct(
        self,
        friction: Float[Array, " j"],
        velocity: Float[Array, " j"],
        residual: Float[Array, " j"],
        moves: Bool[Array, " j"],
    ) -> tuple[Float[Array, " j"], Float[Array, "j 3"]]:
        """What to add to the model's torque at this sample, and the parts it is made of.

        Args:
            friction: What the model expects of friction at this sample [N m].
            velocity: Of the joints.
            residual: Measured torque less the model's at this sample; it is used later.
            moves: Joints whose friction can be seen; a standing one says nothing.
        """
        columns = np.ones((self.joints, 3))
        columns[:, 0], columns[:, 1] = friction / self._level, velocity
        used = self._known.popleft() if len(self._known) >= self._delay else np.zeros_like(columns)
        if self._count % self._every == 0:
            self._update(columns, residual, moves & np.isfinite(residual))
        self._count += 1
        self._known.append(self.state)
        return (columns * used).sum(axis=1), used

    def _update(
        self, columns: Float[Array, "j 3"], residual: Float[Array, " j"], seen: Bool[Array, " j"]
    ) -> None:
        covariance = self._covariances + self._walk
        reach = (covariance @ columns[:, :, None])[..., 0]
        spread = (columns * reach).sum(axis=-1) + self._noise
        gain = reach * (seen / spread)[..., None]
        error = np.where(seen, residual - (columns * self._states).sum(axis=-1), 0.0)
        self.odds -= np.where(seen, 0.5 * (np.log(spread) + error**2 / spread), 0.0)
        self._states = self._states + gain * error[..., None]
        self._covariances = covariance - gain[..., :, None] * reach[..., None, :]
        self._mix()

    def _mix(self) -> None:
        """State and covariance of all filters together, each by its odds."""
        share = np.exp(self.odds - self.odds.max(axis=0))
        share /= share.sum(axis=0)
        self.state: Float[Array, "j 3"] = (share[..., None] * self._states).sum(axis=0)
        apart = self._states - self.state
        within = self._covariances + apart[..., :, None] * apart[..., None, :]
        self.covariance: Float[Array, "j 3 3"] = (share[..., None, None] * within).sum(axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class FrictionCourse:
    """Friction followed through samples.

    Attributes:
        correction: What it adds to the model's torque [N m].
        parts: dFc [N m], dFv [N m s/rad] and d0 [N m] as they were used.
    """

    correction: Float[Array, "n j"]
    parts: Float[Array, "n j 3"]


@dataclass(frozen=True, slots=True, eq=False)
class TrackingScore:
    """How much better a model predicts with its friction followed.

    Attributes:
        nrmse: Per joint, over the samples in motion.
        second_half: Mean nrmse over the second half of the motion, when friction is known.
        second_half_before: The same without following it.
        parts: dFc [N m], dFv [N m s/rad], d0 [N m] when the recording ends.
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
            **{name: self.parts[:, k].tolist() for k, name in enumerate(FOLLOWED)},
        }


def tracked_score(
    samples: Samples, predicted: Float[Array, "n j"], course: FrictionCourse
) -> TrackingScore:
    """Errors with and without the followed friction."""
    rows = np.flatnonzero(samples.in_motion)
    late = rows[len(rows) // 2 :]
    measured = samples.torque
    spread = measured[rows].std(axis=0)
    spread = np.where(spread > 0.0, spread, np.nan)

    def nrmse(expected: Float[Array, "n j"], at: Array) -> Float[Array, " j"]:
        return np.sqrt(np.mean((measured[at] - expected[at]) ** 2, axis=0)) / spread

    followed = predicted + course.correction
    return TrackingScore(
        nrmse(followed, rows),
        float(np.nanmean(nrmse(followed, late))),
        float(np.nanmean(nrmse(predicted, late))),
        course.parts[-1],
    )


def track(
    model: FittedModel,
    samples: Samples,
    *,
    predicted: Float[Array, "n j"] | None = None,
    settings: TrackerSettings | None = None,
) -> FrictionCourse:
    """Friction of conditioned samples followed from the first to the last, run by run.

    Args:
        model: Fitted.
        samples: Conditioned like its training data.
        predicted: Its torque, where that is at hand.
        settings: Replaces the usual ones.
    """
    predicted = predicted_torque(model, samples) if predicted is None else predicted
    residual: Array = samples.torque - predicted
    friction = friction_torque(model, samples)
    moves = samples.keep & samples.in_motion[:, None]
    out = np.zeros_like(residual)
    parts = np.zeros((*residual.shape, 3))
    tracker = FrictionTracker(model, samples.rate_hz, settings)
    for run in samples.run_slices():
        tracker.clear()
        for i in range(run.start, run.stop):
            out[i], parts[i] = tracker.correct(
                friction[i], samples.velocity[i], residual[i], moves[i]
            )
    return FrictionCourse(out, parts)
