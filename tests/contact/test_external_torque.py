"""External torque from the balance of momentum: zero where nothing pushes, J' F where something."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from taufit.contact import external_torque as module
from taufit.contact.external_torque import ExternalTorque
from taufit.dynamics import coriolis_torque, gravity_torque, jacobian, mass_matrix
from taufit.model import TorqueModel
from taufit.model.training_record import Range
from taufit.robot import read_robot
from taufit.sim import random_fourier
from taufit.terms.friction import Linear

STEP = 0.002


@pytest.fixture(scope="module")
def arm():
    """A model without any error, and cells of a smooth motion of it."""
    robot = read_robot("ur5e")
    structure = TorqueModel(robot, friction=Linear(), rotor_inertia=True, offset=True)
    layout = structure.layout
    values = np.zeros(layout.size)
    values[layout.links] = robot.parameters
    values[layout.block_slice("rotor")], values[layout.block_slice("offset")] = 0.5, 0.3
    values[layout.drive] = np.tile([4.0, 6.0], robot.joints)
    model = structure.with_values(values)
    motion = random_fourier(robot, seed=3)
    time = np.arange(0.2, 4.0, STEP)
    return model, time, *motion.at(time)


def cells_of(model, time, q, v, a, external=0.0):
    load = model.torque(q, v, a) - external
    return np.concatenate([q, v, load], axis=1)


def test_nothing_is_felt_where_nothing_pushes(arm):
    model, time, _q, v, _a = arm
    felt = ExternalTorque(model, 1.0 / STEP)(time, cells_of(*arm))
    moving = ~felt.standing & (np.sign(v[1:]) == np.sign(v[:-1]))
    # The balance over a step is exact to the square of the step; the torque is tens of N m.
    assert np.abs(felt.torque[moving]).max() < 2e-3


def test_the_sign_is_what_the_outside_does(arm):
    model, time, q, v, _a = arm
    # A mass of 1 kg hung on the flange pulls it down.
    weight = np.array([0.0, 0.0, -9.81])
    outside = np.einsum("nij,i->nj", jacobian(model.robot, q)[:, 3:], weight)
    felt = ExternalTorque(model, 1.0 / STEP)(time, cells_of(*arm, outside))
    expected = 0.5 * (outside[1:] + outside[:-1])
    moving = ~felt.standing & (np.sign(v[1:]) == np.sign(v[:-1]))
    np.testing.assert_allclose(felt.torque[moving], expected[moving], atol=3e-3)


def test_the_balance_of_momentum_is_kept_without_acceleration(arm):
    """p' - p = h (tau - friction - offset + C' v - g + tau_ext), C' from dM/dt = C + C'."""
    model, time, q, v, _a = arm
    outside = np.full_like(q, 2.0)
    cells = cells_of(*arm, outside)
    felt = ExternalTorque(model, 1.0 / STEP)(time, cells)
    robot = model.robot
    momentum = np.einsum("nij,nj->ni", mass_matrix(robot, q), v) + 0.5 * v
    eps = 1e-6
    rate = mass_matrix(robot, q + eps * v) - mass_matrix(robot, q - eps * v)
    turned = np.einsum("nij,nj->ni", rate, v) / (2 * eps) - coriolis_torque(robot, q, v)
    friction = 4.0 * np.sign(v) + 6.0 * v
    flow = cells[:, 12:18] - friction - 0.3 + turned - gravity_torque(robot, q)
    known = np.diff(momentum, axis=0) / STEP - 0.5 * (flow[1:] + flow[:-1])
    moving = ~felt.standing & (np.sign(v[1:]) == np.sign(v[:-1]))
    # Two ways to write one integral over a step: they differ by its square.
    np.testing.assert_allclose(felt.torque[moving], known[moving], atol=3e-3)


def test_the_observer_is_a_first_order_low_pass_of_the_balance(arm):
    model, time, _q, _v, _a = arm
    outside = np.where(time > 2.0, 5.0, 0.0)[:, None] * np.ones(6)
    sensed = ExternalTorque(model, 1.0 / STEP)
    felt = sensed(time, cells_of(*arm, outside))
    share = sensed.step_response
    lagging = felt.torque[0].copy()
    for torque, smooth in zip(felt.torque, felt.smooth, strict=True):
        lagging += share * (torque - lagging)
        np.testing.assert_allclose(smooth, lagging, atol=1e-9)


@pytest.mark.parametrize("cuts", [(1,), (2, 3, 700), (500, 501, 502)])
def test_a_stream_cut_anywhere_feels_the_same(arm, cuts):
    time, cells = arm[1], cells_of(*arm)
    whole = ExternalTorque(arm[0], 1.0 / STEP)(time, cells)
    sensed = ExternalTorque(arm[0], 1.0 / STEP)
    edges = [0, *cuts, len(time)]
    parts = [sensed(time[i:k], cells[i:k]) for i, k in itertools.pairwise(edges)]
    joined = type(whole).concatenate([part for part in parts if part is not None])
    for name in (
        "torque",
        "smooth",
        "acceleration_excess",
        "state",
        "observable",
        "regime_changed",
    ):
        np.testing.assert_allclose(
            getattr(joined, name).astype(float), getattr(whole, name).astype(float), atol=1e-9
        )


def test_noise_of_velocities_is_no_acceleration_beyond_the_training(arm, monkeypatch):
    monkeypatch.setattr(module, "_kernel", None)
    model, time, q, v, a = arm
    rng = np.random.default_rng(8)
    noise = np.full(model.robot.joints, 0.01)

    def jolts(velocity):
        most = np.abs(a).max(axis=0)
        sensed = ExternalTorque(model, 1.0 / STEP, velocity_noise=noise)
        sensed.max_acceleration[:], sensed._acceleration_bins[:] = (
            most,
            module._acceleration_bins(noise, STEP * most),
        )
        return sensed(time, cells_of(model, time, q, velocity, a)).max_excess

    noisy = jolts(v + noise * rng.normal(size=v.shape))
    # From cell to cell noise alone is three times the largest acceleration.
    assert noisy.max() < 1.0
    sudden = jolts(v + 0.5 * (time > 2.0)[:, None])
    assert sudden[time[1:] > 2.0][5] > 1.0
    assert np.all(sudden[time[1:] < 2.0] == 0.0)


def test_an_acceleration_beyond_the_training_is_that_of_its_joint(arm, monkeypatch):
    model, time, q, v, a = arm
    most = np.abs(a).max(axis=0)
    sudden = v.copy()
    sudden[time > 2.0, 1] += 0.5
    found = []
    for kernel in (module._kernel, None):
        monkeypatch.setattr(module, "_kernel", kernel)
        reach = replace(model.training.ranges, acceleration=Range(-most, most))
        record = replace(model.training, ranges=reach)
        sensed = ExternalTorque(replace(model, training=record), 1.0 / STEP)
        found.append(sensed(time, cells_of(model, time, q, sudden, a)).acceleration_excess)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    later = found[0][time[1:] > 2.0][:10]
    assert later[5, 1] > 1.0
    assert not np.delete(later, 1, axis=1).any()


def test_friction_of_another_day_is_followed_and_a_push_is_not(arm, monkeypatch):
    """Friction a quarter off is told from contact after a second; what a contact does is held."""
    model, _time, *_ = arm
    time = np.arange(0.0, 12.0, 0.01)
    q, v, a = random_fourier(model.robot, seed=3).at(time)
    values = np.array(model.values)
    values[model.layout.drive] *= 1.25
    cells = cells_of(model.structure.with_values(values), time, q, v, a)
    noise = 0.2 * np.ones(model.robot.joints)
    blocks = []
    for kernel in (module._kernel, None):
        monkeypatch.setattr(module, "_kernel", kernel)
        sensed = ExternalTorque(model, 100.0, noise_level=noise)
        parts = [sensed(time[:600], cells[:600]), sensed(time[600:], cells[600:])]
        blocks.append(type(parts[0]).concatenate(parts))
    for name in ("torque", "smooth", "drift", "drift_std"):
        np.testing.assert_allclose(*(getattr(block, name) for block in blocks), atol=1e-9)
    unfollowed = ExternalTorque(model, 100.0)(time, cells)
    fast = (unfollowed.state == 0) & (unfollowed.time > 3.0)[:, None]
    assert np.abs(unfollowed.torque[fast]).mean() > 1.5
    assert np.abs(blocks[0].torque[fast]).mean() < 0.1
    np.testing.assert_allclose(blocks[0].model_torque, unfollowed.model_torque, atol=1e-9)
    assert np.all(np.abs(blocks[0].smooth[fast]) < 4.0 * np.hypot(0.2, blocks[0].drift_std[fast]))
    # Held: 5 N m of a contact at every joint stay what they are.
    sensed = ExternalTorque(model, 100.0, noise_level=noise)
    sensed(time[:600], cells[:600])
    sensed.hold_drift(True)
    pushed = cells[600:] - np.concatenate([np.zeros(12), np.full(6, 5.0)])
    held = sensed(time[600:], pushed)
    assert np.abs(held.torque[held.state == 0].mean() - 5.0) < 0.2
