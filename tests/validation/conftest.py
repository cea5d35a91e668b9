"""One simulated arm and one identification of it, shared by the room's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import simulated_arm

from taufit.robot import read_robot
from taufit.workflow import identify


@pytest.fixture(scope="session")
def arm():
    return read_robot("ur5e")


@pytest.fixture(scope="session")
def truth(arm):
    return simulated_arm.true_model(arm)


@pytest.fixture(scope="session")
def runs(truth):
    return tuple(simulated_arm.recording(truth, 25.0, seed, name=f"run{seed}") for seed in range(3))


@pytest.fixture(scope="session")
def identified(arm, runs):
    return identify(arm, runs[:1], holdout={"run1": runs[1:2], "run2": runs[2:3]}, cutoff_hz=8.0)
