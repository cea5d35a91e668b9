"""Torque without signs where friction builds up along the path and noise drowns a joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.unsigned_friction import compare, twin, wrong_segments

import taufit
from taufit.fitting import automatic_model
from taufit.signals import condition
from taufit.signs.unknown_signs import find_signs, without_signs
from taufit.sim import random_fourier
from taufit.terms.friction import Linear


@pytest.fixture(scope="module")
def heavy():
    """A KR5 with three times the usual friction."""
    made = twin("kr5", 3.0)
    return made.run(random_fourier(made.robot, seed=2), seed=2).recording


def test_a_fit_without_signs_predicts_as_well_as_one_with_them():
    done = compare("ur5e", 3.0, 2)
    assert done.unsigned < 1.05 * done.signed
    assert done.unflagged == 0
    assert done.wrong_confident == 0
    assert done.confident >= 5


def test_friction_by_path_explains_what_coulomb_friction_does_not(heavy):
    robot = taufit.read_robot("kr5")
    samples = condition(without_signs(heavy), cutoff_hz=10.0)
    plain = find_signs(replace(automatic_model(robot), friction=Linear()), samples)
    full = find_signs(automatic_model(robot), samples)
    assert plain.chi2_per_dof > 5.0 > 2.0 > full.chi2_per_dof
    assert full.certified
    assert not np.any(wrong_segments(full, heavy) & ~full.ambiguous)
    assert not np.any(plain.joint_confident & (plain.joint_chi2 > 3.0))
    assert np.sum(full.joint_confident) > np.sum(plain.joint_confident)


def test_sure_intervals_are_right_and_do_not_overlap(heavy):
    samples = condition(without_signs(heavy), cutoff_hz=10.0)
    truth = condition(heavy, cutoff_hz=10.0)
    torque, keep = truth.raw_torque, truth.keep
    noise = 0.02 * np.sqrt(np.mean(torque**2, 0))
    found = find_signs(automatic_model(taufit.read_robot("kr5")), samples)
    intervals = found.sure_intervals()
    covered = np.zeros(torque.shape, int)
    for one in intervals:
        inside = (samples.time >= one.t0) & (samples.time <= one.t1) & (samples.run == one.run)
        covered[inside, one.joint] += 1
        clear = inside & keep[:, one.joint] & (np.abs(torque[:, one.joint]) > 3 * noise[one.joint])
        assert np.all(torque[clear, one.joint] * one.sign > 0)
    assert covered.max() == 1
    np.testing.assert_array_equal(covered > 0, found.sample_sure)
    plain = found.to_dict()
    assert len(plain["confident"]) == 6
    assert plain["sure"][0]["joint"] == 1
    assert set(plain["sure"][0]) == {"joint", "run", "t0", "t1", "sign"}


def test_a_joint_drowned_by_noise_stays_nominal():
    done = compare("panda", 1.0, 2)
    assert done.unsigned < 1.15 * done.signed
    assert done.unflagged == 0
    assert done.flagged > 0
