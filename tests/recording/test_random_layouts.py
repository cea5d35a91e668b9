"""Drafts of logs with random layouts are right or marked, never silently wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.random_layouts import draw_layout, draw_truth, judge, outcome, write_layout


# Several files without header, units that differ, joints that are missing or not the robot's.
@pytest.mark.parametrize("seed", [101, 103, 105, 115, 123, 143, 1002, 1051])
def test_a_draft_of_a_random_layout_is_right(seed, tmp_path):
    result, reason, layout = outcome(seed, tmp_path)
    assert result == "right", (reason, layout)


def test_the_judge_sees_a_wrong_draft(tmp_path):
    rng = np.random.default_rng(105)
    truth, acceleration = draw_truth(rng)
    layout = draw_layout(rng)
    paths = write_layout(tmp_path, layout, truth, acceleration)
    assert judge(paths, truth, layout)[0] == "right"
    turned = replace(truth, torque=-truth.torque)
    assert "torque" in judge(paths, turned, layout)[1]
