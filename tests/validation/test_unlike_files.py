"""One file that is not like the others is named; faster motions and resting joints are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.model.score import Score
from taufit.validation.score_sums import outlier_file_findings

RMSE, NRMSE = np.array([2.0, 1.5, 1.0, 0.3]), np.array([0.05, 0.02, 0.04, 0.06])


@pytest.fixture
def scores():
    one = Score("run", 1000, 10.0, 10.0, RMSE, NRMSE, np.ones(4), 0 * RMSE, 4 * RMSE, 0.1)
    return [replace(one, file=f"run{k}") for k in range(4)]


def changed(scores, times, relative):
    last = replace(scores[-1], rmse=RMSE * times, nrmse=NRMSE * relative)
    return [*scores[:-1], last]


def test_alike_files_are_not_named(scores):
    assert outlier_file_findings(scores) == []


@pytest.mark.parametrize(
    ("times", "relative"),
    [
        (2.2, 1.0),  # a faster motion
        (np.array([1.0, 0.2, 0.2, 0.2]), np.array([1.0, 20.0, 20.0, 20.0])),  # three joints rest
        (np.array([2.9, 2.8, 1.0, 1.0]), np.array([2.9, 2.8, 1.0, 1.0])),  # months later
    ],
)
def test_motions_that_differ_are_not_named(scores, times, relative):
    assert outlier_file_findings(changed(scores, times, relative)) == []


@pytest.mark.parametrize(
    ("times", "relative", "severity"),
    [
        (np.array([3.4, 4.1, 1.8, 1.2]), np.array([3.2, 4.0, 1.5, 1.0]), "warning"),
        (2.8, 2.8, "warning"),
        (3.4, 20.0, "error"),
        (8.0, 8.0, "error"),
    ],
)
def test_a_file_far_off_is_named(scores, times, relative, severity):
    (finding,) = outlier_file_findings(changed(scores, times, relative))
    assert finding.kind == "broken_file" and finding.severity == severity
    assert finding.message.startswith("run3 is not like the other 3 recordings")
