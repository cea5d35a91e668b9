"""The entropic estimate is the minimum of its function, however light the prior is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.simulated_samples import simulated

from taufit.estimators import ConsistentSdp
from taufit.estimators.constraints import make_constraints
from taufit.estimators.entropic import entropic_least_squares, prior_links
from taufit.estimators.estimator import noise_level
from taufit.fitting import fit_samples as fit_samples
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.robot.inertia import pseudo_inertia
from taufit.terms.friction import Linear
from taufit.workflow import identify


class Asked(Exception):
    """Carries what an estimator was asked."""


class Ask:
    """An estimator that hands back its question."""

    weighting = "joint"

    def solve(self, information, problem):
        raise Asked(information, problem)


def question(payload, noise):
    """Information and problem of an arm that carries `payload` kg, unknown to its description."""
    model, _, _, samples = simulated(Linear(), n=1500, noise=noise)
    box = np.zeros(10)
    centre = payload * np.array([0.03, 0.1, 0.08])
    box[:4] = payload, *centre
    spread = np.diag([0.002, 0.003, 0.004]) * payload
    moments = spread + np.outer(centre, centre) / payload
    inertia = np.trace(moments) * np.eye(3) - moments
    box[4:] = inertia[0, 0], inertia[0, 1], inertia[1, 1], *inertia[2]
    last = slice(10 * model.robot.joints - 10, 10 * model.robot.joints)
    torque = samples.torque + (
        model.regressor(samples.position, samples.velocity, samples.acceleration)[..., last] @ box
    )
    samples = replace(samples, torque=torque)
    with pytest.raises(Asked) as asked:
        fit_samples(model, samples, Ask())
    return model, samples, *asked.value.args


@pytest.mark.parametrize("noise", [1e-3, 0.02])
@pytest.mark.parametrize("weight", [1e-3, 0.05, 1.0, 100.0])
def test_a_light_prior_is_no_worse_than_none_by_its_own_measure(weight, noise):
    model, samples, information, problem = question(6.0, noise)
    limits = make_constraints(model, margin=1e-6)
    level = noise_level(information, problem)
    prior = np.linalg.inv(pseudo_inertia(prior_links(problem.model)[0]))
    joints = model.robot.joints

    def measure(theta):
        links = pseudo_inertia(theta[: 10 * joints].reshape(-1, 10))
        product = prior @ links
        _, logs = np.linalg.slogdet(product)
        divergence = np.trace(product, axis1=1, axis2=2) - logs - 4.0
        return information.cost(theta) / (2.0 * level**2) + weight * divergence.sum()

    theta, _ = entropic_least_squares(information, problem, limits, weight)
    rival = fit_samples(model, samples, ConsistentSdp()).values
    assert measure(theta) <= measure(rival) * (1.0 + 1e-9)

    # And no step towards other possible arms improves it.
    rng = np.random.default_rng(0)
    here = measure(theta)
    for _ in range(100):
        step = rng.normal(size=len(theta)) * np.maximum(np.abs(theta), 1e-3)
        step[10 * joints :] = np.where(theta[10 * joints :] > 1e-4, step[10 * joints :], 0.0)
        for size in (1e-2, 1e-4, 1e-6):
            other = theta + size * step
            blocks = np.linalg.eigvalsh(pseudo_inertia(other[: 10 * joints].reshape(-1, 10)))
            if np.all(blocks > 0) and np.all(limits.matrix @ other > limits.bound):
                assert measure(other) >= here * (1.0 - 1e-9)


def test_what_is_known_of_a_parameter_is_kept_and_not_made_zero():
    model, _, information, problem = question(1.0, 0.02)
    limits = make_constraints(model, margin=1e-6)
    at = model.layout.index("joint_2.coulomb")
    precision, expected = np.zeros(model.layout.size), np.zeros(model.layout.size)
    precision[at], expected[at] = 1e12, 4.0
    known, expects = tuple(precision.tolist()), tuple(expected.tolist())
    own = ConsistentSdp(prior_weight=1.0, precision=known, expected=expects)

    theta, _ = entropic_least_squares(
        information, problem, limits, 1.0, precision=precision, expected=expected
    )

    assert theta[at] == pytest.approx(4.0, abs=1e-3)
    assert own.solve(information, problem).values[at] == pytest.approx(4.0, abs=1e-3)


@pytest.mark.parametrize("prior_weight", [0.0, 1.0])
def test_friction_and_offset_stay_below_the_largest_drive_torque(prior_weight):
    model, _, information, problem = question(1.0, 0.02)
    levels = [model.layout.index(f"joint_{j + 1}.coulomb") for j in range(model.robot.joints)]
    offsets = [model.layout.index(f"joint_{j + 1}.offset") for j in range(model.robot.joints)]
    free = ConsistentSdp(prior_weight=prior_weight).solve(information, problem).values
    largest = np.full(model.robot.joints, np.inf)
    # Half of what the data show at one joint, more than they show at another.
    largest[1], largest[2] = 0.5 * free[levels[1]], 2.0 * free[levels[2]]

    limited = ConsistentSdp(prior_weight=prior_weight, drive_torque=tuple(largest.tolist()))
    values = limited.solve(information, problem).values

    assert free[levels[1]] > largest[1]
    assert values[levels[1]] == pytest.approx(largest[1], rel=1e-3)
    assert np.all(np.abs(values[offsets]) <= largest * (1.0 + 1e-6))
    assert values[levels[2]] > 0.9 * free[levels[2]]


def test_an_arm_far_from_its_description_is_found(data_dir):
    """A UR10e with 2.8 kg in its hand that nobody told: the prior is light, the data are many."""
    folder = data_dir / "ur10e"
    columns = Path(__file__).parents[2] / "examples" / "columns" / "ur10e_csv.yaml"
    path = folder / "identification_data" / "ur-20_01_31-load.csv.gz"
    done = identify(read_robot(folder / "ur10e.urdf"), [read_recording(path, column_map=columns)])
    assert done.consistent
    # As well as the empty arm; a search that stops on its way leaves 0.2.
    assert done.training_score.mean_nrmse < 0.045
    assert not [text for text in done.warnings if "no physically possible arm" in text]
