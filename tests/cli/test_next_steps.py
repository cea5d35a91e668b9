"""Commands that are printed as the next step or as a remedy run as they are printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy.printed_commands import log_file

import taufit
from taufit.cli import main
from taufit.cli.common import command_arguments
from taufit.cli.parts.next_step import complete_commands, export_file

# What a user does; the printed commands of all of it are run afterwards.
COMMANDS = [
    "inspect", "inspect 'my arm/arm.yaml'", "fti ur3", "export 'my model.json' -o arm.step",
    "design ur3 --seconds 0.2 --free-space -o 'a motion.json'",
    "convert 'day one.parquet' -o 'day one.csv'",
    "fit ur3 'day one.parquet' --friction linear -o 'my model.json'",
    "fit ur3 'day one.parquet' --mounting 0,90,0 --friction linear -o x.json",
    "fit ur3 reversed.parquet --friction linear -o x.json",
    "fit ur3 reversed.parquet --friction linear -o x.json --write-map 'right map.yaml'",
    "fit ur5 'day one.parquet' --friction linear -o x.json",
    "check 'my model.json' 'day one.parquet'",
    "check 'my model.json' 'day one.parquet' --max-mean-nrmse 0.0001",
    "convert 'day one.csv' --draft 'a map.yaml' --robot ur3", "fit ur3 foreign.csv -o x.json",
    "export 'my model.json' -o 'my arm/arm.urdf'",
    "convert 'my arm/run of it.csv' --draft x.yaml", "simulate ur3 -o again.parquet",
    "convert 'turned log.csv' --draft x.yaml --robot ur3",
    "fit ur3 q.csv tau.csv", "fit ur3 q.csv", "fit ur3 text.csv",
]  # fmt: skip
PRINTED = re.compile(r"`(taufit [^`]+)`")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder, with names that need quoting."""
    folder = tmp_path_factory.mktemp("next")
    (folder / "my arm").mkdir()
    taufit.write_robot(taufit.read_robot("ur3"), folder / "my arm" / "arm.yaml")
    run(folder, "simulate ur3 -o 'day one.parquet'")
    recording = taufit.read_recording(folder / "day one.parquet")
    turned = replace(recording, signal=-recording.signal)
    taufit.write_recording(turned, folder / "reversed.parquet")
    magnitudes = replace(recording, signal=np.abs(recording.signal))
    taufit.write_recording(magnitudes, folder / "magnitudes.parquet")
    for name, values in (("q", recording.position), ("tau", recording.signal)):
        labels = ",".join(["time", *(f"{name}{j + 1}" for j in range(recording.joints))])
        table = np.column_stack([recording.time, values])
        np.savetxt(folder / f"{name}.csv", table, "%.9g", ",", header=labels, comments="")
    (folder / "text.csv").write_text("time;state\n" + "1;running\n" * 50)
    log_file(folder / "foreign.csv", recording)
    log_file(folder / "my arm" / "run of it.csv", recording)
    log_file(folder / "turned log.csv", turned)
    return folder


def test_a_command_line_is_completed_or_loses_its_backticks(tmp_path):
    (tmp_path / "my model.json").touch()
    token = command_arguments.set(
        {"robot": "ur3", "recording": [Path("a b.csv")], "map": "m.yaml",
         "output": tmp_path / "my model.json"}
    )  # fmt: skip
    try:
        assert complete_commands("See `taufit design`.") == (
            "See `taufit design ur3 -o motion.json`."
        )
        assert complete_commands("`taufit convert RECORDING --report`") == (
            "`taufit convert 'a b.csv' --report --map m.yaml`"
        )
        assert complete_commands("`taufit export`").endswith("my model.json' -o arm.urdf`")
        assert complete_commands("`taufit gains ROBOT RECORDING --mass KG`") == (
            "taufit gains ROBOT RECORDING --mass KG"
        )
        assert complete_commands("`taufit record`, `taufit.fit`") == "`taufit record`, `taufit.fit`"
    finally:
        command_arguments.reset(token)


def run(folder, line):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
    return stop.value.code or 0


@pytest.fixture(scope="module")
def printed(folder, request):
    """Commands printed by what the user does, with their origin; mentions of a verb are none."""
    manager = request.config.pluginmanager.getplugin("capturemanager")
    found: dict[str, str] = {}
    for line in COMMANDS:
        with manager.global_and_fixture_disabled():
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                run(folder, line)
        for command in PRINTED.findall(out.getvalue() + err.getvalue()):
            if len(shlex.split(command)) > 2 or command.endswith("inspect"):
                found.setdefault(command, line)
    return found


def test_every_printed_command_runs_as_printed(folder, printed, capsys):
    assert len(printed) >= 10
    failed = {}
    for command, origin in printed.items():
        code = run(folder, command.removeprefix("taufit "))
        capsys.readouterr()
        if code:
            failed[command] = (origin, code)
    assert not failed
    assert (folder / "corrected_map.yaml").exists()


@pytest.mark.parametrize(
    "line, following",
    [
        ("reversed.parquet --robot ur3 --report",
         "fit ur3 reversed.parquet --holdout 30% --write-map corrected_map.yaml --apply-remedy"),
        ("magnitudes.parquet --report",
         "fit ur3 magnitudes.parquet --holdout 30% --torque-signs unknown"),
        ("'day one.parquet' --draft x.yaml --robot ur3", "fit ur3 'day one.parquet' --holdout 30%"),
    ],
)  # fmt: skip
def test_the_fit_after_a_report_has_the_remedies_of_its_findings(folder, capsys, line, following):
    assert run(folder, f"convert {line}") == 0
    assert f"Next: `taufit {following}`" in capsys.readouterr().out


def test_a_name_with_blanks_is_quoted(printed):
    assert any("'my model.json'" in command for command in printed)
    assert "taufit convert q.csv tau.csv --draft map.yaml --robot ur3" in printed
    assert not any(re.search(r"\b(ROBOT|RECORDING|MODEL|FILE|NAME)\b", line) for line in printed)


def test_a_tree_is_exported_in_a_form_that_holds_it():
    examples = Path(__file__).parents[2] / "examples" / "arms"
    assert export_file(taufit.read_robot(examples / "palletiser.yaml")) == "arm.c"
    assert export_file(taufit.read_robot("ur3e")) == "arm.urdf"


def test_a_tree_is_not_sent_to_a_planner_of_serial_arms(tmp_path, capsys):
    arm = Path(__file__).parents[2] / "examples" / "arms" / "palletiser.yaml"
    assert run(tmp_path, f"inspect {arm}") == 0
    assert "`taufit simulate" in capsys.readouterr().out
    assert run(tmp_path, f"simulate {arm} -o run.parquet") == 0
