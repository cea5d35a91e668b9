"""Papers by their command-line name."""

from __future__ import annotations

from importlib import import_module

from taufit.core.errors import TaufitError
from taufit.papers.exhibit import Paper

PAPERS = {
    "xu2024": "online payload identification, UR10",
    "kr5": "torques with unknown signs, KUKA KR5",
    "raviola2021": "temperature and mounting, UR3 and UR5",
    "luo2024": "nonlinear friction and excitation, Franka",
}


def read_paper(name: str, *, seed: int = 0, repetitions: int | None = None) -> Paper:
    """Paper by name; nothing is computed before its exhibits are requested.

    Args:
        name: One of `PAPERS`.
        seed: Seed of all simulated runs.
        repetitions: Number of seeds where chance plays; default: that of the paper's page.
    """
    if name not in PAPERS:
        raise TaufitError(f"there is no paper {name!r}; there are {', '.join(PAPERS)}.")
    paper: Paper = import_module(f"taufit.papers.{name}").paper(seed, repetitions)
    return paper
