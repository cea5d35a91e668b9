"""A model is called good only near what it leaves of its own training data."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.model.score import Score
from taufit.validation.grades import Thresholds, grade, training_error_ratio

SPREAD = np.array([40.0, 10.0])


def score(nrmse: float, spread=SPREAD) -> Score:
    share = np.full(2, nrmse)
    return Score("run", 1000, 10.0, 10.0, share * spread, share, np.ones(2), 0 * share, share, 0.1)


def test_what_is_left_of_training_is_taken_over_the_spread_that_is_judged():
    np.testing.assert_allclose(training_error_ratio(score(0.04), score(0.05, 0.5 * SPREAD)), 0.08)
    assert np.all(np.isinf(training_error_ratio(None, score(0.05))))


@pytest.mark.parametrize(("times", "word"), [(1.3, "good"), (1.45, "usable")])
def test_a_good_model_is_near_its_floor_and_its_training(times, word):
    floor, trained = np.full(2, 0.05), score(0.05)
    far = np.full(2, 0.08)
    one = score(0.05 * times)
    assert grade([one], [floor], on_holdout=True).overall == word
    assert grade([one], [far], on_holdout=True, training=trained).overall == word
    wide = Thresholds(of_best=3.0)
    assert grade([one], [floor], on_holdout=True, thresholds=wide).overall == "good"
