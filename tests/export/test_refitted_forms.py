"""Formats that hold less are fitted to the training data from the model file alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from simulated_samples import simulated
from taufit.estimators import ConsistentSdp
from taufit.export import EXPORTS
from taufit.export.export_accuracy import accuracy_on_samples, accuracy_on_training
from taufit.export.format_reduction import MJCF_TERMS, URDF_TERMS, reduce_to_format
from taufit.fitting import fit_samples
from taufit.model import read_model, write_model
from taufit.model.torque_model import TorqueModel
from taufit.regression.simple_terms import TrainingRegression, simple_terms, simulator_structure
from taufit.signals.sample_source import as_source
from taufit.terms import TermInput
from taufit.terms.friction import Stribeck
from taufit.validation.score import score


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A Stribeck arm with rotors and offsets, through a file, and what it was trained on."""
    structure, theta, shape, samples = simulated(Stribeck(), noise=0.02)
    model = replace(structure, shape=shape).with_values(theta)
    # Some rows of joint 2 are set aside, as outliers are.
    keep = np.array(samples.keep)
    keep[100:200, 1] = False
    samples = replace(samples, keep=keep)
    record = replace(
        model.training,
        simple_terms=simple_terms(model, as_source(samples)),
        score=score(model, samples),
    )
    path = tmp_path_factory.mktemp("model") / "model.json"
    write_model(model.with_training(record), path)
    return read_model(path), samples


def test_the_triangles_are_the_training_rows(trained):
    model, samples = trained
    structure = simulator_structure(model.robot)
    rows = TrainingRegression(model.training.simple_terms, structure)
    rng = np.random.default_rng(0)
    for _ in range(3):
        theta = structure.nominal + rng.normal(size=len(structure.names)) * 0.1
        direct = score(structure.with_values(theta), samples).rmse
        # Nine digits are written.
        np.testing.assert_allclose(rows.rmse(theta), direct, rtol=1e-6)


@pytest.mark.parametrize("name", ["urdf", "mjcf"])
def test_a_refitted_form_is_as_good_as_a_fit_of_its_terms_from_the_start(trained, name):
    model, samples = trained
    terms = {"urdf": URDF_TERMS, "mjcf": MJCF_TERMS}[name]
    form = reduce_to_format(model, terms)
    structure = TorqueModel(model.robot, terms.friction, terms.rotor_inertia, terms.offset)
    start = fit_samples(structure, samples, ConsistentSdp(prior_weight=1.0))
    floor = score(structure.with_values(start.values), samples).mean_nrmse
    own = accuracy_on_samples(model, EXPORTS[name], samples, "samples")
    assert form.refitted and any("static" in part and "N m rms" in part for part in form.dropped)
    assert own.mean_nrmse <= 1.03 * floor
    assert own.mean_nrmse > own.model_mean_nrmse
    told = accuracy_on_training(model, EXPORTS[name])
    np.testing.assert_allclose(told.nrmse, own.nrmse, rtol=1e-6)


def test_a_model_file_without_training_keeps_its_links(trained):
    model, _ = trained
    bare = model.with_training(replace(model.training, simple_terms=None))
    form = reduce_to_format(bare, URDF_TERMS)
    np.testing.assert_array_equal(form.model.robot.parameters, model.robot.parameters)
    assert form.rmse is None and accuracy_on_training(bare, EXPORTS["urdf"]) is None


def test_what_holds_everything_is_worth_the_model(trained):
    model, samples = trained
    told = accuracy_on_training(model, EXPORTS["json"])
    np.testing.assert_allclose(told.nrmse, model.training.score.nrmse, rtol=1e-12)
    own = accuracy_on_samples(model, EXPORTS["c"], samples, "samples")
    # Called with differences of the velocity at 50 Hz in the place of the acceleration.
    assert own.mean_nrmse <= 1.05 * own.model_mean_nrmse


def test_powers_of_speed_do_not_run_away_beyond_what_was_seen():
    """A format's cubic drag that was fitted to slow motion stays near the model's friction."""
    structure, theta, shape, samples = simulated(Stribeck(degree=1), noise=0.5, n=400)
    slow = np.abs(samples.velocity).max(axis=0)
    limits = replace(structure.robot.limits, velocity=6.0 * slow)
    structure = replace(structure, robot=replace(structure.robot, limits=limits), shape=shape)
    model = structure.with_values(theta)
    record = replace(model.training, simple_terms=simple_terms(model, as_source(samples)))
    model = model.with_training(record)
    form = reduce_to_format(model, MJCF_TERMS).model
    for j, own in enumerate(form.layout.split(form.values).drive):
        inputs = TermInput(np.array([-1.0, 1.0]) * limits.velocity[j], np.zeros(2), np.zeros(2))
        got = MJCF_TERMS.friction.columns(inputs, np.empty(0)) @ own
        true = model.layout.split(model.values).drive[j]
        want = model.friction_model.columns(inputs, model.joint_shape[j]) @ true
        assert np.all(np.abs(got - want) < 0.3 * np.abs(want)), (j, got, want)
