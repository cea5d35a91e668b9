"""Annotations are checked in every test, and loops do not pay for it."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from taufit.dynamics import forward_kinematics
from taufit.robot import read_robot

shapes = pytest.importorskip("tests.shapes")
TypeCheckError = pytest.importorskip("jaxtyping").TypeCheckError


@pytest.fixture
def arm():
    if not hasattr(forward_kinematics, "__wrapped__"):
        pytest.skip("the check of annotations is switched off (TAUFIT_SHAPES=0)")
    robot = read_robot("ur10")
    # As in the first test of a file.
    shapes.begin_test()
    yield robot
    shapes.begin_test()


def is_checked(arm) -> bool:
    """Whether a wrong shape is noticed."""
    try:
        forward_kinematics(arm, np.zeros((2, 6, 1)))
    except TypeCheckError:
        return True
    except ValueError:
        return False
    raise AssertionError("a wrong shape is an error in any case")


def test_a_wrong_shape_is_noticed_and_many_right_ones_are_left(arm):
    assert not shapes._left
    assert is_checked(arm)
    for _ in range(shapes.ENOUGH):
        forward_kinematics(arm, np.zeros((1, 6)))
    assert "forward_kinematics" in {function.name for _, function in shapes._left}
    assert not is_checked(arm)


@pytest.mark.parametrize("file", ["this", "another"])
def test_a_wrong_shape_is_noticed_in_one_test_of_some_and_in_the_first_of_a_file(arm, file):
    path = Path(file)
    for first in (path, Path("next to it")):
        shapes.begin_test(first)
        noticed = []
        for _ in range(2 * shapes.PERIOD):
            noticed.append(is_checked(arm))
            for _ in range(shapes.ENOUGH):
                forward_kinematics(arm, np.zeros((1, 6)))
            shapes.begin_test(first)
        assert noticed[0]
        assert sum(noticed[shapes.PERIOD :]) >= 1


def test_other_decorators_of_a_method_stay():
    class Lock:
        @contextmanager
        def held(self):
            yield 1

    function = shapes._Function(Lock, "held", Lock.held, inspect.unwrap(Lock.held))
    function.leave()
    with Lock().held() as value:
        assert value == 1
    function.check()
