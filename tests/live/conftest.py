"""A simulated arm with friction of its own, its fitted model and runs."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from taufit.sim import read_preset
from taufit.workflow import identify

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def arm():
    preset = read_preset("ur10-paper")
    effects = preset.twin.effects
    ripple = replace(effects.ripple, arm=11.0)
    return preset, replace(preset.twin, effects=replace(effects, ripple=ripple))


@pytest.fixture(scope="session")
def model(arm):
    preset, twin = arm
    return identify(twin.robot, [twin.run(preset.motion(periods=6), seed=1).recording]).model


@pytest.fixture(scope="session")
def loaded(arm):
    preset, twin = arm
    return twin.run(preset.motion(periods=1), seed=2, payload=preset.payload).recording


@pytest.fixture(scope="session")
def empty(arm):
    preset, twin = arm
    return twin.run(preset.motion(periods=1), seed=3).recording


@pytest.fixture
def dashboard_page(tmp_path, monkeypatch):
    from served import watched

    monkeypatch.chdir(tmp_path)
    with watched() as served:
        yield served
