"""Signs under physical constraints: exact, and right where the unconstrained cost is wrong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.sign_instances import instance, segment_truth

from taufit.estimators import is_consistent
from taufit.signs.constrained_signs import ConsistentCost, search_constrained_signs
from taufit.signs.data import prepare_search
from taufit.signs.rounds import search_rounds
from taufit.signs.search import search_signs
from taufit.signs.unknown_signs import find_signs


def test_search_finds_the_cheapest_under_any_extra_cost():
    rng = np.random.default_rng(0)
    for size in (3, 6, 9):
        rows = rng.normal(size=(size + 2, size))
        quadratic = rows.T @ rows
        table = np.array(list(itertools.product([-1, 1], repeat=size)))
        extra = dict(
            zip(map(tuple, table.tolist()), rng.exponential(10.0, len(table)), strict=True)
        )

        def cost(signs, quadratic=quadratic, extra=extra):
            return float(signs @ quadratic @ signs) + extra[tuple(signs.tolist())]

        found = search_constrained_signs(quadratic, cost, maximum_solved=10_000)

        every = [cost(signs) for signs in table]
        assert found.certified
        assert found.cost == pytest.approx(min(every), rel=1e-9)
        assert found.solved <= len(table)


def test_search_that_runs_out_of_solves_says_so():
    quadratic = np.eye(12)
    found = search_constrained_signs(
        quadratic, lambda s: 12.0 + float(np.sum(s < 0)), maximum_solved=3
    )
    assert found.solved == 3
    assert found.certified == (found.cost == 12.0)


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (0, {"noise": 0.2, "friction": True, "amplitude": 0.25}),
        (11, {"noise": 0.1, "seconds": 2.0, "amplitude": 0.3}),
    ],
)
def test_physics_decides_what_least_squares_gets_wrong(seed, settings):
    """Small motions: the best-fitting signs belong to an arm that cannot exist."""
    case = instance(seed, **settings)

    found = find_signs(case.model, case.samples, constrained=True, rounds=1)

    truth = segment_truth(case, found.segments)
    assert found.certified
    np.testing.assert_array_equal(found.signs, truth)

    # The same segments without the constraint: a cheaper vector, and a wrong one.
    data = prepare_search(case.model, case.samples)
    plain = search_rounds(data, 1, 1_000_000)
    unconstrained = search_signs(plain.form.quadratic)
    mistakes = np.sum(unconstrained.signs != truth)
    assert min(mistakes, len(truth) - mistakes) >= 5
    assert unconstrained.cost <= truth @ plain.form.quadratic @ truth + 1e-6


def test_constrained_cost_is_never_below_the_plain_one():
    case = instance(0, noise=0.1, friction=True, seconds=5.0)
    s = case.samples
    rng = np.random.default_rng(0)
    rows = case.model.regressor(s.position, s.velocity, s.acceleration)
    label = np.repeat(np.arange(6), len(s))
    stacked = rows.transpose(1, 0, 2).reshape(-1, rows.shape[-1])
    values = s.torque.T.ravel()
    cost = ConsistentCost(case.model, stacked, values, label, 6)
    for _ in range(3):
        signs = rng.choice([-1, 1], 6)
        target = values * signs[label]
        theta, *_ = np.linalg.lstsq(stacked, target, rcond=1e-10)
        plain = np.sum((stacked @ theta - target) ** 2)
        assert cost(signs) >= plain * (1.0 - 1e-6)
        assert is_consistent(case.model, cost.parameters(signs))
