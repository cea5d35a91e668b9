"""`taufit gains`: a known mass on a real arm tells the controller's own gains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.output_json import parse_output
from typer.testing import CliRunner

from taufit.cli.app import typer_app

MAP = Path(__file__).resolve().parents[2] / "examples" / "columns" / "ur10e_csv.yaml"
CONTROLLER = np.array([11.976, 9.839, 10.763, 10.763])


def _run(*words: str) -> dict:
    result = CliRunner().invoke(typer_app("gains"), [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return parse_output("gains", result.stdout)


def test_a_known_mass_tells_what_the_controller_says(data_dir):
    folder = data_dir / "ur10e"
    runs = folder / "identification_data"
    data = _run(
        str(folder / "ur10e.urdf"),
        str(runs / "ur-20_02_19_14harm50sec.csv.gz"),
        "--loaded",
        str(runs / "ur-20_02_19_14harm50secLoad.csv.gz"),
        "--mass",
        "2.805",
        "--map",
        str(MAP),
    )
    found, std = np.array(data["gains"])[1:5], np.array(data["std"])[1:5]
    assert np.all(np.abs(found - CONTROLLER) < 2.5 * std)
    # The gains of the big joints come out to 3 %, those of the wrist to 5 %.
    assert np.all(std / found < [0.03, 0.03, 0.05, 0.05])
    assert data["map_line"].startswith("gains: {value: [")


def test_the_controllers_own_values_need_no_mass(data_dir):
    folder = data_dir / "ur10e"
    run = folder / "identification_data" / "ur-20_02_10-30sec_12harm.csv.gz"
    data = _run(str(folder / "ur10e.urdf"), str(run), "--map", str(MAP))
    np.testing.assert_allclose(np.array(data["gains"])[1:5], CONTROLLER, rtol=1e-3)
    assert any("joint 6" in finding for finding in data["findings"])
