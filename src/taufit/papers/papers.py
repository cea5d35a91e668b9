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


def read_paper(name: str) -> Paper:
    """Paper by name; nothing is computed before its exhibits are requested."""
    if name not in PAPERS:
        raise TaufitError(f"there is no paper {name!r}; there are {', '.join(PAPERS)}.")
    paper: Paper = import_module(f"taufit.papers.{name}").paper()
    return paper
