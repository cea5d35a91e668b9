"""Hold-out recordings are scored whole and stored in part: memory does not grow with their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs

import taufit
from taufit.report import fit_page
from taufit.workflow import holdout


@pytest.fixture(scope="module")
def runs():
    return clean_runs("ur3e", 1, 3, periods=1.0)


def test_scores_and_grades_are_those_of_all_rows(runs, monkeypatch):
    robot, (first, *others) = runs
    others = [
        replace(run, meta={**run.meta, "file": f"test_{k}.csv"}) for k, run in enumerate(others)
    ]
    whole = taufit.identify(robot, first, holdout=others, friction="linear")
    monkeypatch.setattr(holdout, "_PLOTTED_ROWS", len(whole.holdout_samples[0]))
    part = taufit.identify(robot, first, holdout=others, friction="linear")
    for one, other in zip(part.holdout_scores, whole.holdout_scores, strict=True):
        np.testing.assert_array_equal(one.nrmse, other.nrmse)
    assert part.grades.to_dict() == whole.grades.to_dict()
    lengths = [len(samples) for samples in part.holdout_samples]
    assert lengths == [len(whole.holdout_samples[0]), holdout._PLOTTED_ROWS_OF_FURTHER]
    # Nothing of the other rows is held by views.
    assert part.holdout_samples[1].torque.base is None
    assert "</html>" in fit_page(part)
