"""Example torque loops, compiled against stand-in headers and run on the exported model."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import taufit
from taufit.export import write_export
from taufit.model.torque_model import TorqueModel
from taufit.terms.friction import Presliding

HERE = Path(__file__).parent
LOOPS = HERE.parents[1] / "examples" / "controller"


def tracking_error(folder: Path, robot: str, loop: str, arguments: list[str], gain: float) -> float:
    """Largest tracking error [mrad] on a plant that applies `gain` times the command."""
    model = TorqueModel(taufit.read_robot(robot), Presliding(), rotor_inertia=True)
    sizes = {"rotor": 0.3, "coulomb": 1.0, "viscous": 0.5, "offset": 0.2, "load": 0.0}
    values = np.array([sizes.get(name.split(".")[1], 0.15) for name in model.names])
    values[model.layout.links] = model.robot.parameters
    write_export(model.with_values(values), "c", folder / "arm.c")
    (folder / "plant_name.h").write_text(
        f"#define ARM_OF(name) {robot}_##name\n#define JOINTS {robot.upper()}_JOINTS\n"
    )
    subprocess.run(["cc", "-std=c99", "-O2", "-c", "arm.c"], cwd=folder, check=True)
    subprocess.run(
        ["c++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-DPLANT_GAIN={gain}",
         f"-I{HERE / 'loop_stubs'}", "-I.", str(LOOPS / loop), "arm.o", "-o", "loop"],
        cwd=folder, check=True,
    )  # fmt: skip
    ran = subprocess.run(
        ["./loop", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return float(re.search(r"([\d.e+-]+) mrad", ran.stdout)[1])


@pytest.mark.parametrize(
    ("robot", "loop", "arguments"),
    [("panda", "franka_loop.cpp", ["address"]), ("ur5e", "ur_loop.cpp", list("abcd"))],
)
def test_loops_follow_the_reference_by_their_model(robot, loop, arguments, tmp_path):
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    exact = tracking_error(tmp_path, robot, loop, arguments, 1.0)
    assert exact < 0.5
    # A plant that is not the model's is followed worse: the feed-forward counts.
    assert tracking_error(tmp_path, robot, loop, arguments, 0.6) > 2.0 * exact
    refused = subprocess.run(["./loop"], cwd=tmp_path, capture_output=True, check=False)
    assert refused.returncode == 2
