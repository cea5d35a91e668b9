"""Ripple outside the trained range: the angle is held at the edge of the range, in every form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.simulated_samples import simulated

import taufit
from taufit.core.errors import TaufitError
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting import fit, fitted_model
from taufit.robot import Drives
from taufit.terms import CONSERVATIVE, Ripple, TermInput, sum_of
from taufit.terms.friction import Linear, Presliding

ORDERS = (1.0, 5.0)


@pytest.fixture(scope="module")
def fitted():
    model, _, _, samples = simulated(Presliding(), seed=3, noise=0.05)
    model = replace(model, terms=(Ripple(ORDERS),))
    waves = 0.6 * np.sin(5.0 * samples.position[:, 3:] + 0.4) * np.eye(4)[3]
    samples = replace(samples, torque=samples.torque + waves)
    return fitted_model(model, fit(model, samples), samples), samples


def test_a_fitted_model_holds_the_angle_at_the_edge_of_the_trained_range(fitted):
    model, _ = fitted
    trained = model.training.ranges.position
    (ripple,) = model.terms
    assert ripple.lower == tuple(trained.low) and ripple.upper == tuple(trained.high)

    rest = np.zeros((1, 4))
    beyond, edge = np.tile(trained.middle, (2, 1))
    beyond[3], edge[3] = trained.high[3] + 0.4, trained.high[3]
    wave = model.structure.only(CONSERVATIVE)
    torque = {
        name: (wave.friction_columns(TermInput(rest, q[None])) @ model.values[model.layout.drive])
        for name, q in (("beyond", beyond), ("edge", edge))
    }
    np.testing.assert_allclose(torque["beyond"], torque["edge"], atol=1e-12)
    free = model.structure.unbounded().only(CONSERVATIVE)
    wild = free.friction_columns(TermInput(rest, beyond[None])) @ model.values[model.layout.drive]
    assert abs(wild[0, 3] - torque["edge"][0, 3]) > 0.05


def test_within_the_trained_range_nothing_changes(fitted):
    model, samples = fitted
    motion = samples.position, samples.velocity, samples.acceleration
    free = replace(model, structure=model.structure.unbounded())
    inside = samples.in_motion
    np.testing.assert_array_equal(
        model.torque(*motion, step=0.02)[inside], free.torque(*motion, step=0.02)[inside]
    )


def test_holding_the_angle_makes_no_wave_identifiable(fitted):
    """Outside the range a held wave differs from gravity, where no sample was."""
    model, _ = fitted
    held, free = (base_parameters(x) for x in (model.structure, model.structure.unbounded()))
    assert held.names == free.names
    np.testing.assert_array_equal(held.mapping, free.mapping)


def test_a_model_file_keeps_the_range(fitted, tmp_path):
    model, _ = fitted
    taufit.write_model(model, tmp_path / "model.json")
    assert taufit.read_model(tmp_path / "model.json").terms == model.terms


def test_coupled_motors_have_the_range_of_the_motor_angle():
    robot = taufit.read_robot("ur10")
    coupling = np.eye(6)
    coupling[5, 4] = -2.0
    robot = replace(robot, drives=replace(Drives.direct_drive(6), coupling=coupling))
    model = taufit.TorqueModel(robot, Linear(), terms=(Ripple(ORDERS),))
    low, high = np.full(6, -0.5), np.full(6, 1.0)

    (ripple,) = model.restrict_to_range(taufit.model.training_record.Range(low, high)).terms

    assert ripple.lower == (-0.5, -0.5, -0.5, -0.5, -0.5, -2.5)
    assert ripple.upper == (1.0, 1.0, 1.0, 1.0, 1.0, 2.0)


def test_a_range_is_given_for_every_joint():
    with pytest.raises(ValueError, match="lower and an upper end"):
        Ripple(ORDERS, (0.0,), ())
    with pytest.raises(ValueError, match="lower and an upper end"):
        Ripple(ORDERS, (1.0,), (0.0,))
    with pytest.raises(TaufitError, match="ask `of_joint`"):
        Ripple(ORDERS, (0.0, 0.0), (1.0, 1.0)).columns(
            TermInput(np.zeros(2), np.zeros(2)), np.empty(0)
        )
    assert sum_of(Ripple(ORDERS, (0.0, 1.0), (1.0, 2.0))).of_joint(1).lower == (1.0,)
