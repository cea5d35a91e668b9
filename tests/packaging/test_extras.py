"""Extras: what messages and pages name can be installed as it is printed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import taufit
from taufit.core.extras import EXTRAS, missing_extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LISTED = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"docs", "test", "dev", "all"}


def library(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0]


def test_the_table_of_extras_is_that_of_the_package():
    assert set(EXTRAS) == set(LISTED) - FOR_DEVELOPERS
    for name, extra in EXTRAS.items():
        assert {library(text) for text in LISTED[name]} == {extra.library, *extra.also}


def test_extras_named_anywhere_exist():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*")]
    sources = ROOT.glob("src/taufit/**/*.py")
    found = {}
    for path in (*pages, *sources):
        if path.is_file() and path.suffix in (".md", ".py", ".ipynb", ".yaml"):
            for names in re.findall(r"taufit\[([\w,-]+)\]", path.read_text("utf-8")):
                found |= {name: path for name in names.split(",")}
    assert "ros2" in found
    unknown = {name: str(path) for name, path in found.items() if name not in LISTED}
    assert not unknown


def test_every_extra_of_users_is_tried_on_the_wheel():
    spec = importlib.util.spec_from_file_location(
        "wheel_check", Path(__file__).parent / "wheel_check.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # FIGAROH is for benchmarks alone.
    assert set(module.PROBES) == set(EXTRAS) - {"figaroh"}


def test_extras_within_the_package_are_extras_of_it():
    for requirements in LISTED.values():
        for text in requirements:
            if text.startswith("taufit["):
                assert set(re.search(r"\[(.*)\]", text)[1].split(",")) <= set(LISTED)


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_library_is_named_as_pip_calls_it(name):
    text = str(missing_extra(name, "this"))
    words = " ".join([EXTRAS[name].library, *EXTRAS[name].also])
    assert f"`pip install {words}`" in text and f"taufit[{name}]" in text


def test_the_version_names_engine_and_extras():
    out = subprocess.run(
        [sys.executable, "-m", "taufit", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert out.startswith(f"taufit {taufit.__version__}, engine: ")
    for name, extra in EXTRAS.items():
        assert re.search(rf"\b{name} \({re.escape(extra.library)}", out), name


def test_the_version_is_written_once():
    assert PROJECT["version"] == taufit.__version__


def test_the_package_says_that_it_is_typed():
    assert (Path(taufit.__file__).parent / "py.typed").is_file()
