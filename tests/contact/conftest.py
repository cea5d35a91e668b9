"""A simulated arm with friction, fitted once, and motion of it in which nothing touches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from taufit.model import FittedModel
from taufit.sim import Twin, random_fourier, read_preset
from taufit.workflow import identify


@dataclass(frozen=True)
class Bench:
    """A twin, its fitted model and how to record more of it."""

    twin: Twin
    model: FittedModel

    def run(self, seed: int, *, periods: float = 1.0, rest: float = 1.0, **more: Any) -> Any:
        motion = random_fourier(self.twin.robot, seed=seed, periods=periods)
        return self.twin.run(motion, seed=seed, rest=(rest, rest), **more)


@pytest.fixture(scope="session")
def bench() -> Bench:
    twin = read_preset("ur10e-real").twin
    recordings = [
        twin.run(random_fourier(twin.robot, seed=s, periods=2), seed=s, rest=(1.0, 1.0)).recording
        for s in (1, 2)
    ]
    return Bench(twin, identify(twin.robot, recordings).model)
