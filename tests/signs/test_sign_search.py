"""The sign search is exact: it agrees with trying everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taufit.signs import search as search

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=40)


def forms(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    rows = rng.normal(size=(rank, size))
    return rows.T @ rows


def every(size: int, anchor: int | None) -> np.ndarray:
    table = np.array(list(itertools.product([-1, 1], repeat=size)))
    return table if anchor is None else table[table[:, anchor] == 1]


def costs(quadratic: np.ndarray, table: np.ndarray) -> np.ndarray:
    return np.einsum("ki,ij,kj->k", table, quadratic, table)


@PROFILE
@given(
    seed=st.integers(0, 2**31),
    size=st.integers(1, 10),
    spare=st.integers(-4, 4),
    held=st.booleans(),
)
def test_search_finds_what_trying_everything_finds(seed, size, spare, held):
    rng = np.random.default_rng(seed)
    quadratic = forms(rng, size, max(1, size + spare))
    anchor = int(rng.integers(size)) if held else None

    found = search.search_signs(quadratic, anchor=anchor, radius=4.0)

    table = every(size, anchor)
    cost = costs(quadratic, table)
    assert found.certified
    # The search regularises Q by 1e-9 of its diagonal.
    assert found.cost <= cost.min() + 1e-7 * (1.0 + np.trace(quadratic))
    assert found.lower_bound <= found.cost
    assert anchor is None or found.signs[anchor] == 1


@PROFILE
@given(seed=st.integers(0, 2**31), size=st.integers(2, 9))
def test_margins_are_the_cost_of_reversing_a_sign(seed, size):
    rng = np.random.default_rng(seed)
    quadratic = forms(rng, size, size + 3)
    anchor = int(rng.integers(size))

    found = search.search_signs(quadratic, anchor=anchor, radius=15.0)

    table = every(size, anchor)
    cost = costs(quadratic, table)
    for i in range(size):
        if i == anchor:
            continue
        other = cost[table[:, i] != found.signs[i]].min() - found.cost
        if other < 14.9:
            # The regularisation by 1e-9 of the diagonal is all that sets the two apart.
            assert found.margins[i] == pytest.approx(other, abs=1e-6 * np.trace(quadratic))
        elif other > 15.1:
            assert np.isinf(found.margins[i])


@PROFILE
@given(seed=st.integers(0, 2**31), size=st.integers(2, 8), held=st.booleans())
def test_candidates_come_in_order_and_complete(seed, size, held):
    rng = np.random.default_rng(seed)
    quadratic = forms(rng, size, size + 2)
    anchor = 0 if held else None

    listed = [
        cost for cost, _ in search.sign_candidates(quadratic, anchor=anchor, first_radius=1.0)
    ]

    expected = np.sort(costs(quadratic, every(size, anchor)))
    np.testing.assert_allclose(listed, expected, atol=1e-7 * np.trace(quadratic))


def test_kernel_and_python_walk_the_same_tree(monkeypatch):
    if search._kernel is None:
        pytest.skip("this installation has no compiled kernel")
    rng = np.random.default_rng(3)
    for size, rank in ((3, 3), (12, 9), (25, 30)):
        quadratic = forms(rng, size, rank)
        compiled = search.search_signs(quadratic, radius=6.0)
        hard = search.search_signs(quadratic, radius=6.0, node_cap=20)
        with monkeypatch.context() as context:
            context.setattr(search, "_kernel", None)
            plain = search.search_signs(quadratic, radius=6.0)
            plain_hard = search.search_signs(quadratic, radius=6.0, node_cap=20)
        np.testing.assert_array_equal(compiled.signs, plain.signs)
        np.testing.assert_allclose(compiled.margins, plain.margins, rtol=1e-9)
        assert compiled.nodes == plain.nodes
        np.testing.assert_array_equal(hard.signs, plain_hard.signs)
        assert hard.lower_bound == pytest.approx(plain_hard.lower_bound, rel=1e-6)


def test_shifted_form_proves_what_the_plain_walk_could_not():
    """A large constant diagonal hides the optimum from partial costs; the shift takes it out."""
    rng = np.random.default_rng(0)
    size = 40
    truth = rng.choice([-1.0, 1.0], size)
    rows = rng.normal(size=(size, size))
    rows -= np.outer(rows @ truth, truth) / size
    # The diagonal costs every vector the same, which a partial cost does not know.
    quadratic = rows.T @ rows + 20.0 * np.eye(size)

    found = search.search_signs(quadratic, radius=1.0, node_cap=20_000)

    assert found.certified
    assert abs(truth @ found.signs) == size
    assert found.lower_bound <= found.cost
    shifted = search.factor_shifted(quadratic, 0)
    assert shifted.constant <= found.cost
    plain = search.triangle_of(quadratic, 0)
    fixed = np.zeros(size, np.int8)
    fixed[-1] = 1
    assert not search.sphere_decode(plain.factor, fixed, np.inf, 20_000)[3]


def test_a_search_that_is_stopped_says_so():
    quadratic = forms(np.random.default_rng(5), 40, 25)
    found = search.search_signs(quadratic, node_cap=50)
    assert not found.certified
    assert found.lower_bound < found.cost
    assert np.all(found.margins == 0.0)


def test_blocks_do_not_know_of_each_other():
    rng = np.random.default_rng(1)
    a, b = forms(rng, 4, 6), forms(rng, 3, 5)
    quadratic = np.zeros((7, 7))
    quadratic[:4, :4], quadratic[4:, 4:] = a, b

    found = search.search_signs(quadratic)

    assert len(set(found.block[:4])) == 1 and len(set(found.block[4:])) == 1
    assert found.block[0] != found.block[4]
    assert found.cost == pytest.approx(
        costs(a, every(4, None)).min() + costs(b, every(3, None)).min(), rel=1e-6
    )


def test_too_many_runners_up_are_settled_sign_by_sign():
    """Twenty signs that nothing decides among forty that are certain."""
    weights = np.concatenate([np.full(40, 100.0), np.full(20, 1e-6)])
    chain = np.ones((60, 60)) - 60 * np.eye(60)
    quadratic = np.diag(weights) - chain * np.sqrt(np.outer(weights, weights)) / 60.0

    found = search.search_signs(quadratic, radius=1.0)

    assert found.certified
    assert np.all(np.isfinite(found.margins[40:]))
    assert np.all(np.isinf(found.margins[:40]))
