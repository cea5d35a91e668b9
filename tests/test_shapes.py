"""Annotations are checked in every test, and loops do not pay for it."""

from __future__ import annotations

import inspect
from contextlib import contextmanager

import numpy as np
import pytest

from taufit.dynamics import forward_kinematics
from taufit.robot import read_robot

shapes = pytest.importorskip("tests.shapes")
TypeCheckError = pytest.importorskip("jaxtyping").TypeCheckError


@pytest.mark.parametrize("test", ["one", "the next"])
def test_a_wrong_shape_is_noticed_in_every_test_and_many_right_ones_are_left(test):
    if not hasattr(forward_kinematics, "__wrapped__"):
        pytest.skip("the check of annotations is switched off (TAUFIT_SHAPES=0)")
    assert not shapes._left
    arm = read_robot("ur10")
    with pytest.raises(TypeCheckError):
        forward_kinematics(arm, np.zeros((2, 6, 1)))
    for _ in range(shapes.ENOUGH):
        forward_kinematics(arm, np.zeros((1, 6)))
    assert "forward_kinematics" in {function.name for function in shapes._left}


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
