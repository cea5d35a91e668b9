"""The house keeps its shape: rooms small enough to find things in, one place for each idea."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import taufit

ROOT = Path(__file__).parents[1]
SOURCE = Path(taufit.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted({file.parent for file in FILES})


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE.parent))


@pytest.mark.parametrize("room", ROOMS, ids=name)
def test_every_room_says_what_it_is_for(room):
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    assert text and len(text) > 40


@pytest.mark.parametrize("file", FILES, ids=name)
def test_every_file_starts_with_what_it_is_for(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), name(file)


def _matches(pattern: str, *, without: tuple[str, ...] = ()) -> list[str]:
    found = []
    for file in FILES:
        if file.relative_to(SOURCE).as_posix() in without:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{name(file)}:{number}: {line.strip()}")
    return found


def test_only_the_layout_knows_that_a_link_has_ten_parameters():
    pattern = r"\b10 \* \w*(joints|links|\bj\b)|(joints|links)\b \* 10\b|\(10 \+ \w*rotor"
    assert _matches(pattern, without=("core/parameters.py",)) == []


def test_the_half_width_of_a_95_percent_interval_is_written_once():
    assert _matches(r"\b1\.96\b|\b1\.9599", without=("core/statistics.py",)) == []


def test_colours_of_pages_come_from_the_palette():
    colours = [m for m in _matches(r"#[0-9a-fA-F]{6}\b") if "/report/" in m]
    assert all("report/palette.py" in line for line in colours)


def test_rules_that_keep_it_so_are_switched_on():
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lint = settings["tool"]["ruff"]["lint"]
    assert {"C901", "PLR0913", "PERF", "D100", "D101", "D103", "D104"} <= set(lint["select"])
    # Nothing in the package is let off; a line that must break a rule says why.
    assert list(lint["per-file-ignores"]) == ["{tests,benchmarks,examples}/**"]
    assert lint["mccabe"]["max-complexity"] == 12 and lint["pylint"]["max-args"] == 8
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    listed = {part.strip() for layer in layers for part in layer.split("|")}
    rooms = {f"taufit.{room.name}" for room in ROOMS if room.parent == SOURCE}
    assert rooms <= listed


@pytest.mark.parametrize("room", ROOMS, ids=name)
def test_rooms_that_load_names_on_first_use_tell_type_checkers_the_same_names(room):
    import importlib

    from taufit.core.lazy import LazyRoom

    package = importlib.import_module(".".join(room.relative_to(SOURCE.parent).parts))
    if not isinstance(package, LazyRoom):
        return
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert typed == dict(package._modules)
    for public in package.__all__:
        assert not isinstance(getattr(package, public), type(ast)), f"{public} is a module"
