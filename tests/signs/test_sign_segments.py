"""Segments hold one sign each, whatever the motion."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.sign_instances import instance

from taufit.signs.segments import cut_segments, joint_rms, noise_scale


def cut(case, **more):
    s = case.samples
    noise = noise_scale(s.torque, s.run, s.keep)
    return cut_segments(
        s.torque, s.velocity, s.time, s.run, s.keep, noise, s.rate_hz, **more
    ), noise


@pytest.mark.parametrize("settings", [{}, {"friction": True}, {"harmonics": 15}, {"seconds": 3.0}])
def test_segments_hold_one_sign_but_for_samples_at_their_ends(settings):
    stray = total = 0
    for seed in range(4):
        case = instance(seed, noise=0.05, **settings)
        found, _ = cut(case)
        for k in range(len(found)):
            torque = case.torque[found.label[:, found.joint[k]] == k, found.joint[k]]
            stray += min(np.sum(torque > 0), np.sum(torque < 0))
            total += len(torque)
    # Worst of 8 seeds: 1.8 % (3 s records at 50 Hz); the next round cuts these too.
    assert stray <= 0.02 * total


def test_predicted_crossings_make_segments_pure():
    for seed in range(4):
        case = instance(seed, noise=0.05, harmonics=15, friction=True)
        found, noise = cut(case, predicted=case.torque)
        for k in range(len(found)):
            joint = found.joint[k]
            torque = case.torque[found.label[:, joint] == k, joint]
            assert np.all(torque > 0) or np.all(torque < 0)
        assert np.all(noise > 0)


def test_crossings_are_found_between_samples():
    """A sine whose zeros fall between samples: segment ends lie on the zeros."""
    time = np.arange(200) / 50.0
    torque = np.sin(2 * np.pi * 0.7 * (time - 0.013))[:, None]
    one, run = np.ones_like(torque), np.zeros(200, int)
    found = cut_segments(
        np.abs(torque), one, time, run, one > 0, np.array([0.01]), 50.0, predicted=torque
    )
    zeros = 0.013 + np.arange(10) / 1.4
    inner = found.begin[found.begin > 0]
    assert len(inner) >= 4
    # A straight line between samples 20 ms apart.
    assert max(np.abs(zeros - t).min() for t in inner) < 1e-3


def test_a_jump_of_friction_is_a_cut_although_torque_never_reaches_zero():
    time = np.arange(300) / 100.0
    velocity = np.cos(2 * np.pi * time)[:, None]
    torque = 5.0 * np.sign(velocity)
    found = cut_segments(
        np.abs(torque),
        velocity,
        time,
        np.zeros(300, int),
        np.ones((300, 1), bool),
        np.array([0.1]),
        100.0,
    )
    assert len(found) >= 6
    for k in range(len(found)):
        assert len(set(np.sign(torque[found.label[:, 0] == k, 0]))) == 1


def test_runs_and_borders_end_segments():
    time = np.tile(np.arange(50) / 50.0, 2)
    run = np.repeat([0, 1], 50)
    torque = np.full((100, 1), 3.0)
    borders = np.zeros((100, 1), bool)
    borders[20] = True
    found = cut_segments(
        torque, np.ones((100, 1)), time, run, torque > 0, np.array([0.1]), 50.0, borders=borders
    )
    assert found.first.tolist() == [0, 20, 50]
    assert found.last.tolist() == [19, 49, 99]
    assert found.begin[2] == 0.0 and found.end[1] == pytest.approx(time[49])


def test_noise_scale_sees_the_noise_not_the_folds():
    case = instance(0, noise=0.1, friction=True)
    scale = noise_scale(case.samples.torque, case.samples.run, case.samples.keep)
    np.testing.assert_allclose(scale, case.noise, rtol=0.15)
    clean = instance(0, noise=0.0)
    rms = joint_rms(clean.samples.torque, clean.samples.keep)
    floor = noise_scale(clean.samples.torque, clean.samples.run, clean.samples.keep)
    np.testing.assert_allclose(floor, 0.02 * rms)
