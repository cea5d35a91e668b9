"""The fit as a pipeline: one request, short steps, each file parsed once, few robots built."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest

import taufit
from taufit.recording import read as reading
from taufit.robot.robot import Robot
from taufit.sim import random_fourier
from taufit.workflow import inputs, steps, training_data
from taufit.workflow.fit_choices import FitChoices
from taufit.workflow.fit_request import FitRequest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    twin = taufit.Twin.typical(taufit.read_robot("ur3e"))
    for k, name in enumerate(("run", "other", "third")):
        run = twin.run(random_fourier(twin.robot, seed=k), seed=k)
        taufit.write_recording(run.recording, out / f"{name}.parquet")
    return out


@pytest.fixture
def parsed(monkeypatch):
    """How often each file was handed to a reader."""
    count: Counter[str] = Counter()
    chosen = reading._reader

    def counted(path):
        count[path.name] += 1
        return chosen(path)

    monkeypatch.setattr(reading, "_reader", counted)
    return count


def test_the_keywords_are_the_fields_of_the_request():
    choices = {name: kind.__forward_arg__ for name, kind in FitChoices.__annotations__.items()}
    assert choices == {one.name: one.type for one in fields(FitRequest)}
    described = {line.split(":")[0].strip() for line in taufit.identify.__doc__.split("\n")}
    assert set(choices) <= described


def test_a_request_and_keywords_give_the_same_fit(folder):
    how = {"cutoff_hz": 8.0, "friction": "linear", "offset": False}
    by_request = taufit.identify("ur3e", folder / "run.parquet", request=FitRequest(**how))
    by_keywords = taufit.identify("ur3e", folder / "run.parquet", **how)
    assert np.array_equal(by_request.model.values, by_keywords.model.values)
    assert by_request.model.training.conditioning.cutoff_hz == 8.0


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("map", "column_map", None),
        ("effort", "torque_kind", "torque"),
        ("force", "ignore_contradictions", True),
        ("watch", "callback", None),
        ("slide_zero_std", "prismatic_zero_std", 1e-3),
    ],
)
def test_old_keywords_work_and_say_what_they_are_called_now(folder, monkeypatch, old, new, value):
    asked = []

    def stop(request, *_):
        asked.append(request)
        raise KeyboardInterrupt

    monkeypatch.setitem(inspect.unwrap(taufit.identify).__globals__, "prepare", stop)
    warned = pytest.warns(DeprecationWarning, match=f"{old}=.* is now {new}=")
    with warned, pytest.raises(KeyboardInterrupt):
        taufit.identify("ur3e", folder / "run.parquet", **{old: value})
    assert getattr(asked[0], new) == value
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match=f"{new} twice"):
        taufit.identify("ur3e", folder / "run.parquet", **{old: value, new: value})
    with pytest.raises(TypeError, match="frictoin"):
        taufit.identify("ur3e", folder / "run.parquet", frictoin="linear")


@pytest.mark.parametrize("holdout", [[], ["--holdout", "30%"], ["--holdout", "other.parquet"]])
def test_the_command_parses_each_file_once(folder, parsed, tmp_path, monkeypatch, capsys, holdout):
    from taufit.cli import main

    monkeypatch.chdir(folder)
    words = ["fit", "ur3e", "run.parquet", *holdout, "-o", str(tmp_path / "model.json"), "--json"]
    with pytest.raises(SystemExit) as stop:
        main(words)
    capsys.readouterr()
    assert stop.value.code == 0
    assert parsed == {name: 1 for name in ("run.parquet", *holdout) if name.endswith("parquet")}


@pytest.mark.parametrize("lead", [2**15, 100])
@pytest.mark.parametrize("processes", [1, 2])
def test_many_files_are_parsed_once_with_a_share_kept_out(
    folder, parsed, monkeypatch, tmp_path, lead, processes
):
    """Readers in workers leave their mark in a file: counters of theirs are not ours."""
    if processes == 2 and lead > 100:
        pytest.skip("nothing is read by workers")
    monkeypatch.setattr(training_data, "LEAD_ROWS", lead)
    monkeypatch.setattr(inputs, "LEAD_ROWS", lead)
    files = [folder / "run.parquet", folder / "other.parquet", folder / "third.parquet"]
    done = taufit.identify(
        "ur3e", files, holdout="30%", friction="linear", processes=processes, cutoff_hz=8.0
    )
    assert len(done.holdout_scores) == 3
    expected = {path.name: 1 for path in files}
    if processes == 2:
        # The first was parsed here; the others, with their hold-out parts, by workers alone.
        expected = {"run.parquet": 1}
    assert parsed == expected
    apart = taufit.identify("ur3e", files, holdout="30%", friction="linear", cutoff_hz=8.0)
    assert apart.mean_holdout_nrmse == pytest.approx(done.mean_holdout_nrmse, rel=1e-6)


def test_a_fit_builds_few_robots(folder, monkeypatch):
    built = []
    made = Robot.__post_init__

    def counted(robot):
        built.append(robot)
        made(robot)

    monkeypatch.setattr(Robot, "__post_init__", counted)
    taufit.identify("ur3e", folder / "run.parquet", holdout=folder / "other.parquet")
    assert 0 < len(built) <= 8


def test_identify_reads_on_one_screen():
    from radon.complexity import cc_visit

    function = inspect.unwrap(taufit.identify)
    tree = ast.parse(inspect.getsource(function)).body[0]
    assert tree.end_lineno - tree.body[1].lineno + 1 <= 40
    worst = {
        block.name: block.complexity
        for module in (steps, inspect.getmodule(function))
        for block in cc_visit(inspect.getsource(module))
        if block.letter == "F"
    }
    assert worst["identify"] <= 10 and max(worst.values()) <= 10, worst


_LOADED = """
import sys
from taufit.cli import main

try:
    main(["fit", "ur3e", "run.parquet", "--json", "-o", sys.argv[1]])
except SystemExit as stop:
    assert stop.code == 0, stop.code
loaded = [module for name, module in sys.modules.items() if name.split(".")[0] == "taufit"]
for module in loaded:
    if getattr(module, "__file__", "").endswith(".py"):
        print(module.__name__, len(open(module.__file__, "rb").readlines()), file=sys.stderr)
"""


def test_a_fit_loads_what_it_needs(folder, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", _LOADED, str(tmp_path / "model.json")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = dict(line.split() for line in run.stderr.splitlines())
    rooms = {name.split(".")[1] for name in lines if "." in name}
    assert "workflow" in rooms
    assert rooms.isdisjoint({"payload", "signs", "excitation", "live", "wire", "sim"})
    assert len(lines) <= 210 and sum(map(int, lines.values())) <= 32_000
