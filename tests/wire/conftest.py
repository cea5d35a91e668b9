"""A virtual UR10 for every test that wants one, on free ports of this computer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.robot import read_robot
from taufit.sim import Twin, read_preset, typical_rotor
from taufit.sim.virtual import UrController, VirtualUr


@pytest.fixture(scope="session")
def paper_twin():
    return read_preset("ur10-paper").twin


@pytest.fixture(scope="session")
def quiet_twin():
    """An arm without friction and noise: what it does is what its controller asks for."""
    return Twin(typical_rotor(read_robot("ur10e")))


@pytest.fixture
def virtual_ur(quiet_twin):
    with VirtualUr(UrController(quiet_twin)) as robot:
        yield robot


@pytest.fixture
def offline(quiet_twin):
    """The controller without sockets and without a clock."""

    def make(version=(5, 23, 0, 0), **effects):
        twin = replace(quiet_twin, **effects)
        return UrController(twin, version=version)

    return make


def ticks(controller, seconds):
    """Let it run; the samples."""
    return [controller.tick() for _ in range(round(seconds / controller.step))]


def path(samples):
    return np.stack([sample.position for sample in samples])
