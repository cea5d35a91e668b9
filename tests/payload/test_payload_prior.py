"""What is believed before a payload run: of the arm, its drives, its friction, its templates."""

from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.payload import PayloadFilter, PayloadSettings, identify_payload, stream
from taufit.payload.filter.nuisance_model import base_parameter_prior, nuisance_model
from taufit.payload.template import Template
from taufit.sim.random_motion import random_fourier

MASS = 3.5256
KNOWN = PayloadSettings(gain_std=0.001, gain_common=1e-4)


@pytest.fixture(scope="module")
def empties(arm):
    preset, twin = arm
    motion = preset.motion(periods=1)
    return [twin.run(motion, seed=40 + k).recording for k in range(4)]


def test_the_prior_of_a_fitted_model_is_an_information_with_the_joints_apart(model):
    u = nuisance_model(model, PayloadSettings())

    values = np.linalg.eigvalsh(u.prior[10:, 10:])
    assert values.min() > 0.0
    own = [rows[rows >= u.shared] for rows in u.rows]
    assert sorted(np.concatenate(own)) == list(range(u.shared, len(u)))
    for a in range(6):
        for b in range(a):
            size = np.sqrt(np.outer(np.diag(u.prior)[own[a]], np.diag(u.prior)[own[b]]))
            assert np.abs(u.prior[np.ix_(own[a], own[b])] / size).max() < 1e-8


def test_loosening_friction_is_adding_its_variance_to_the_covariance(model):
    tight = nuisance_model(model, replace(PayloadSettings(), friction_change=1e-9))
    loose = nuisance_model(model, replace(PayloadSettings(), friction_change=0.2))
    k = tight.names.index("joint_2.viscous")
    both = [np.linalg.inv(u.prior[10:, 10:]) for u in (tight, loose)]

    added = np.diag(both[1] - both[0])

    own = np.array([not n.startswith("link_") for n in tight.names[10:]])
    # Links are as they were; what belongs to a joint has gained, and nothing has lost.
    np.testing.assert_allclose(added[~own], 0.0, atol=1e-6 * np.diag(both[0])[~own].max())
    assert added[k - 10] >= (0.2 * model.values[list(model.names).index("joint_2.viscous")]) ** 2
    assert added.min() > -1e-9


def test_a_model_file_without_structure_still_gives_a_prior(model):
    residuals = replace(model.training.residuals, structure=None)
    old = model.with_training(replace(model.training, residuals=residuals))

    base, spread_of_base, mean, known = base_parameter_prior(old)

    assert known and spread_of_base.information is None
    assert (
        len(spread_of_base.covariance)
        == len(mean)
        == len(base)
        + 6
        * len(
            [n for n in nuisance_model(old, KNOWN).names if n.startswith("joint_1.cos_")]
            + [n for n in nuisance_model(old, KNOWN).names if n.startswith("joint_1.sin_")]
            + [n for n in nuisance_model(old, KNOWN).names if n.startswith("joint_1.below_")]
            + ["joint_1.load"]
        )
    )


def test_drives_of_one_type_err_together(model, loaded):
    """The same disagreement of three like drives is one surprise, not three."""
    like = np.array([14.0, 13.0, 12.0, 11.5, 11.5, 11.5])
    unlike = np.array([14.0, 13.0, 12.0, 11.5, 11.2, 10.9])
    wrong = np.array([1.0, 1.0, 1.0, 1.06, 1.06, 1.06])
    masses = []
    for gain in (like, unlike):
        conditioning = replace(model.training.conditioning, gain=gain)
        one = model.with_training(replace(model.training, conditioning=conditioning))
        live = PayloadFilter(one, PayloadSettings(gain_std=0.02, gain_common=0.01))
        source = stream(model, loaded)
        source = replace(source, torque=source.torque * wrong)
        for k, sample in enumerate(source.samples()):
            live.update(*sample)
            if k % 50 == 49:
                live.estimate()
        live.flush()
        masses.append(abs(live.estimate().mass / MASS - 1.0))

    assert masses[0] < masses[1]


def test_several_templates_are_averaged_and_say_how_large_the_noise_is(model, loaded, empties):
    wide, narrow = (
        identify_payload(model, loaded, settings=KNOWN, template=runs).estimate
        for runs in (empties[:1], empties)
    )

    for found in (wide, narrow):
        assert found.ready
        assert found.mass_interval[0] < MASS < found.mass_interval[1]
    assert narrow.mass_std < 0.9 * wide.mass_std
    live = PayloadFilter(model, KNOWN)
    Template(model, [stream(model, one) for one in empties], live)
    # White noise of the twin, and a quarter of it from the average of four.
    white = np.array([3.12, 3.89, 2.88, 1.7, 1.035, 0.95])
    np.testing.assert_allclose(np.sqrt(live.unknowns.density * 125.0 / 1.25), white, rtol=0.4)


def test_a_template_of_another_motion_among_several_is_refused(arm, model, loaded, empties):
    _, twin = arm
    other = twin.run(random_fourier(twin.robot, seed=3, frequency_hz=0.1), seed=9).recording

    with pytest.raises(RecordingError, match="another motion"):
        identify_payload(model, loaded, template=[empties[0], other])


def test_a_motion_outside_the_training_is_told_and_doubted(arm, model):
    preset, twin = arm
    away = np.array([0.0, -0.4, 0.9, -1.2, -1.0, 0.0])
    motion = random_fourier(twin.robot, seed=5, centre=away, frequency_hz=0.1)
    run = twin.run(motion, seed=12, payload=preset.payload).recording

    done = identify_payload(model, run, settings=KNOWN)

    low, high = done.estimate.mass_interval
    assert low < MASS < high
    if done.estimate.ready:
        assert any("within the poses and speeds" in text for text in done.warnings)
