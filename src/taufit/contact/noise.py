"""Noise by friction state, learnt from motion in which nothing touched the arm.

Velocity noise, torque noise and wandering of a joint's residual come from windows of several
lengths (`noise_parts`) at whose end the joint is in the state. The level is that of the 95 %
quantile of |r| behind the observer. Where several recordings are known,
it is widened until 95 % of their motion is within what the others of them say: one day is not like
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.contact.external_torque import (
    FASTEST_HZ,
    WIDEST_HZ,
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

# Windows from which the parts of the noise are learnt [s]; friction turns within less.
_WINDOWS_S = (0.03, 0.04, 0.06, 0.08, 0.16)
_SHORT = (SLOW, TURNING)
# A state is learnt from at least this much of it [s].
_ENOUGH_S = 3.0
# Nothing is learnt before filters and friction have settled [s].
_SETTLE_S = 0.5
# At rest nothing is learnt this long before and after a joint creeps [s].
_CREEP_S = 0.25
# In friction levels: the band of a state that training does not show, and the least wandering.
_LEVELS = {TURNING: 0.35, STANDING: 0.5, REST: 0.5}
_WALKS = {SLOW: 0.4, TURNING: 1.2, STANDING: 0.1}
# Wandering of joints that stand while others move is not of one size: loads shift in steps.
_STANDING_WALK = 2.5
# New motion is not the training's: what a fit leaves is smaller than what it meets.
_UNSEEN = 1.3
# Velocity noise of joints that stand, and what still counts as standing [rad/s or m/s].
_STILL_QUANTILE, _MOST_STANDSTILL = 0.95, 0.02
_AROUND_S = 0.7
# Training of which more than this share is beyond its own accelerations has noisy velocities.
_MOST_JOLTS = 0.3
# Between two poses whose inertia is computed [s].
_POSE_S = 0.1


def contact_rate(rate_hz: float) -> float:
    """Rate of the cells: the training's, or a whole part of it."""
    return rate_hz / float(np.ceil(rate_hz / FASTEST_HZ - 1e-9))


def standstill_of(samples: Samples) -> float:
    """Speed below which a joint does not move, from those that stand."""
    # A start counts as motion only when every joint has broken loose: leave the time around it out.
    wide = np.ones(2 * round(_AROUND_S * samples.rate_hz) + 1)
    near = np.convolve(samples.in_motion, wide, "same") > 0.5
    still = samples.friction_velocity[~near]
    if len(still) < 50:
        return StateSettings().standstill
    loud = float(np.quantile(np.abs(still), _STILL_QUANTILE))
    return float(np.clip(2.0 * loud, StateSettings().standstill, _MOST_STANDSTILL))


def training_noise(model: FittedModel, samples: Samples) -> NoiseByState | None:
    """Noise by state of the training samples; None where torques have no sign.

    None too where a term reads a channel that cells of motion, torque and temperature lack.

    Args:
        model: Fitted to them.
        samples: Conditioned, with what they were before the low-pass.
    """
    if model.channels or (samples.signed is not None and not np.all(samples.signed)):
        return None
    rate = contact_rate(samples.rate_hz)
    level = np.maximum(friction_level(model), 1e-3)
    base = _assumed(model, rate, standstill_of(samples), level)
    runs = [samples.rows(run) for run in samples.run_slices()]
    felt = [one for run in runs if (one := _felt_training(model, run, base)) is not None]
    least = None
    if felt and np.mean(np.concatenate([one.jolt for one in felt]) > 0.0) > _MOST_JOLTS:
        # Training cannot be beyond itself: the velocities are noisy.
        base = replace(base, velocity=_noisy_velocity(runs, base))
        least = base.velocity[FAST]
        felt = [one for run in runs if (one := _felt_training(model, run, base)) is not None]
    return learn_noise(model, felt, base, unseen=_UNSEEN, least=least)


def learn_contact_free_noise(
    model: FittedModel,
    felt: Sequence[ExternalTorqueBlock],
    base: NoiseByState,
    runs: int | None = None,
) -> NoiseByState:
    """`base` with every state replaced that contact-free recordings show for long enough.

    Args:
        model: Of the arm.
        felt: External torque of each recording, as `base.rate_hz` has its cells.
        base: Noise known so far.
        runs: How many recordings these are.
    """
    found = learn_noise(model, felt, base)
    return replace(found, runs=len(felt) if runs is None else runs)


def default_noise(model: FittedModel) -> NoiseByState:
    """Of a model whose record has none: from its score and the size of its friction."""
    conditioning = model.training.conditioning
    level = np.maximum(friction_level(model), 1e-3)
    rate = contact_rate(conditioning.rate_hz)
    return _assumed(model, rate, StateSettings().standstill, level)


def _assumed(
    model: FittedModel, rate_hz: float, standstill: float, friction: Float[Array, " j"]
) -> NoiseByState:
    score = model.training.score
    fast = 0.2 * friction if score is None else np.maximum(score.rmse, 0.02 * friction)
    level = np.tile(_UNSEEN * fast, (len(STATES), 1))
    walk = np.tile(fast, (len(STATES), 1))
    for state, share in _LEVELS.items():
        level[state] = np.maximum(level[state], share * friction)
    for state, share in _WALKS.items():
        walk[state] = np.maximum(walk[state], share * friction)
    cutoff = min(model.training.conditioning.cutoff_hz, WIDEST_HZ)
    white = np.tile(fast, (len(STATES), 1))
    nothing = np.zeros_like(level)
    return NoiseByState(rate_hz, cutoff, standstill, level, white, walk, nothing, nothing)


def _noisy_velocity(runs: Sequence[Samples], base: NoiseByState) -> Float[Array, "s j"]:
    """Noise of the velocities of cells as they are; none of joints that stand."""
    each = [noise_std(_averaged(run.friction_velocity, run, base)) for run in runs]
    out = np.zeros_like(base.velocity)
    out[[FAST, SLOW, TURNING]] = np.max(each, axis=0)
    return out


def _averaged(values: Float[Array, "n c"], run: Samples, base: NoiseByState) -> Float[Array, "m c"]:
    """Cell by cell."""
    every = round(run.rate_hz / base.rate_hz)
    n = len(values) // every
    return values[: n * every].reshape(n, every, -1).mean(axis=1)


def _felt_training(
    model: FittedModel, run: Samples, base: NoiseByState
) -> ExternalTorqueBlock | None:
    """External torque of a run on the grid of training, averaged cell by cell."""
    torque = run.torque if run.raw_torque is None else run.raw_torque
    parts = [run.position, run.friction_velocity, torque]
    if needs(model.term_sum, "temperature"):
        if run.temperature is None:
            return None
        parts.append(run.temperature)
    cells = _averaged(np.concatenate(parts, axis=1), run, base)
    if len(cells) < 3:
        return None
    states, velocity = base.states, base.velocity[FAST]
    sensed = ExternalTorque(model, base.rate_hz, run.cutoff_hz, states, velocity)
    return sensed(np.arange(len(cells)) / base.rate_hz, cells)


def learn_noise(
    model: FittedModel,
    felt: Sequence[ExternalTorqueBlock],
    base: NoiseByState,
    *,
    unseen: float = 1.0,
    least: Float[Array, " j"] | None = None,
) -> NoiseByState:
    """`base` with what these runs show.

    Args:
        model: Of the arm.
        felt: External torque, run by run.
        base: For states that are not shown for long enough.
        unseen: Factor on levels: new motion is larger than that a model was fitted to.
        least: Noise of velocities, at least [rad/s or m/s].
    """
    friction = np.maximum(friction_level(model), 1e-3)
    level, white, walk = base.level.copy(), base.white.copy(), base.walk.copy()
    velocity, seconds = base.velocity.copy(), base.seconds.copy()
    step = 1.0 / base.rate_hz
    joints = len(friction)
    seen = [_NoiseRun(one, step, base.standstill) for one in felt]
    enough = np.zeros_like(seconds, bool)
    for state in range(len(STATES)):
        factor = unseen * _spread([one.smooth_of(state) for one in seen], joints)
        for j in range(joints):
            smooth = [one.smooth_of(state)[j] for one in seen]
            here = sum(map(len, smooth)) * step
            if here < _ENOUGH_S:
                continue
            enough[state, j] = True
            seconds[state, j] = here
            level[state, j] = max(factor * _level(smooth), 1e-9)
    sensed = ExternalTorque.of(model, base)
    masses = [_inertia_squared(sensed, one) for one in felt]
    lengths = sorted({max(round(s / step), 2) for s in _WINDOWS_S})
    heard: dict[tuple[int, int], WindowStatistics] = {}
    for state, j in np.argwhere(enough):
        runs = [(*one.parts(state, j), mass[:, j]) for one, mass in zip(seen, masses, strict=True)]
        found = window_statistics(runs, lengths[:-1] if state in _SHORT else lengths)
        if found is not None:
            heard[int(state), int(j)] = found
    if all((FAST, j) in heard for j in range(joints)):
        # Joints that stand have none.
        shakes = np.sqrt(velocity_noise([heard[FAST, j] for j in range(joints)]))
        velocity[:STANDING] = shakes if least is None else np.maximum(shakes, least)
    for (state, j), one in heard.items():
        parts = fit_white_noise_and_random_walk(
            one, velocity[FAST] ** 2 if state < STANDING else 0.0 * friction
        )
        white[state, j] = max(np.sqrt(parts[0]), 1e-9)
        growth = np.sqrt(parts[1] / step) * (_STANDING_WALK if state == STANDING else 1.0)
        walk[state, j] = max(growth, 1e-9)
    for state, share in _WALKS.items():
        walk[state] = np.maximum(walk[state], share * friction)
    for state in (SLOW, TURNING):
        # Motion that is not shown for long enough is no quieter than fast motion.
        for part in (level, white, walk):
            part[state] = np.where(enough[state], part[state], np.maximum(part[state], part[FAST]))
    return replace(base, level=level, white=white, walk=walk, velocity=velocity, seconds=seconds)


class _NoiseRun:
    """One run with what of it counts."""

    def __init__(self, felt: ExternalTorqueBlock, step: float, standstill: float) -> None:
        self.felt = felt
        first = np.arange(len(felt)) >= round(_SETTLE_S / step)
        settled = first & (felt.jolt <= 0.0)
        # An arm at rest whose joints creep is about to start, or has just stopped.
        creeps = (np.abs(felt.velocity) >= standstill).any(axis=1)
        margin = round(_CREEP_S / step)
        near = np.convolve(creeps, np.ones(2 * margin + 1))[margin : margin + len(creeps)] > 0.5
        self.counts = settled[:, None] & ~((felt.state == REST) & near[:, None])
        # An increment across the moment a joint begins to stand is one of definition.
        self.jumps = np.cumsum(felt.switched | (felt.jolt > 0.0)[:, None], axis=0)

    def smooth_of(self, state: int) -> list[Float[Array, " n"]]:
        """Behind the observer, in one state, per joint."""
        felt = self.felt
        rows = self.counts & (felt.state == state)
        return [felt.smooth[rows[:, j], j] for j in range(felt.state.shape[1])]

    def parts(
        self, state: int, j: int
    ) -> tuple[Float[Array, " n"], Bool[Array, " n"], Int[Array, " n"]]:
        """Residual of a joint, where it is in the state, and where it is defined anew."""
        counts = self.counts[:, j] & (self.felt.state[:, j] == state)
        return self.felt.torque[:, j], counts, self.jumps[:, j]


def _inertia_squared(sensed: ExternalTorque, felt: ExternalTorqueBlock) -> Float[Array, "n j j"]:
    """(M / h)^2 of every cell, entry by entry; poses change slowly, so a few per second say it."""
    every = max(round(_POSE_S / sensed.step), 1)
    inertia = sensed.inertia(felt.position[::every]) / sensed.step
    return np.repeat((inertia**2).astype(np.float32), every, axis=0)[: len(felt)]


def _level(smooth: Sequence[Array]) -> float:
    """Standard deviation of a normal distribution with the same 95 % quantile, run by run."""
    every = np.abs(np.concatenate(smooth))
    return float(np.quantile(every, 0.95)) / NORMAL_95


def _spread(runs: Sequence[Sequence[Array]], joints: int) -> float:
    """Factor by which levels must grow for each run to hold 95 % within what the others say."""
    ratios = []
    for k, own in enumerate(runs):
        for j in range(joints):
            others = [one[j] for i, one in enumerate(runs) if i != k and len(one[j])]
            if len(own[j]) < 50 or sum(map(len, others)) < 100:
                continue
            bound = _level(others) * NORMAL_95
            ratios.append(np.abs(own[j]) / max(bound, 1e-12))
    if not ratios:
        return 1.0
    return max(float(np.quantile(np.concatenate(ratios), 0.95)), 1.0)
