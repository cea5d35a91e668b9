"""Recordings with nothing wrong pass: a slice of `python -m benchmarks clean_verdicts`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.accuracy.clean_verdicts import KINDS, simulated
from benchmarks.accuracy.verdicts import judge


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ur3e", "iiwa7"])
def test_a_clean_recording_passes(name, kind):
    arm = simulated(name, kind, 200)
    result = judge(arm)
    assert result["verdict"] == "PASS", result
    assert result["unexplained"] <= 0.15 and "torque_sign" not in result["kinds"]


def test_the_same_recording_with_reversed_torque_does_not():
    arm = simulated("ur3e", "one course", 200)
    result = judge(arm.change(lambda run: replace(run, signal=-run.signal)))
    assert result["verdict"] == "REFUSED" and result["kinds"] == ["torque_sign"]
