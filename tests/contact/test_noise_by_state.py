"""Noise by friction state: learnt, kept with the model, true of motion that was not learnt from."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from taufit.contact.alarm_calibration import DEFAULT_TAIL, alarm_tail
from taufit.contact.external_torque import ExternalTorque
from taufit.contact.noise_decomposition import (
    fit_white_noise_and_random_walk,
    velocity_noise,
    window_statistics,
)
from taufit.contact.regime_noise import default_noise, learn_contact_free_noise, learn_noise
from taufit.core.statistics import NORMAL_95
from taufit.model import AlarmTail
from taufit.model.friction_level import friction_level
from taufit.model.model_file import model_from_dict, model_to_dict
from taufit.payload import stream
from taufit.payload.filter.time_grid import TimeGrid
from taufit.sim import random_fourier
from taufit.terms.friction.states import FAST, REST, STANDING, STATES


def felt(model, recording, noise):
    """External torque of a recording, all cells at once."""
    source = stream(model, recording)
    rows = np.concatenate([source.position, source.velocity, source.torque], axis=1)
    grid = TimeGrid(1.0 / noise.rate_hz, rows.shape[1], 0.1)
    for time, row in zip(source.time, rows, strict=True):
        grid.push(float(time), row)
    sensed = ExternalTorque(model, noise.rate_hz, noise.cutoff_hz, noise.states)
    return sensed(*grid.take())


def test_a_fit_learns_the_noise_of_its_own_motion(bench):
    noise = bench.model.training.noise
    assert noise is not None and noise.runs == 0 and noise.tail is None
    assert np.all(noise.seconds[FAST] > 10.0)
    assert np.all(noise.level > 0.0) and np.all(noise.white > 0.0) and np.all(noise.walk > 0.0)


def test_noise_survives_the_model_file(bench):
    noise = dataclasses.replace(bench.model.training.noise, tail=AlarmTail(20.0, 5.0, minutes=3.0))
    record = dataclasses.replace(bench.model.training, noise=noise)
    data = json.loads(json.dumps(model_to_dict(bench.model.with_training(record)), allow_nan=False))
    again = model_from_dict(data).training.noise
    for field in dataclasses.fields(noise):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(noise, field.name))


def test_a_model_without_noise_gets_one_from_its_friction(bench):
    record = dataclasses.replace(bench.model.training, noise=None)
    noise = default_noise(bench.model.with_training(record))
    assert np.all(noise.level[STANDING] > noise.level[FAST])


def test_free_runs_give_bands_that_hold_on_other_runs(bench):
    base = bench.model.training.noise
    runs = [felt(bench.model, bench.run(s, rest=2.0).recording, base) for s in (11, 12, 13)]
    noise = learn_contact_free_noise(bench.model, runs, base)
    assert noise.runs == 3 and np.all(noise.seconds[REST] > 0.0)
    other = [felt(bench.model, bench.run(s, periods=2).recording, noise) for s in (21, 22, 23)]
    for state in (FAST, REST):
        inside = np.concatenate(
            [(np.abs(f.smooth) <= noise.band(f.state))[50:][f.state[50:] == state] for f in other]
        )
        # Three short runs on each side: 95 % within what three others allow.
        assert 0.88 < inside.mean() <= 1.0, STATES[state]


def test_a_run_shorter_than_the_margin_around_creeping_is_learnt_from(bench):
    noise = default_noise(bench.model)
    run = bench.twin.run(random_fourier(bench.model.robot, seed=5, periods=1), seed=5)
    whole = felt(bench.model, run.recording, noise)
    fields = [field.name for field in dataclasses.fields(whole)]
    short = dataclasses.replace(whole, **{name: getattr(whole, name)[:5] for name in fields})
    learnt = learn_noise(bench.model, [short], noise)
    assert np.isfinite(learnt.level).all() and np.isfinite(learnt.white).all()


def stands_of(bench, base, short, torque):
    """Motion with one long stand of little torque, and short ones of `torque` friction levels."""
    whole = felt(bench.model, bench.run(11, periods=2).recording, base)
    friction = friction_level(bench.model)
    state, smooth = np.full_like(whole.state, FAST), whole.smooth.copy()
    state[100:900], smooth[100:900] = STANDING, 0.1 * friction
    for k in range(short):
        at = slice(920 + 30 * k, 940 + 30 * k)
        state[at], smooth[at] = STANDING, torque * friction
    assert 920 + 30 * short < len(whole)
    excess = np.zeros_like(whole.acceleration_excess)
    return dataclasses.replace(whole, state=state, smooth=smooth, acceleration_excess=excess)


def test_a_long_stand_counts_no_more_than_a_short_one(bench):
    base, friction = default_noise(bench.model), friction_level(bench.model)
    learnt = learn_noise(bench.model, [stands_of(bench, base, 12, 2.0)], base)
    np.testing.assert_allclose(NORMAL_95 * learnt.level[STANDING], 2.0 * friction, rtol=1e-6)


@pytest.mark.parametrize(("short", "level"), [(12, 0.58), (3, 0.65)])
def test_a_standing_band_is_never_narrower_than_stiction(bench, short, level):
    # Quiet stands give the lower limit, too few stands leave what is assumed.
    base, friction = default_noise(bench.model), friction_level(bench.model)
    learnt = learn_noise(bench.model, [stands_of(bench, base, short, 0.1)], base)
    np.testing.assert_allclose(learnt.level[STANDING], level * friction, rtol=1e-6)


def test_a_tail_is_weighed_by_its_excesses():
    step, rng = 0.01, np.random.default_rng(4)
    quiet = np.repeat(rng.exponential(3.0, 4000), 200)
    short, long = alarm_tail([quiet[: 30 * 200]], step), alarm_tail([quiet], step)
    assert short.minutes == pytest.approx(1.0)
    # Three excesses hardly move the default; four hundred nearly replace it.
    assert DEFAULT_TAIL.scale > short.scale > 0.8 * DEFAULT_TAIL.scale
    assert long.scale == pytest.approx((20 * 9.0 + 400 * 3.0) / 420, rel=0.2)
    loud = alarm_tail([10.0 * quiet], step)
    assert loud.threshold(1.0) > DEFAULT_TAIL.threshold(1.0) > long.threshold(1.0)


def test_a_threshold_grows_by_the_scale_for_every_factor_e():
    tail = AlarmTail(20.0, 5.0)
    assert tail.threshold(1.0) - tail.threshold(np.e) == pytest.approx(5.0)
    assert tail.threshold(0.1 * 1800.0) == pytest.approx(20.0)


def test_the_parts_of_a_known_noise_are_told_apart():
    rng = np.random.default_rng(3)
    n, inertia = 60000, np.array([[4.0, 1.0], [1.0, 2.0]]) / 0.01
    shake, torque = rng.normal(size=(n + 1, 2)) * 0.002, rng.normal(size=(n + 1, 2)) * [0.5, 0.8]
    wander = np.cumsum(rng.normal(size=(n, 2)) * [0.02, 0.05], axis=0)
    residual = np.diff(shake, axis=0) @ inertia.T + 0.5 * (torque[1:] + torque[:-1]) + wander
    every, never = np.ones(n, bool), np.zeros(n, int)
    heard = [
        window_statistics(
            [(residual[:, j], every, never, np.tile(inertia[j] ** 2, (n, 1)))], (3, 4, 6, 8, 16)
        )
        for j in range(2)
    ]
    velocity = velocity_noise(heard)
    # Joints that shake together leave some freedom between them: within a fifth over 10 seeds.
    np.testing.assert_allclose(np.sqrt(velocity), 0.002, rtol=0.25)
    for j, (white, walk) in enumerate(zip((0.5, 0.8), (0.02, 0.05), strict=True)):
        found = fit_white_noise_and_random_walk(heard[j], velocity)
        np.testing.assert_allclose(np.sqrt(found), (white, walk), rtol=0.2)


def test_a_model_written_before_velocity_noise_can_still_be_read(bench):
    data = json.loads(json.dumps(model_to_dict(bench.model), allow_nan=False))
    for state in data["noise_by_state"]["states"].values():
        del state["velocity"]
    assert np.all(model_from_dict(data).training.noise.velocity == 0.0)
