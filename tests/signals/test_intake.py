"""The intake: what is no measurement stays out, what is one gets through, in order and in time."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.signals import noise
from taufit.signals.stream import (
    CleanSample,
    StreamConditioner,
    row_screen as screen,
    spike_detector as spikes,
    velocity_selection,
)
from taufit.signals.stream.velocity_selection import three_point_slope

RATE, JOINTS = 100.0, 2
FLOOR = np.array([1e-2, 1e-2, 0.05, 0.05, 0.5, 0.5])


def intake(**settings) -> StreamConditioner:
    return StreamConditioner(JOINTS, floor=FLOOR, **settings)


def motion(n: int = 300):
    time = np.arange(n) / RATE
    position = np.stack([np.sin(time), np.cos(0.7 * time)], axis=1)
    velocity = np.stack([np.cos(time), -0.7 * np.sin(0.7 * time)], axis=1)
    torque = 3.0 * position + np.random.default_rng(0).normal(scale=0.02, size=position.shape)
    return time, position, velocity, torque


def pushed(one: StreamConditioner, time, position, velocity, torque):
    out = []
    for k in range(len(time)):
        out += one.push(time[k], position[k], None if velocity is None else velocity[k], torque[k])
    return out + one.flush()


def test_clean_samples_pass_as_they_are_and_at_once():
    time, position, velocity, torque = motion()
    one = intake()
    for k in range(50):
        (sample,) = one.push(time[k], position[k], velocity[k], torque[k])
        assert sample.number == k and sample.time == time[k]
        np.testing.assert_array_equal(sample.torque, torque[k])


def test_torque_is_gain_then_coupling():
    time, position, velocity, torque = motion(5)
    gain, coupling = np.array([2.0, -3.0]), np.array([[1.0, 0.0], [0.5, 1.0]])
    out = pushed(intake(gain=gain, coupling=coupling), time, position, velocity, torque)
    np.testing.assert_allclose([s.torque for s in out], (torque * gain) @ coupling)


@pytest.mark.parametrize("channel", ["position", "velocity", "torque"])
def test_a_spike_is_left_out_and_its_neighbours_are_not(channel):
    time, position, velocity, torque = motion()
    {"position": position, "velocity": velocity, "torque": torque}[channel][120, 1] += 2.0
    one = intake()
    numbers = [s.number for s in pushed(one, time, position, velocity, torque)]
    assert numbers == [k for k in range(len(time)) if k != 120]
    assert one.counts.spike == 1 and [n.kind for n in one.notices] == ["spike"]


def test_a_step_is_no_spike_and_comes_one_sample_late():
    time, position, velocity, torque = motion()
    torque[150:] += 10.0
    one, late = intake(), 0
    for k in range(len(time)):
        out = one.push(time[k], position[k], velocity[k], torque[k])
        late += k == 150 and not out
    assert late == 1 and one.counts.spike == 0 and one.counts.taken == len(time)


@pytest.mark.parametrize("delay", [0.023, -0.017])
def test_motion_is_shifted_by_the_delay(delay):
    time, position, velocity, torque = motion()
    out = pushed(intake(delay_s=delay), time, position, velocity, torque)
    assert [s.number for s in out] == list(range(len(time)))
    inner = slice(10, -10)
    # Straight lines between samples of a sine of 1 rad/s: error below h^2 / 8.
    want = np.sin(time - delay)[inner]
    np.testing.assert_allclose([s.position[0] for s in out][inner], want, atol=1.3e-5)
    np.testing.assert_array_equal([s.torque for s in out], torque)


def test_torque_of_each_joint_is_shifted_by_its_own_delay():
    time, position, velocity, _ = motion()
    delays = np.linspace(0.0, 0.03, position.shape[1])
    torque = np.sin(time[:, None] - delays)
    out = pushed(intake(delay_s=tuple(delays.tolist())), time, position, velocity, torque)
    inner = slice(10, -10)
    want = np.sin(time - delays.max())[inner]
    np.testing.assert_allclose([s.position[0] for s in out][inner], want, atol=1.3e-5)
    for j in range(len(delays)):
        np.testing.assert_allclose([s.torque[j] for s in out][inner], want, atol=1.3e-5)


def test_velocity_comes_from_position_where_it_is_not_measured_or_too_noisy():
    time, position, velocity, torque = motion()
    rng = np.random.default_rng(1)
    position = position + rng.normal(scale=1e-6, size=position.shape)
    out = pushed(intake(), time, position, None, torque)
    np.testing.assert_allclose([s.velocity for s in out][1:-1], velocity[1:-1], atol=5e-4)
    noisy = velocity + rng.normal(scale=0.02, size=velocity.shape)
    one = intake()
    out = pushed(one, time, position, noisy, torque)
    assert one.velocity_derived.all()
    np.testing.assert_allclose([s.velocity for s in out][70:-1], velocity[70:-1], atol=5e-4)


def test_the_slope_is_exact_for_parabolas_at_any_steps():
    at = np.array([0.0, 0.3, 0.4])
    value = 2.0 - at + 5.0 * at**2
    before, middle, after = ((t, np.array([x])) for t, x in zip(at, value, strict=True))
    assert three_point_slope(*middle, before, after)[0] == pytest.approx(-1.0 + 10.0 * 0.3)
    assert three_point_slope(*middle, None, None)[0] == 0.0


def test_late_and_repeated_samples_are_left_out_and_order_is_kept():
    time, position, velocity, torque = motion()
    order = np.r_[0:100, 101, 100, 102:200, 199, 200:300]
    one = intake()
    out = pushed(one, time[order], position[order], velocity[order], torque[order])
    assert np.all(np.diff([s.time for s in out]) > 0)
    assert (one.counts.late, one.counts.repeated, one.counts.taken) == (1, 1, 299)


def test_a_missing_temperature_is_the_last_one():
    time, position, velocity, torque = motion(3)
    one, seen = intake(), []
    for k, warm in enumerate(([np.nan, 30.0], [np.nan, np.nan], [np.nan, 31.0])):
        seen += one.push(time[k], position[k], velocity[k], torque[k], np.array(warm))
    np.testing.assert_array_equal(
        [s.temperature for s in seen], [[0.0, 30.0], [0.0, 30.0], [0.0, 31.0]]
    )


def test_nothing_but_holes_is_refused_by_its_channel():
    one = intake()
    with pytest.raises(RecordingError, match="torque of joint 2 is nan"):
        for k in range(600):
            one.push(k / RATE, np.zeros(2), np.zeros(2), np.array([1.0, np.nan]))


needs_kernel = pytest.mark.skipif(spikes._kernel is None, reason="there is no compiled kernel")


@needs_kernel
@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_numpy_guards_find_the_same_spikes(seed):
    rng = np.random.default_rng(seed)
    floor = rng.uniform(0.0, 0.5, 6)
    guards = spikes.spike_detector(floor), spikes.NumpySpikeDetector(floor)
    waiting, told = None, []
    for k in range(400):
        row = np.sin(0.05 * k + np.arange(6)) + 0.05 * rng.normal(size=6)
        row[rng.integers(6)] += rng.normal() * 3.0 * (rng.random() < 0.1)
        if k % 150 == 149:
            for guard in guards:
                guard.clear()
        if waiting is not None:
            found = [guard.is_spike(*waiting, 0.01 * k, row) for guard in guards]
            assert found[0] == found[1]
            told.append(found[0])
        found = [guard.suspicious(0.01 * k, row) for guard in guards]
        assert found[0] == found[1]
        waiting = (0.01 * k, row) if found[0] else None
        if waiting is None:
            for guard in guards:
                guard.accept(0.01 * k, row)
    assert any(told) and not all(told)


@needs_kernel
def test_compiled_and_numpy_screens_say_the_same():
    rng = np.random.default_rng(4)
    largest = rng.uniform(2.0, 9.0, 6)
    screens = spikes._kernel.Screen(largest, 0.5), screen.NumpyScreen(largest, 0.5)
    said, row = set(), np.zeros(6)
    for k in range(300):
        row[:4] = 2.0 * rng.normal(size=4)
        row[2:4] *= k % 2
        if k % 3:
            row[4:] = 2.0 * rng.normal(size=2)
        row[0] = np.nan if k % 50 == 0 else row[0]
        looks = [one.look(row) for one in screens]
        assert looks[0] == looks[1]
        said.add(looks[0])
        for one in screens:
            one.hold(row)
    assert said >= {0, screen.MEASURED, screen.MEASURED | screen.HELD, 7}


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_noise_level_is_the_readable_one(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    columns = 0.01 * np.cumsum(rng.normal(size=(rng.integers(9, 400), 12)), axis=0)
    columns += rng.normal(size=columns.shape) * 10.0 ** rng.uniform(-5, 0, 12)
    columns[len(columns) // 2, :4] += 5.0
    columns[:, 4:8] = np.round(columns[:, 4:8], 2)
    columns[:, 8] = 1.0
    compiled = noise.noise_std(columns)
    monkeypatch.setattr(noise, "_kernel", None)
    np.testing.assert_allclose(compiled, noise.noise_std(columns), rtol=1e-12, atol=0.0)


def test_the_compiled_velocity_is_the_readable_one(monkeypatch):
    rng = np.random.default_rng(0)
    position, velocity, torque, earlier, later = rng.normal(size=(5, 6))
    sample = CleanSample(0.3, position, velocity, torque, None, None, 0)
    derived = np.array([True, False, True, True, False, False])
    asked = (sample, derived, (0.29, earlier), (0.315, later))
    compiled = velocity_selection.derived_velocity(*asked)
    monkeypatch.setattr(velocity_selection, "_kernel", None)
    np.testing.assert_allclose(compiled, velocity_selection.derived_velocity(*asked), rtol=1e-13)
    assert np.all(compiled[~derived] == velocity[~derived])
