"""Commands load only what they need: a budget of modules, and libraries that stay out."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COUNT = """
import sys
from taufit.cli import main

try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code, stop.code
print(*sys.modules, file=sys.stderr)
"""
# Modules after each command, a few above what it loads now; and packages that it must not load.
BUDGET = {
    "inspect": (460, {"scipy", "pyarrow", "jaxtyping", "pydantic"}),
    "export model.json -o arm.c": (490, {"scipy", "pyarrow", "rich", "jaxtyping", "pydantic"}),
    "report model.json -o page.html": (460, {"scipy", "pyarrow", "rich", "jaxtyping", "pydantic"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    from taufit.model.model_file import write_model

    path = tmp_path_factory.mktemp("budget")
    write_model(model, path / "model.json")
    return path


@pytest.fixture(scope="module")
def model():
    import numpy as np

    from taufit.model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Presliding

    structure = TorqueModel(read_robot("ur3e"), Presliding())
    values = np.full(structure.layout.size, 0.1)
    values[structure.layout.links] = structure.robot.parameters
    return structure.with_values(values)


@pytest.mark.parametrize("command", BUDGET)
def test_a_command_stays_within_its_budget(command, folder):
    run = subprocess.run(
        [sys.executable, "-c", _COUNT, *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = run.stderr.split()
    most, absent = BUDGET[command]
    assert absent.isdisjoint(name.split(".")[0] for name in loaded)
    assert not any(name.startswith("numpy.f2py.") for name in loaded)
    assert len(loaded) <= most, len(loaded)
