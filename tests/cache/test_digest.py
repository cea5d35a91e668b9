"""A digest is equal exactly where the content is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

import taufit
from taufit.core.compute.cache import digest
from taufit.fitting import automatic_model
from taufit.regression.rows import RowBuilder


@dataclass(frozen=True)
class Pair:
    a: object
    b: object = 0


THINGS = [
    0, 0.0, -0.0, False, None, "", "0", b"0", (), [], (0,), ((0,),), {"a": 1}, {"a": 2},
    np.zeros(2), np.zeros((1, 2)), np.zeros(2, np.float32), np.zeros(2, int), np.float64(0.0),
    Pair(0), Pair(0, 1), Pair((0, 0)), Pair(np.zeros(2)), digest, partial(digest, 1), Pair,
    Pair(0).__eq__, Pair(1).__eq__,
]  # fmt: skip


def test_things_that_differ_have_different_digests():
    assert len({digest(thing) for thing in THINGS}) == len(THINGS)


def test_equal_content_has_one_digest():
    for one, other in (
        (np.arange(6.0).reshape(2, 3).T.copy(), np.arange(6.0).reshape(2, 3).T),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Pair(np.zeros(3)), Pair(np.zeros(3))),
    ):
        assert digest(one) == digest(other)


def test_a_models_every_part_counts():
    robot = taufit.read_robot("ur5")
    model = automatic_model(robot)
    load = np.zeros(len(model.names))
    rows = RowBuilder(model, load)
    heavier = robot.with_parameters(1.0001 * robot.parameters)

    others = [
        RowBuilder(automatic_model(heavier), load),
        RowBuilder(automatic_model(robot, friction=taufit.Linear()), load),
        RowBuilder(automatic_model(replace(robot, mounting=(0.0, 0.0, 1e-9))), load),
        RowBuilder(model, np.nextafter(load, 1.0)),
        RowBuilder(model, "measured"),
        RowBuilder(model, load, ("joint_1.load",)),
    ]

    assert digest(rows) == digest(
        RowBuilder(automatic_model(taufit.read_robot("ur5")), load.copy())
    )
    assert digest(rows) not in {digest(other) for other in others}


@pytest.mark.parametrize("thing", [lambda: 0, object(), np.array([object()])])
def test_what_has_no_content_is_refused(thing):
    with pytest.raises(TypeError):
        digest(thing)
