"""Nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_REPORT = """
import json, resource, sys
before = set(sys.modules)
{code}
used = resource.getrusage(resource.RUSAGE_SELF)
json.dump({{
    "modules": sorted(m for m in set(sys.modules) - before if "." not in m),
    "cpu": used.ru_utime + used.ru_stime,
}}, sys.stderr)
"""
_HEAVY = {"scipy", "clarabel", "pyarrow", "mujoco", "pinocchio", "pandas", "matplotlib", "h5py"}


def report(code: str) -> dict:
    """What a fresh process imported and cost; the least of three, on a shared machine."""
    runs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", _REPORT.format(code=code)],
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append(json.loads(done.stderr))
    return min(runs, key=lambda run: run["cpu"])


HELP = "from taufit.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"


@pytest.mark.parametrize("code", ["import taufit", HELP], ids=["import", "help"])
def test_import_and_help_cost_less_than_half_a_second(code):
    found = report(code)

    assert not _HEAVY & set(found["modules"])
    assert "numpy" not in found["modules"]
    assert found["cpu"] < 0.5


def test_reading_a_robot_and_counting_needs_no_scipy():
    found = report(
        "import taufit\nassert taufit.base_parameters(taufit.read_robot('ur10')).rank == 36"
    )

    assert not _HEAVY & set(found["modules"])


def test_inspect_lists_and_shows(capsys):
    from taufit.cli import main
    from taufit.robot import bundled_robots

    with pytest.raises(SystemExit) as stop:
        main(["inspect"])
    listing = capsys.readouterr().out
    assert not stop.value.code
    assert all(name in listing for name in bundled_robots(trees=True))

    with pytest.raises(SystemExit) as stop:
        main(["inspect", "panda", "--friction", "linear"])
    shown = capsys.readouterr().out
    assert not stop.value.code
    assert "panda_joint4" in shown and "-176 .. -3.999" in shown
    assert "64 base parameters" in shown and "Next:" in shown

    with pytest.raises(SystemExit) as stop:
        main(["inspect", "--json"])
    assert {row["name"] for row in json.loads(capsys.readouterr().out)["robots"]} == set(
        bundled_robots(trees=True)
    )


@pytest.mark.parametrize("option", [["--friction", "sticky"], ["--rule", "best"], ["--nonsense"]])
def test_wrong_usage_exits_with_2(option, capsys):
    from taufit.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["inspect", "ur10", *option])
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
