"""What a joint is doing, from its motion alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import taufit.terms.friction.states as module
from taufit.terms.friction.states import FAST, REST, SLOW, STANDING, TURNING, FrictionStates

RATE = 100.0


def walked(position, cuts=()):
    velocity = np.gradient(position, 1.0 / RATE, axis=0)
    states = FrictionStates(position.shape[1], 1.0 / RATE)
    edges = [0, *cuts, len(position)]
    rows = [states(position[a:b], velocity[a:b]) for a, b in itertools.pairwise(edges)]
    return [np.concatenate([getattr(row, name) for row in rows]) for name in rows[0]._fields]


def stroke(seconds, reach):
    """Rest to rest, smoothly."""
    s = np.linspace(0.0, 1.0, round(seconds * RATE))
    return reach * (10 * s**3 - 15 * s**4 + 6 * s**5)


@pytest.fixture
def motion():
    """Both stand; the first goes and comes back without a pause; both stand."""
    rest = np.zeros(100)
    there = stroke(2.0, 1.0)
    first = np.concatenate([rest, there, there[::-1], rest])
    return np.stack([first, np.zeros_like(first)], 1)


def test_an_arm_goes_through_its_states_in_order(motion):
    state, standing, _ = walked(motion)
    first = state[:, 0]
    assert first[50] == REST and state[50, 1] == REST
    assert first[200] == FAST and state[200, 1] == STANDING
    assert first[310] == TURNING
    assert first[-1] == REST and standing[-1].all()
    assert SLOW in first
    order = [int(x) for x in first[np.r_[True, np.diff(first) != 0]]]
    assert order[:2] == [REST, TURNING] or order[:3] == [REST, STANDING, TURNING]


def test_a_joint_that_starts_is_not_sure_and_those_that_stand_or_go_fast_are(motion):
    _, standing, sure = walked(motion)
    begins = int(np.argmin(standing[:, 0]))
    assert not sure[begins : begins + 8, 0].any()
    assert sure[begins : begins + 30, 1].all()
    assert sure[begins + 8 : 200, 0].all()


def test_a_pushed_joint_that_gives_way_still_stands():
    position = np.zeros((200, 1))
    position[100:120, 0] = np.linspace(0.0, 0.005, 20)
    position[120:, 0] = 0.005
    _, standing, sure = walked(position)
    assert standing.all()
    # At rest that is worth knowing; while another joint moves it may be friction's own.
    assert sure[105:115].all()
    other = np.cumsum(np.full((200, 1), 0.01), axis=0)
    _, standing, sure = walked(np.concatenate([position, other], axis=1))
    assert standing[105:115, 0].all() and not sure[105:115, 0].any()


@pytest.mark.parametrize("cut", [1, 99, 150, 301])
def test_states_do_not_depend_on_where_a_stream_is_cut(motion, cut):
    for whole, parts in zip(walked(motion), walked(motion, (cut,)), strict=True):
        np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("seed", range(5))
def test_kernel_and_numpy_find_the_same_states(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0.0, 1e-5, 1e-3, 1e-2], (16, 4))
    steps = rng.normal(size=(800, 4)) * np.repeat(sizes, 50, 0)
    position = np.cumsum(steps, axis=0)
    compiled = walked(position)
    monkeypatch.setattr(module, "_kernel", None)
    for one, other in zip(compiled, walked(position), strict=True):
        np.testing.assert_array_equal(one, other)
