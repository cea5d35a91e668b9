"""Residual noise by friction regime, estimated from motion without contact.

Velocity noise, torque noise and random walk of a joint's residual come from windows of several
lengths (`noise_decomposition`) at whose end the joint is in the regime. The level is that of the
95 % quantile of |r| after the observer. With several recordings it is widened until 95 % of each
lie within the level of the others, since days differ.

A standing joint holds one torque within its stiction for as long as it stands: a stand is one
sample, however long it lasts. Each stand therefore has the weight of a short one, levels of
standing joints narrow only with several stands, and never below a fraction of the friction level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from taufit.contact.external_torque import (
    MAX_CUTOFF_HZ,
    MAX_RATE_HZ,
    ExternalTorque,
    ExternalTorqueBlock,
)
from taufit.contact.noise_decomposition import (
    WindowStatistics,
    fit_white_noise_and_random_walk,
    velocity_noise,
    window_statistics,
)
from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_level import friction_level
from taufit.model.noise_by_state import NoiseByState
from taufit.signals.noise import noise_std
from taufit.signals.samples import Samples
from taufit.terms import needs
from taufit.terms.friction.states import FAST, REST, SLOW, STANDING, STATES, TURNING, StateSettings

# Window lengths for the decomposition of noise [s]; the longest is not used in brief regimes.
_WINDOWS_S = (0.03, 0.04, 0.06, 0.08, 0.16)
_BRIEF_REGIMES = (SLOW, TURNING)
_STANDING_REGIMES = (STANDING, REST)
# Shortest duration of a regime from which its noise is estimated [s].
_MIN_REGIME_S = 3.0
# Start-up time of filters and friction, left out [s].
_STARTUP_S = 0.5
# Time before and after creeping that is left out at rest [s].
_CREEP_S = 0.25
# Default levels of regimes without data, and lower limits of random walks, in friction levels.
_DEFAULT_LEVELS = {TURNING: 0.35, STANDING: 0.65, REST: 0.65}
_MIN_WALKS = {SLOW: 0.4, TURNING: 1.2, STANDING: 0.1}
# Standing joints: longest duration of a stand that counts [s], fewest stands of an estimate, and
# lower limit of the level in friction levels (a uniform distribution of stiction has 1 / sqrt(3)).
_STAND_WEIGHT_S, _MIN_STANDS, _MIN_STANDING_LEVEL = 0.2, 10, 0.58
# Factor on the random walk of joints that stand while others move: loads change in steps.
_STANDING_WALK_FACTOR = 2.5
# Factor on training residuals for motion not fitted to.
_TRAINING_FACTOR = 1.1
# Quantile of velocities at standstill, and upper limit of the standstill speed [rad/s or m/s].
_STANDSTILL_QUANTILE, _MAX_STANDSTILL_SPEED = 0.95, 0.02
_MOTION_MARGIN_S = 0.7
# Fraction of training data above its own acceleration range from which velocities count as noisy.
_MAX_EXCESS_FRACTION = 0.3
# Time between two poses with computed mass matrix [s].
_POSE_INTERVAL_S = 0.1


def contact_rate(rate_hz: float) -> float:
    """Rate of time bins: the training rate divided by an integer [Hz]."""
    return rate_hz / float(np.ceil(rate_hz / MAX_RATE_HZ - 1e-9))


def standstill_speed(samples: Samples) -> float:
    """Speed below which a joint stands, from velocities at standstill [rad/s or m/s]."""
    # Breakaway of the joints is not simultaneous: leave out the time around starts.
    margin = min(round(_MOTION_MARGIN_S * samples.rate_hz), (len(samples.in_motion) - 1) // 2)
    near_motion = np.convolve(samples.in_motion, np.ones(2 * margin + 1), "same") > 0.5
    standing_velocity = samples.friction_velocity[~near_motion]
    if len(standing_velocity) < 50:
        return StateSettings().standstill
    velocity_quantile = float(np.quantile(np.abs(standing_velocity), _STANDSTILL_QUANTILE))
    return float(
        np.clip(2.0 * velocity_quantile, StateSettings().standstill, _MAX_STANDSTILL_SPEED)
    )


def training_noise(model: FittedModel, samples: Samples) -> NoiseByState | None:
    """Noise by friction regime of the training samples.

    Returns None for unsigned torque, or if a term needs a channel other than motion, torque and
    temperature.

    Args:
        model: Model fitted to the samples.
        samples: Conditioned samples, with unfiltered torque.
    """
    if model.channels or (samples.signed is not None and not np.all(samples.signed)):
        return None
    rate = contact_rate(samples.rate_hz)
    level = np.maximum(friction_level(model), 1e-3)
    default = _default_noise(model, rate, standstill_speed(samples), level)
    runs = [samples.rows(run) for run in samples.run_slices()]
    blocks = [block for run in runs if (block := _training_torque(model, run, default)) is not None]
    min_velocity_noise = None
    if (
        blocks
        and np.mean(np.concatenate([block.max_excess for block in blocks]) > 0.0)
        > _MAX_EXCESS_FRACTION
    ):
        # Training data cannot exceed its own range: the velocities are noisy.
        default = replace(default, velocity=_velocity_noise_by_regime(runs, default))
        min_velocity_noise = default.velocity[FAST]
        blocks = [
            block for run in runs if (block := _training_torque(model, run, default)) is not None
        ]
    return learn_noise(
        model, blocks, default, level_factor=_TRAINING_FACTOR, min_velocity_noise=min_velocity_noise
    )


def learn_contact_free_noise(
    model: FittedModel,
    blocks: Sequence[ExternalTorqueBlock],
    base: NoiseByState,
    runs: int | None = None,
) -> NoiseByState:
    """Replace the noise of every regime with enough data in contact-free recordings.

    Args:
        model: Model of the robot.
        blocks: External torque of each recording, at `base.rate_hz`.
        base: Noise known so far.
        runs: Number of recordings; default the number of blocks.
    """
    learnt = learn_noise(model, blocks, base)
    return replace(learnt, runs=len(blocks) if runs is None else runs)


def default_noise(model: FittedModel) -> NoiseByState:
    """Noise of a model without stored noise, from its score and friction level."""
    conditioning = model.training.conditioning
    level = np.maximum(friction_level(model), 1e-3)
    rate = contact_rate(conditioning.rate_hz)
    return _default_noise(model, rate, StateSettings().standstill, level)


def _default_noise(
    model: FittedModel, rate_hz: float, standstill: float, friction: Float[Array, " j"]
) -> NoiseByState:
    score = model.training.score
    fast_noise = 0.2 * friction if score is None else np.maximum(score.rmse, 0.02 * friction)
    level = np.tile(_TRAINING_FACTOR * fast_noise, (len(STATES), 1))
    walk = np.tile(fast_noise, (len(STATES), 1))
    for state, share in _DEFAULT_LEVELS.items():
        level[state] = np.maximum(level[state], share * friction)
    for state, share in _MIN_WALKS.items():
        walk[state] = np.maximum(walk[state], share * friction)
    cutoff = min(model.training.conditioning.cutoff_hz, MAX_CUTOFF_HZ)
    white = np.tile(fast_noise, (len(STATES), 1))
    zeros = np.zeros_like(level)
    return NoiseByState(rate_hz, cutoff, standstill, level, white, walk, zeros, zeros)


def _velocity_noise_by_regime(runs: Sequence[Samples], base: NoiseByState) -> Float[Array, "s j"]:
    """Noise of bin velocities by regime; zero for standing joints."""
    run_noise = [noise_std(_average_bins(run.friction_velocity, run, base)) for run in runs]
    out = np.zeros_like(base.velocity)
    out[[FAST, SLOW, TURNING]] = np.max(run_noise, axis=0)
    return out


def _average_bins(
    values: Float[Array, "n c"], run: Samples, base: NoiseByState
) -> Float[Array, "m c"]:
    """Average values in time bins."""
    factor = round(run.rate_hz / base.rate_hz)
    n = len(values) // factor
    return values[: n * factor].reshape(n, factor, -1).mean(axis=1)


def _training_torque(
    model: FittedModel, run: Samples, base: NoiseByState
) -> ExternalTorqueBlock | None:
    """External torque of a training run, averaged in time bins."""
    torque = run.torque if run.raw_torque is None else run.raw_torque
    parts = [run.position, run.friction_velocity, torque]
    if needs(model.term_sum, "temperature"):
        if run.temperature is None:
            return None
        parts.append(run.temperature)
    cells = _average_bins(np.concatenate(parts, axis=1), run, base)
    if len(cells) < 3:
        return None
    external_torque = ExternalTorque.from_noise(model, replace(base, cutoff_hz=run.cutoff_hz))
    return external_torque(np.arange(len(cells)) / base.rate_hz, cells)


def learn_noise(
    model: FittedModel,
    blocks: Sequence[ExternalTorqueBlock],
    base: NoiseByState,
    *,
    level_factor: float = 1.0,
    min_velocity_noise: Float[Array, " j"] | None = None,
) -> NoiseByState:
    """Replace the noise of every regime with enough data in these runs.

    Args:
        model: Model of the robot.
        blocks: External torque, run by run.
        base: Noise of regimes without enough data.
        level_factor: Factor on levels; above 1 for the data a model was fitted to.
        min_velocity_noise: Lower limit of the velocity noise [rad/s or m/s].
    """
    friction = np.maximum(friction_level(model), 1e-3)
    level, white, walk = base.level.copy(), base.white.copy(), base.walk.copy()
    velocity, seconds = base.velocity.copy(), base.seconds.copy()
    step = 1.0 / base.rate_hz
    joints = len(friction)
    noise_runs = [_NoiseRun(run, step, base.standstill) for run in blocks]
    has_data = _learn_levels(noise_runs, step, friction, level_factor, level, seconds)
    external_torque = ExternalTorque.from_noise(model, base)
    masses = [_squared_mass_matrix(external_torque, run) for run in blocks]
    lengths = sorted({max(round(s / step), 2) for s in _WINDOWS_S})
    statistics: dict[tuple[int, int], WindowStatistics] = {}
    for state, j in np.argwhere(has_data):
        runs = [
            (*run.joint_data(state, j), mass[:, j])
            for run, mass in zip(noise_runs, masses, strict=True)
        ]
        window_data = window_statistics(runs, lengths[:-1] if state in _BRIEF_REGIMES else lengths)
        if window_data is not None:
            statistics[int(state), int(j)] = window_data
    if all((FAST, j) in statistics for j in range(joints)):
        # Standing joints have no velocity noise.
        velocity_std = np.sqrt(velocity_noise([statistics[FAST, j] for j in range(joints)]))
        velocity[:STANDING] = (
            velocity_std
            if min_velocity_noise is None
            else np.maximum(velocity_std, min_velocity_noise)
        )
    for (state, j), run in statistics.items():
        parts = fit_white_noise_and_random_walk(
            run, velocity[FAST] ** 2 if state < STANDING else 0.0 * friction
        )
        white[state, j] = max(np.sqrt(parts[0]), 1e-9)
        growth = np.sqrt(parts[1] / step) * (_STANDING_WALK_FACTOR if state == STANDING else 1.0)
        walk[state, j] = max(growth, 1e-9)
    for state, share in _MIN_WALKS.items():
        walk[state] = np.maximum(walk[state], share * friction)
    for state in (SLOW, TURNING):
        # Regimes with too little data have at least the noise of fast motion.
        for part in (level, white, walk):
            part[state] = np.where(
                has_data[state], part[state], np.maximum(part[state], part[FAST])
            )
    return replace(base, level=level, white=white, walk=walk, velocity=velocity, seconds=seconds)


def _learn_levels(
    runs: Sequence[_NoiseRun],
    step: float,
    friction: Float[Array, " j"],
    level_factor: float,
    level: Float[Array, "s j"],
    seconds: Float[Array, "s j"],
) -> Bool[Array, "s j"]:
    """Put levels and durations of regimes with enough data in place; return where there are any."""
    has_data = np.zeros_like(seconds, bool)
    for state in range(len(STATES)):
        is_standing = state in _STANDING_REGIMES
        observed = [run.magnitudes(state) for run in runs]
        factor = level_factor * _between_run_factor(observed, len(friction))
        for j in range(len(friction) if runs else 0):
            joint_data = _Magnitudes.concatenate([run[j] for run in observed])
            duration = len(joint_data.values) * step
            if duration < _MIN_REGIME_S:
                continue
            has_data[state, j] = True
            seconds[state, j] = duration
            # Few stands may widen the level, not narrow it.
            is_narrowable = not is_standing or joint_data.stands >= _MIN_STANDS
            lower = 1e-9 if is_narrowable else level[state, j]
            level[state, j] = max(factor * joint_data.bound / NORMAL_95, lower)
        if is_standing:
            level[state] = np.maximum(level[state], _MIN_STANDING_LEVEL * friction)
    return has_data


class _Magnitudes(NamedTuple):
    """Magnitudes of observer torque of a joint in one regime.

    Attributes:
        values: |r| of every time bin [N m].
        weights: Weight of every time bin.
        stands: Number of uninterrupted intervals.
    """

    values: Float[Array, " n"]
    weights: Float[Array, " n"]
    stands: int

    @classmethod
    def concatenate(cls, parts: Sequence[_Magnitudes]) -> _Magnitudes:
        """Data of several runs."""
        values, weights, stands = zip(*parts, strict=True)
        return cls(np.concatenate(values), np.concatenate(weights), sum(stands))

    @property
    def bound(self) -> float:
        """Weighted 95 % quantile [N m]."""
        order = np.argsort(self.values)
        cumulative = np.cumsum(self.weights[order])
        last = np.searchsorted(cumulative, 0.95 * cumulative[-1])
        return float(self.values[order][min(last, len(order) - 1)])


class _NoiseRun:
    """One run with the mask of valid time bins."""

    def __init__(self, block: ExternalTorqueBlock, step: float, standstill: float) -> None:
        self.block = block
        self._stand_bins = _STAND_WEIGHT_S / step
        after_startup = np.arange(len(block)) >= round(_STARTUP_S / step)
        is_settled = after_startup & (block.max_excess <= 0.0)
        # A robot at rest with creeping joints is about to start, or has just stopped.
        is_creeping = (np.abs(block.velocity) >= standstill).any(axis=1)
        margin = round(_CREEP_S / step)
        window = np.convolve(is_creeping, np.ones(2 * margin + 1))
        near_creep = window[margin : margin + len(is_creeping)] > 0.5
        self.valid = is_settled[:, None] & ~((block.state == REST) & near_creep[:, None])
        # Increments across the beginning or end of standstill are not noise.
        self.regime_count = np.cumsum(
            block.regime_changed | (block.max_excess > 0.0)[:, None], axis=0
        )

    def magnitudes(self, state: int) -> list[_Magnitudes]:
        """Magnitudes of observer torque in one regime, per joint."""
        rows = self.valid & (self.block.state == state)
        return [self._joint_magnitudes(state, j, rows[:, j]) for j in range(rows.shape[1])]

    def _joint_magnitudes(self, state: int, j: int, rows: Bool[Array, " n"]) -> _Magnitudes:
        edges = np.flatnonzero(np.diff(rows.astype(int), prepend=0, append=0))
        lengths = edges[1::2] - edges[::2]
        # The band is wider by the drift of friction that the run has not shown yet: at most three
        # quarters of a square, since a robot may not drift at all.
        squares = self.block.smooth[rows, j] ** 2
        drift_squares = (NORMAL_95 * self.block.drift_std[rows, j]) ** 2
        values = np.sqrt(np.maximum(squares - drift_squares, 0.25 * squares))
        weights = np.ones(len(values))
        if state in _STANDING_REGIMES:
            weights = np.repeat(np.minimum(1.0, self._stand_bins / lengths), lengths)
        return _Magnitudes(values, weights, len(lengths))

    def joint_data(
        self, state: int, j: int
    ) -> tuple[Float[Array, " n"], Bool[Array, " n"], Int[Array, " n"]]:
        """Residual of a joint, mask of the regime, and count of regime changes."""
        valid = self.valid[:, j] & (self.block.state[:, j] == state)
        return self.block.torque[:, j], valid, self.regime_count[:, j]


def _squared_mass_matrix(
    external_torque: ExternalTorque, block: ExternalTorqueBlock
) -> Float[Array, "n j j"]:
    """(M / h)^2 of every bin, elementwise, computed at a few poses per second."""
    stride = max(round(_POSE_INTERVAL_S / external_torque.step), 1)
    inertia = external_torque.mass_matrix(block.position[::stride]) / external_torque.step
    return np.repeat((inertia**2).astype(np.float32), stride, axis=0)[: len(block)]


def _between_run_factor(runs: Sequence[Sequence[_Magnitudes]], joints: int) -> float:
    """Factor on levels at which each run has 95 % within the level of the other runs."""
    ratios = []
    for k, run in enumerate(runs):
        for j in range(joints):
            others = [other[j] for i, other in enumerate(runs) if i != k and len(other[j].values)]
            if run[j].weights.sum() < 50 or sum(other.weights.sum() for other in others) < 100:
                continue
            bound = max(_Magnitudes.concatenate(others).bound, 1e-12)
            ratios.append(run[j]._replace(values=run[j].values / bound))
    return max(_Magnitudes.concatenate(ratios).bound, 1.0) if ratios else 1.0
