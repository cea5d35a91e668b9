"""A small simulated fleet, recorded once for the room's tests."""

from __future__ import annotations

import shutil

import pytest
from benchmarks.simulated_fleet import Plan, make, name_of

import taufit

PLAN = Plan(
    robots=8, seconds=10.0, spread=0.1, worn={2: (1, 2.5)}, tool={4: 1.5},
    mounted={6: (0.0, 0.5, 0.0)}, seed=3,
)  # fmt: skip


@pytest.fixture(scope="session")
def arm():
    return taufit.read_robot("ur5")


@pytest.fixture(scope="session")
def fleet(tmp_path_factory):
    """The folder, and the true friction of each robot."""
    folder = tmp_path_factory.mktemp("fleet")
    return folder, make(folder, PLAN)


@pytest.fixture(scope="session")
def poisoned(fleet, tmp_path_factory):
    """The same with a file that is no recording and one of another robot."""
    folder = tmp_path_factory.mktemp("poisoned")
    shutil.copytree(fleet[0], folder, dirs_exist_ok=True)
    whole = (folder / name_of(0) / "2026-03-01.parquet").read_bytes()
    (folder / name_of(0) / "2026-03-02.parquet").write_bytes(whole[: len(whole) // 2])
    other = taufit.Twin.typical(taufit.read_robot("panda"))
    from taufit.sim import random_fourier

    run = other.run(random_fourier(other.robot, seed=0))
    taufit.write_recording(run.recording, folder / name_of(1) / "2026-03-02.parquet")
    return folder
