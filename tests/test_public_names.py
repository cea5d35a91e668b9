"""The top of the package: few names, typed, each with an example that runs."""

from __future__ import annotations

import ast
import doctest
import inspect
from pathlib import Path

import pytest

import taufit
from taufit.sim import random_fourier

SOURCE = Path(taufit.__file__).parent


def stub_names() -> dict[str, str]:
    """{name: module} of the stub's imports."""
    tree = ast.parse((SOURCE / "__init__.pyi").read_text("utf-8"))
    return {
        alias.asname: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }


def test_fifteen_to_twenty_names_are_a_first_script():
    assert 15 <= len(taufit.__all__) <= 20
    for name in taufit.__all__:
        assert getattr(taufit, name) is not None


def test_type_checkers_see_the_names_that_are_there():
    names = taufit._NAMES
    assert set(stub_names()) == set(names)
    stub = (SOURCE / "__init__.pyi").read_text("utf-8")
    listed = next(
        ast.literal_eval(node.value)
        for node in ast.parse(stub).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    assert sorted(listed) == sorted(taufit.__all__)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with what the examples read: two runs of an arm and its model."""
    folder = tmp_path_factory.mktemp("examples")
    robot = taufit.read_robot("ur3e")
    twin = taufit.Twin.typical(robot)
    for name, seed in (("run", 0), ("other_day", 1)):
        run = twin.run(random_fourier(robot, seed=seed), seed=seed)
        taufit.write_recording(run.recording, folder / f"{name}.parquet")
    done = taufit.identify(robot, folder / "run.parquet", holdout=folder / "other_day.parquet")
    taufit.write_model(done.model, folder / "model.json")
    return folder


@pytest.mark.parametrize("name", taufit.__all__)
def test_every_name_has_an_example_that_runs(name, files, monkeypatch):
    monkeypatch.chdir(files)
    noun = getattr(taufit, name)
    text = inspect.getdoc(noun) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, f"taufit.{name}", None, 0)
    assert example.examples, f"taufit.{name} has no example in its docstring"
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    result = runner.run(example, out=told.append)
    assert result.failed == 0, "".join(told)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("taufit.errors", "taufit.core.errors", "TaufitError"),
        ("taufit.friction", "taufit.terms.friction", "Linear"),
    ],
)
def test_former_places_hand_on_and_warn(old, new, name):
    import importlib
    import sys

    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=new):
        former = importlib.import_module(old)
    assert getattr(former, name) is getattr(importlib.import_module(new), name)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("map", "column_map", {}), ("effort", "torque_kind", "torque")],
)
def test_former_keywords_of_read_recording_reach_the_reader(tmp_path, old, new, value):
    import taufit

    missing = tmp_path / "run.csv"
    with (
        pytest.warns(DeprecationWarning, match=f"read_recording.{old}=.* is now {new}="),
        pytest.raises(taufit.core.errors.RecordingError, match=r"there is no file|`columns` must"),
    ):
        taufit.read_recording(missing, **{old: value})
    with pytest.raises(TypeError):
        taufit.read_recording(missing, columns=value)
