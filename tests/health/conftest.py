from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import worn_arm

from taufit.health import start_history


@pytest.fixture(scope="session")
def model():
    return worn_arm.truth()


@pytest.fixture(scope="session")
def healthy(model):
    """A baseline of 16 runs between 22 and 38 degC."""
    runs = [(f"h{k}", worn_arm.samples(22.0 + k, k)) for k in range(16)]
    return start_history(model, runs)
