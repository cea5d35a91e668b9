"""Files of a release: one version everywhere, the same requirements, copied files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import taufit

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text("utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
DOCKERFILE = (ROOT / "packaging/Dockerfile").read_text("utf-8")
# Names of packages that conda-forge calls otherwise.
CONDA_NAMES = {"mujoco": "mujoco-python"}


def test_one_version_everywhere():
    newest = re.search(r"^## (\S+) \(([\d-]+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    versions = {PROJECT["version"], taufit.__version__, CITATION["version"], newest[1]}
    assert versions | {RECIPE["context"]["version"]} == {taufit.__version__}
    assert str(CITATION["date-released"]) == newest[2]


def test_the_recipe_requires_what_the_package_requires():
    wanted = {f"python {PROJECT['requires-python']}"}
    for line in PROJECT["dependencies"]:
        # The recipe has one list for every Python: markers are left out.
        name, limits = re.fullmatch(r"([\w.-]+)([^;]*).*", line).groups()
        wanted.add(f"{CONDA_NAMES.get(name, name)} {limits}")
    assert set(RECIPE["requirements"]["run"]) == wanted
    assert RECIPE["about"]["license"] == PROJECT["license"] == CITATION["license"]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert {line.replace(">=", " >=") for line in build} <= set(RECIPE["requirements"]["host"])


def test_the_container_is_built_from_files_that_exist():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
    names = {name for line in copied for name in line.split()}
    assert names and all((ROOT / name).exists() for name in names)
    # What the build needs and a wheel is made of.
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert {"pyproject.toml", "CMakeLists.txt", "src"} <= names
    assert ("kernel/" in cmake) == ("kernel" in names)
    minor = int(re.search(r"FROM python:3\.(\d+)", DOCKERFILE)[1])
    assert minor >= int(PROJECT["requires-python"].removeprefix(">=3."))
