"""The consistent estimators: optimal, inside the cone, and clear about what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulated_samples import simulated

from taufit.core.errors import InfeasibleError
from taufit.estimators import (
    ConsistentSdp,
    EstimationProblem,
    Pbpr,
    Wls,
    is_consistent,
    smallest_eigenvalues,
)
from taufit.estimators.cone_least_squares import consistent_least_squares, rows_in_noise_units
from taufit.estimators.constraints import make_constraints
from taufit.fitting import fit_samples as fit_samples
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.robot.inertia import pseudo_inertia
from taufit.signals.samples import Samples
from taufit.terms.friction import FRICTION_MODELS, Linear


@pytest.fixture(scope="module")
def noisy():
    return simulated(Linear(), n=600, noise=1.5)


@pytest.fixture(scope="module")
def weighted(noisy):
    model, _, _, samples = noisy
    return fit_samples(model, samples, Wls())


def test_the_plain_fit_is_not_possible_and_the_consistent_one_is(noisy, weighted):
    model, _, _, samples = noisy
    assert smallest_eigenvalues(model, weighted.values).min() < -1e-3
    estimate = fit_samples(model, samples, ConsistentSdp())
    assert smallest_eigenvalues(model, estimate.values).min() >= -1e-9
    assert np.all(estimate.values[model.nonnegative] >= 0)
    assert is_consistent(model, estimate.values)


def assert_optimal(model, base, information):
    """The consistent estimate costs what an independent modelling layer's optimum costs."""
    import cvxpy

    problem = EstimationProblem(model, base)
    limits = make_constraints(model, margin=1e-6)
    ridge = 1e-4 * np.sqrt(information.count)
    factor, target, scale = rows_in_noise_units(information, problem, ridge)
    theta, told = consistent_least_squares(information, problem, limits, 1e-4)
    assert told == []

    u = cvxpy.Variable(len(scale))
    unit = pseudo_inertia(np.eye(10))
    conditions = []
    for k in range(model.robot.joints):
        own = sum(cvxpy.multiply(u[10 * k + i] * scale[10 * k + i], unit[i]) for i in range(10))
        conditions.append(own - 1e-6 * np.eye(4) >> 0)
    signs = np.flatnonzero(model.nonnegative)
    conditions.append(u[signs] >= 0)
    objective = cvxpy.Minimize(cvxpy.sum_squares(factor @ u - target))
    reference = cvxpy.Problem(objective, conditions)
    reference.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
    own = float(np.sum((factor @ (theta / scale) - target) ** 2))
    assert own > 1.0
    np.testing.assert_allclose(own, reference.value, rtol=1e-6)
    # The same holds for the cost as users see it, noise included.
    np.testing.assert_allclose(
        information.cost(theta), information.cost(np.asarray(u.value) * scale), rtol=1e-6
    )
    assert smallest_eigenvalues(model, theta).min() >= -1e-9


def test_the_optimum_is_that_of_an_independent_modelling_layer(noisy, weighted):
    assert_optimal(noisy[0], weighted.base, weighted.information)


# The reference may end at its reduced accuracy and say so; agreement to 1e-6 is what counts.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", ["ur10e", "panda"])
def test_the_optimum_of_bundled_arms_too(name):
    model = TorqueModel(read_robot(name))
    joints = model.robot.joints
    rng = np.random.default_rng(5)
    q, v, a = rng.normal(size=(3, 400, joints))
    theta = model.nominal
    theta[10 * joints :] = rng.uniform(0.1, 1.0, len(theta) - 10 * joints)
    clean = model.with_values(theta).torque(q, v, a)
    torque = clean + np.std(clean, axis=0) * rng.normal(size=clean.shape)
    estimate = fit_samples(model, Samples.from_arrays(q, v, a, torque, rate_hz=100.0), Wls())
    assert_optimal(model, estimate.base, estimate.information)


def test_bounds_hold_and_contradictions_are_named(noisy):
    model, _, _, samples = noisy
    bounded = ConsistentSdp(
        mass={"link_2": (4.5, 5.0)},
        centre={"link_3": ((-0.01, 0.01), (-0.01, 0.01), (-0.01, 0.01))},
        ellipsoid={"link_4": ((0.0, 0.0, 0.0), (0.02, 0.02, 0.02))},
        total_mass=(12.0, 14.0),
    )
    for estimator in (bounded, ConsistentSdp(**{**settings_of(bounded), "prior_weight": 1.0})):
        values = fit_samples(model, samples, estimator).values
        links = values[:40].reshape(4, 10)
        assert 4.5 - 1e-6 <= links[1, 0] <= 5.0 + 1e-6
        assert np.all(np.abs(links[2, 1:4]) <= 0.01 * links[2, 0] + 1e-6)
        assert np.linalg.norm(links[3, 1:4]) <= 0.02 * links[3, 0] + 1e-6
        assert 12.0 - 1e-5 <= links[:, 0].sum() <= 14.0 + 1e-5
    with pytest.raises(InfeasibleError, match="from 5 to 4"):
        fit_samples(model, samples, ConsistentSdp(mass={"link_2": (5.0, 4.0)}))
    with pytest.raises(InfeasibleError, match="no physically possible arm"):
        both = ConsistentSdp(mass={"link_2": (5.0, 6.0)}, total_mass=(1.0, 2.0))
        fit_samples(model, samples, both)
    with pytest.raises(InfeasibleError, match=r"not a link of test arm: link_1"):
        fit_samples(model, samples, ConsistentSdp(mass={"gripper": (0.0, 1.0)}))


def settings_of(estimator):
    from dataclasses import fields

    return {f.name: getattr(estimator, f.name) for f in fields(estimator)}


def test_a_strong_prior_is_the_nominal_arm_and_a_weak_one_the_data(noisy):
    model, _, _, samples = noisy
    strong = fit_samples(model, samples, ConsistentSdp(prior_weight=1e9)).values
    np.testing.assert_allclose(strong[:40], model.nominal[:40], rtol=1e-3, atol=1e-4)
    weak = fit_samples(model, samples, ConsistentSdp(prior_weight=1e-4))
    plain = fit_samples(model, samples, ConsistentSdp())
    assert weak.information.cost(weak.values) < plain.information.cost(plain.values) * 1.01


def test_the_prior_weight_comes_from_cross_validation(noisy):
    model, theta, _, samples = noisy
    estimate = fit_samples(model, samples, ConsistentSdp(prior_weight="cross_validated"))
    # The prior is the truth here, so much of it is right.
    assert estimate.settings["prior_weight"] > 1.0
    plain = fit_samples(model, samples, Wls())
    error = np.abs(estimate.base_values - estimate.base.mapping @ theta)
    assert np.linalg.norm(error) < np.linalg.norm(plain.base_values - plain.base.mapping @ theta)


def test_penalty_retrieval_reaches_the_convex_optimum(noisy):
    model, _, _, samples = noisy
    sdp = fit_samples(model, samples, ConsistentSdp())
    penalty = fit_samples(model, samples, Pbpr())
    cost = sdp.information.cost
    assert cost(penalty.values) <= 1.01 * cost(sdp.values)
    phi1 = fit_samples(model, samples, Pbpr(objective="phi1"))
    assert is_consistent(model, phi1.values)


def test_penalty_retrieval_meets_a_constraint_that_is_not_convex(noisy):
    model, _, _, samples = noisy
    names = list(model.names)
    first, second = (names.index(f"joint_{i}.coulomb") for i in (1, 2))
    free = fit_samples(model, samples, Pbpr())
    gap = abs(free.values[first] - free.values[second]) + 0.2

    def apart(p):
        return (p["joint_1.coulomb"] - p["joint_2.coulomb"]) ** 2 - gap**2

    def conditional(p):
        return 1.0 if p["link_4.m"] < 1.5 else 1.5 - p["link_4.m"]

    held = fit_samples(model, samples, Pbpr(constraints=(apart, conditional)))
    assert abs(held.values[first] - held.values[second]) >= gap - 1e-5
    assert is_consistent(model, held.values)
    assert held.information.cost(held.values) < 1.2 * free.information.cost(free.values)
    # Neither side of the gap may be better: both convex halves, solved exactly, cost as much.
    sides = []
    for sign in (1, -1):
        rule = lambda p, s=sign: s * (p["joint_1.coulomb"] - p["joint_2.coulomb"]) - gap  # noqa: E731
        side = fit_samples(model, samples, Pbpr(constraints=(rule, conditional)))
        sides.append(side.information.cost(side.values))
    assert held.information.cost(held.values) <= min(sides) * 1.001


def test_penalty_retrieval_refuses_what_cannot_be(noisy):
    model, _, _, samples = noisy
    with pytest.raises(InfeasibleError, match="nothing lies in between"):
        fit_samples(model, samples, Pbpr(boxes={"link_2.m": (3.0, 1.0)}))
    with pytest.raises(InfeasibleError, match=r"no parameter 'link_9\.m'"):
        fit_samples(model, samples, Pbpr(boxes={"link_9.m": (1.0, 3.0)}))
    with pytest.raises(InfeasibleError, match="not finite"):
        fit_samples(model, samples, Pbpr(constraints=(lambda p: float("nan"),)))
    with pytest.raises(InfeasibleError, match="cannot be met"):
        fit_samples(model, samples, Pbpr(constraints=(lambda p: -1.0 - p["link_1.m"] ** 2,)))


def test_a_robot_nobody_described_still_gets_a_consistent_model():
    from dataclasses import replace

    model, _, _, samples = simulated(FRICTION_MODELS["linear"](), n=600, noise=0.2)
    unknown = replace(model, robot=model.robot.with_parameters(np.zeros(40)))
    for weight in (0.0, 1.0):
        estimate = fit_samples(unknown, samples, ConsistentSdp(prior_weight=weight))
        assert is_consistent(unknown, estimate.values)
    assert "the prior is a guess" in estimate.warnings[0]
