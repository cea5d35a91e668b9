"""Engines: the same results in the same order, wherever the work is done."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
from hypothesis import given, strategies as st

from taufit.core.compute.engines import open_engine, tree
from taufit.core.compute.engines.engine import FAN, sum_along_tree


def power(a, b):
    return a**b


def part(k):
    return np.random.default_rng(k).normal(size=5)


@pytest.mark.parametrize("processes", [1, 2])
def test_map_keeps_the_order_and_reduce_the_digits(processes):
    with open_engine(processes) as engine:
        assert list(engine.map(power, ((k, 2) for k in range(20)))) == [k**2 for k in range(20)]
        things = [(k,) for k in range(30)]
        total = engine.reduce(part, things, operator.add, list(range(30)))

    with open_engine() as engine:
        order = np.random.default_rng(0).permutation(30).tolist()
        again = engine.reduce(part, [things[k] for k in order], operator.add, order)
    np.testing.assert_array_equal(total, again)


def test_map_of_one_process_asks_for_one_thing_at_a_time():
    engine = open_engine(1)
    endless = ((k, 1) for k in itertools.count())
    assert next(engine.map(power, endless)) == 0
    engine.close()


@given(st.sets(st.integers(0, 2**40), min_size=1, max_size=300))
def test_every_leaf_is_in_the_tree_once(keys):
    keys = sorted(keys)
    node = tree(keys)

    assert sorted(node.all_leaves()) == list(range(len(keys)))
    assert sum_along_tree(node, iter([1] * len(keys)), operator.add) == len(keys)


@given(st.sets(st.integers(0, 2**40), min_size=2, max_size=300))
def test_one_more_leaf_changes_only_the_sums_above_it(keys):
    *old, new = sorted(keys)

    def sets(node, names):
        yield frozenset(names[k] for k in node.all_leaves())
        for child in node.children:
            yield from sets(child, names)

    before, after = set(sets(tree(old), old)), set(sets(tree([*old, new]), [*old, new]))
    fresh = after - before
    assert all(new in one or len(one) <= FAN for one in fresh)
    assert sum(new in one for one in after) < 12
