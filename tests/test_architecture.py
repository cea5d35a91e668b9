"""The house keeps its shape: rooms small enough to find things in, one place for each idea."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import taufit

ROOT = Path(__file__).parents[1]
SOURCE = Path(taufit.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted({file.parent for file in FILES})


@cache
def syntax_tree(file: Path) -> ast.Module:
    """Parsed once for all rules."""
    return ast.parse(file.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE.parent))


@pytest.mark.parametrize("room", ROOMS, ids=name)
def test_every_room_says_what_it_is_for(room):
    text = ast.get_docstring(syntax_tree(room / "__init__.py"))
    assert text and len(text) > 40


@pytest.mark.parametrize("file", FILES, ids=name)
def test_every_file_starts_with_what_it_is_for(file):
    assert ast.get_docstring(syntax_tree(file)), name(file)


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
def test_public_names_are_never_the_modules_they_are_in(room):
    import importlib
    from types import ModuleType

    package = importlib.import_module(".".join(room.relative_to(SOURCE.parent).parts))
    for file in room.glob("*.py"):
        former = room == SOURCE and file.stem in ("errors", "friction")
        if file.stem not in ("__init__", "__main__") and not former:
            importlib.import_module(f"{package.__name__}.{file.stem}")
    for public in getattr(package, "__all__", ()):
        assert not isinstance(getattr(package, public), ModuleType), public


# Rooms that every fit goes through; functions in them branch less than elsewhere.
CORE = "core robot recording signals dynamics terms model regression estimators fitting workflow"


@pytest.mark.parametrize("file", FILES, ids=name)
def test_no_function_has_more_branches_than_can_be_read(file):
    """Cyclomatic complexity that counts `and`, conditional values and comprehensions too."""
    from radon.visitors import ComplexityVisitor

    most = 15 if file.relative_to(SOURCE).parts[0] in CORE.split() else 25
    blocks = ComplexityVisitor.from_ast(syntax_tree(file)).blocks
    functions = [own for block in blocks for own in getattr(block, "methods", [block])]
    assert [f"{own.name}: {own.complexity}" for own in functions if own.complexity > most] == []


def _term_classes() -> set[str]:
    """Classes of listed terms: what only the rooms `terms` and `model` may ask for by class."""
    from taufit.terms import FRICTION_MODELS, TERMS

    tables = (FRICTION_MODELS, TERMS)
    return {table[entry].__name__ for table in tables for entry in table} | {"TermSum", "Silent"}


def _imported_terms(tree: ast.AST) -> list[str]:
    return [
        one.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("taufit.terms")
        for one in node.names
        if one.name in _term_classes()
    ]


def test_no_term_is_asked_for_by_class_outside_terms_and_model():
    """Whoever uses a model asks for a kind or a group; a term is made by its name."""
    found = [
        f"{name(file)}: {term}"
        for file in FILES
        if file.relative_to(SOURCE).parts[0] not in ("terms", "model")
        for term in _imported_terms(syntax_tree(file))
    ]
    assert found == []
    assert _imported_terms(ast.parse("from taufit.terms import Spring")) == ["Spring"]


# Names of parameters that code may be tempted to compare; pages and messages may spell them.
_NAMES = r"(coulomb|viscous|static|presliding|load|ripple|rotor|offset|balance|stiffness)[a-z0-9_]*"
_DISPLAY = ("cli/parts/fit_display.py", "dynamics/base_expressions.py")


def _compares_names(tree: ast.AST) -> list[int]:
    """Lines that compare a parameter's name, or look at how it begins."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and _spells_a_parameter(node):
            lines += [node.lineno] * bool(re.search(r"what|term|name|owner", ast.unparse(node)))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
            *("startswith", "endswith", "index"),
        ):
            lines += [node.lineno] * _spells_a_parameter(node)
    return lines


def _spells_a_parameter(node: ast.AST) -> bool:
    words = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return any(isinstance(w, str) and re.fullmatch(_NAMES, w.rstrip("_")) for w in words)


def test_nobody_asks_for_a_parameter_by_name():
    found = [
        f"{name(file)}:{line}"
        for file in FILES
        if file.relative_to(SOURCE).parts[0] not in ("terms", "papers")
        and file.relative_to(SOURCE).as_posix() not in _DISPLAY
        for line in _compares_names(syntax_tree(file))
    ]
    assert found == []
    assert _compares_names(ast.parse('a = what == "coulomb"\nb = n.startswith("ripple_")')) == [
        1,
        2,
    ]


def test_the_architecture_page_has_the_rooms_and_the_order_of_the_contract():
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    contract = [{part.strip().split(".")[1] for part in layer.split("|")} for layer in layers[::-1]]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| rooms | contents |") :].split("\n\n")[0].splitlines()[2:]
    assert [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table] == contract
