"""What a fit leaves over: noise told from what comes back at the same place."""

from dataclasses import replace

import numpy as np
import pytest

from taufit.model import Residuals
from taufit.regression.residual_structure import EXTRAS, residual_structure
from taufit.signals.noise import is_velocity_too_noisy, noise_std
from taufit.sim import read_preset
from taufit.workflow import identify

WHITE = np.array([3.12, 3.89, 2.88, 1.7, 1.035, 0.95])


@pytest.fixture(scope="module")
def found():
    preset = read_preset("ur10-paper")
    effects = preset.twin.effects
    twin = replace(preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=3.0)))
    return identify(twin.robot, [twin.run(preset.motion(periods=6), seed=4).recording])


def test_the_noise_is_that_of_the_drives_although_ripple_is_as_large(found):
    density = found.model.training.residuals.noise_density

    np.testing.assert_allclose(np.sqrt(125.0 * density), WHITE, rtol=0.25)


def test_base_parameters_and_extras_are_told_together(found):
    structure = found.model.training.residuals.structure
    own = structure.names[-6 * len(EXTRAS) :][: len(EXTRAS)]

    assert own == tuple(f"joint_1.{e}" for e in EXTRAS)
    assert len(structure.mean) == len(structure.names)
    assert np.linalg.eigvalsh(structure.information).min() > 0.0


def test_a_motion_played_more_often_does_not_make_its_structure_known_better():
    """Noise averages over periods; ripple that is mistaken for inertia does not."""
    preset = read_preset("ur10-paper")
    effects = preset.twin.effects
    effects = replace(effects, ripple=replace(effects.ripple, arm=3.0)).without("sensing")
    twin = replace(preset.twin, effects=effects)
    stds = []
    for periods in (3, 6):
        one = identify(twin.robot, [twin.run(preset.motion(periods=periods), seed=4).recording])
        structure = one.model.training.residuals.structure
        covariance = np.linalg.inv(structure.information)
        links = [i for i, n in enumerate(structure.names) if n.startswith("link_")]
        stds.append(np.sqrt(np.diag(covariance)[links]))

    # Were it noise, twice as many periods would take off 30 %.
    assert np.median(stds[1] / stds[0]) > 0.8


def test_a_model_without_base_parameters_has_noise_only(found):
    bare = found.model.with_training(replace(found.model.training, base=None))

    left = replace(bare.training, residuals=Residuals())
    bare = bare.with_training(left)
    told = residual_structure(bare, found.samples)

    assert told.structure is None
    assert np.all(told.noise_density > 0.0)


def test_a_velocity_far_noisier_than_position_is_not_taken_as_measured():
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 10.0, 0.008)
    q = np.sin(t)[:, None] + 1.5e-5 * rng.standard_normal((len(t), 2))
    v = np.cos(t)[:, None] + np.array([4e-3, 4e-4]) * rng.standard_normal((len(t), 2))

    np.testing.assert_array_equal(is_velocity_too_noisy(noise_std(v), noise_std(q)), [True, False])
