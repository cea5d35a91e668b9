"""Gains of the drives: read from a controller, printed, and found with a known mass."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from taufit.calibration.known_mass import METHODS, identify_gains
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.dynamics import regressor
from taufit.robot import pseudo_inertia
from taufit.signals import (
    KNOWN_GAINS,
    condition,
    controller_gains,
    known_gains,
)

GAINS = np.array([12.0, 12.0, 10.0, 11.0, 11.0, 11.0])


def _with_targets(truth, *, digits=6, friction=2.0):
    """A recording whose controller states its moment, and a current with a friction term."""
    recording = truth.recorded()
    time = recording.time - 100.0
    _, v, _ = truth.motion(time)
    moment = truth.torque(time) - truth.coulomb * np.tanh(v / 0.005) - 3.0 * v
    current = moment / GAINS + friction / GAINS * (np.tanh(v / 1e-4) + 0.5 * v)
    return replace(
        recording,
        signal=recording.signal / GAINS,
        signal_unit="A",
        target_torque=np.round(moment, digits),
        target_current=np.round(current, digits),
    )


def test_the_controllers_ratio_at_standstill_is_the_gain(truth):
    gains = controller_gains(_with_targets(truth))
    np.testing.assert_allclose(gains.value[1:5], GAINS[1:5], rtol=1e-5)
    assert all("standstill" in gains.source[j] for j in range(1, 5))


def test_a_joint_without_load_at_rest_takes_the_gain_of_its_twin(truth):
    gains = controller_gains(_with_targets(truth))
    # A vertical first axis and a light last joint carry nothing while they stand.
    assert [f.joint for f in gains.findings] == [1, 6]
    assert all("not measurable" in f.message and "assumed" in f.action for f in gains.findings)
    np.testing.assert_allclose(gains.value[[0, 5]], GAINS[[0, 5]], rtol=1e-4)
    assert np.all(gains.std[[0, 5]] > gains.std[[1, 4]])


def test_rounded_logs_widen_the_uncertainty(truth):
    fine, coarse = (controller_gains(_with_targets(truth, digits=d)) for d in (6, 2))
    assert np.all(np.abs(coarse.value - GAINS) < 3 * coarse.std)
    assert np.all(coarse.std[1:5] > fine.std[1:5])


def test_pooled_recordings_show_more_than_one(make_truth):
    recordings = [_with_targets(make_truth(seed=k), digits=3) for k in range(3)]
    pooled = controller_gains(recordings)
    alone = [controller_gains(recording) for recording in recordings]
    assert np.all(np.abs(pooled.value[1:5] / GAINS[1:5] - 1) < 0.01)
    worst = np.max([np.abs(gains.value - GAINS)[1:5] for gains in alone], axis=0)
    assert np.all(np.abs(pooled.value - GAINS)[1:5] <= worst)


def test_recordings_without_targets_take_the_gains_of_those_with_them(make_truth):
    with_targets = _with_targets(make_truth(seed=0))
    without = replace(_with_targets(make_truth(seed=1)), target_current=None, target_torque=None)
    samples = condition([with_targets, without])
    expected = condition(make_truth(seed=1).recorded())
    rows = samples.run_slices()[1]
    np.testing.assert_allclose(samples.torque[rows], expected.torque, rtol=1e-3, atol=1e-3)
    assert samples.gain_std is not None and np.all(samples.gain_std > 0)
    with pytest.raises(RecordingError, match="Give the gains in the column map"):
        condition(without)


def test_known_sets_are_the_papers_tables(reference_dir):
    ur10 = json.loads((reference_dir / "ur10_online_payload.json").read_text())
    np.testing.assert_allclose(
        known_gains("ur10_xu2024").value, ur10["joint_drive_gains_Nm_per_A"]["K"]
    )
    small = json.loads((reference_dir / "ur3_ur5_temperature_mounting.json").read_text())
    for arm in ("UR3", "UR5"):
        expected = small["gear_ratio"] * np.array(small["torque_constants_Nm_per_A"][arm])
        np.testing.assert_allclose(known_gains(f"{arm.lower()}_raviola2021").value, expected)
    with pytest.raises(RecordingError, match="ur10_xu2024"):
        known_gains("ur7")


def test_known_sets_carry_an_uncertainty():
    for gains in KNOWN_GAINS.values():
        assert np.all(gains.std > 0) and len(gains.source) == len(gains.value)


@pytest.fixture(scope="module")
def weighed(ur10, make_truth):
    """Currents with and without a known body, filtered columns, and the body."""
    return _weigh(make_truth(seed=3, duration=34.0), ur10)


def _weigh(truth, robot, *, noise=0.02):
    rng = np.random.default_rng(7)
    time = np.arange(2.2, 31.8, 0.02)
    q, v, a = truth.motion(time)
    body = np.array([3.0, 0.09, -0.06, 0.15, 0.02, 0.001, 0.02, -0.002, 0.001, 0.015])
    assert np.linalg.eigvalsh(pseudo_inertia(body)).min() > 0
    rigid = regressor(robot, q, v, a)
    joints = np.zeros((len(time), 6, 18))
    for j in range(6):
        joints[:, j, 3 * j : 3 * j + 3] = np.stack(
            [np.tanh(v[:, j] / 0.005), v[:, j], np.ones(len(v))], axis=1
        )
    columns = np.concatenate([rigid, joints], axis=2)
    bare = truth.torque(time)
    loaded = bare + rigid[:, :, 50:] @ body
    currents = [t / GAINS + noise * rng.normal(size=t.shape) for t in (bare, loaded)]
    return currents[0], columns, currents[1], columns, rigid[:, :, 50:], body[0]


@pytest.mark.parametrize("method", ["total_least_squares", "constrained"])
def test_a_known_mass_shows_every_gain(weighed, method):
    gains = identify_gains(*weighed, method=method)
    assert np.all(np.abs(gains.value - GAINS) < 4 * gains.std)
    # Joints 2 to 5 carry the mass; 1 and 6 only feel its inertia.
    np.testing.assert_allclose(gains.value[1:5], GAINS[1:5], rtol=0.03)


def test_least_squares_shrinks_the_gains_and_total_least_squares_does_not(weighed):
    plain = identify_gains(*weighed, method="least_squares").value / GAINS
    total = identify_gains(*weighed).value / GAINS
    assert np.all(plain < total)
    assert plain.min() < 0.9
    assert abs(np.mean(total) - 1.0) < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_every_method_is_exact(ur10, make_truth, method):
    clean = _weigh(make_truth(seed=3, duration=34.0), ur10, noise=1e-9)
    np.testing.assert_allclose(identify_gains(*clean, method=method).value, GAINS, rtol=1e-4)


def test_an_uncertain_mass_makes_uncertain_gains(weighed):
    exact, loose = identify_gains(*weighed), identify_gains(*weighed, mass_std=0.3)
    np.testing.assert_allclose(loose.std**2, exact.std**2 + (0.1 * exact.value) ** 2)


def test_nonsense_masses_and_unseen_payloads_are_refused(weighed):
    bare, columns, loaded, _, body, _ = weighed
    with pytest.raises(RecordingError, match="positive"):
        identify_gains(bare, columns, loaded, columns, body, -1.0)
    with pytest.raises(RecordingError, match="total_least_squares"):
        identify_gains(bare, columns, loaded, columns, body, 3.0, method="magic")
    with pytest.raises(PoorExcitationError):
        identify_gains(bare, columns, loaded, columns, 0 * body, 3.0)
