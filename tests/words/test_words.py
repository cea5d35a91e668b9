"""The checks on words find what they are for."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from tests.words.same_code import Comparison
from tests.words.sample import NAMES, TEXTS, draw, page_items, source_items
from tests.words.shares import (
    PUBLIC_WORDS,
    ROOT,
    SOURCE,
    foreign_names,
    is_participle,
    main,
    measure,
    public_names,
    words_of,
)

MODULES = sorted(SOURCE.glob("*/*.py"))[::20]


def verdict(old: str, new: str) -> int:
    comparison = Comparison()
    comparison.add("module.py", old, new)
    comparison.finish()
    return comparison.exit_code


class _Fault(ast.NodeTransformer):
    """Change the k-th place of a kind: a number, a variable read, operands, a statement."""

    def __init__(self, kind: str, place: int) -> None:
        self.kind, self.place, self.made = kind, place, False

    def _here(self) -> bool:
        self.place -= 1
        self.made |= self.place == -1
        return self.place == -1

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if self.kind == "number" and type(node.value) in (int, float) and self._here():
            return ast.Constant(node.value + 1)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        differ = ast.dump(node.left) != ast.dump(node.right)
        # Two attributes of one object that stand nowhere else may have exchanged their names.
        attributes = isinstance(node.left, ast.Attribute) and isinstance(node.right, ast.Attribute)
        if self.kind == "operands" and differ and not attributes and self._here():
            return ast.BinOp(node.right, node.op, node.left)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        assigned = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        } | {a.arg for a in node.args.args}
        if self.kind == "variable" and len(assigned) > 1:
            reads = [
                n
                for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in assigned
            ]
            if reads and self._here():
                reads[-1].id = next(n for n in sorted(assigned) if n != reads[-1].id)
        if self.kind == "statement" and len(node.body) > 2 and self._here():
            del node.body[-2]
        return node


@pytest.mark.parametrize("kind", ["number", "operands", "variable", "statement"])
def test_faults_beside_names_are_found(kind):
    rng = random.Random(kind)
    made = 0
    for path in MODULES:
        text = path.read_text()
        fault = _Fault(kind, rng.randrange(6))
        changed = ast.unparse(fault.visit(ast.parse(text)))
        if fault.made and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)):
            made += 1
            assert verdict(text, changed) == 2, path
    assert made >= 5


def test_consistent_renames_are_equal_code():
    old = '''
from taufit.core.files import replacing

def found(own, kept=1):
    """What was found."""
    given = [one + kept for one in own]
    return replacing(given)
'''
    new = '''
from taufit.core.files import replacing

def select(rows, minimum=1):
    """Select rows above a minimum."""
    above = [row + minimum for row in rows]
    return replacing(above)
'''
    assert verdict(old, new) == 0
    assert verdict(old, new.replace("row + minimum", "row + above")) == 2
    assert verdict(old, new.replace("replacing(above)", "replacing(rows)")) == 2


def test_another_import_of_the_same_use_is_found():
    old = "from numpy import sin\n\ndef f(x):\n    return sin(x)\n"
    assert verdict(old, old.replace("sin", "cos")) == 2


def test_renamed_keywords_need_a_renamed_argument():
    old = "def f(own=1):\n    return own\n\ndef g():\n    return f(own=2)\n"
    new = old.replace("own", "rows")
    assert verdict(old, new) == 0
    assert verdict(old, old.replace("f(own=2)", "f(rows=2)")) == 2


def test_changed_strings_are_listed_not_passed_over():
    assert verdict('x = {"from_data": 1}\n', 'x = {"share": 1}\n') == 1


def test_shares_count_vague_names_and_openings(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        'def searched(own, rate_hz):\n    """What a search finds.\n\n    Args:\n'
        '        own: Of the rows.\n        rate_hz: Sampling rate [Hz].\n    """\n'
        "    one = own\n\nclass Rows:\n    pass\n"
    )
    (tmp_path / "b.py").write_text("class _Rows:\n    pass\n")
    shares = measure(tmp_path)
    assert len(shares.places["vague names"]) == 2 and shares.totals["vague names"] == 4
    assert shares.percent("summaries") == 100.0 and shares.percent("argument lines") == 50.0
    assert shares.percent("participle functions") == 100.0
    assert shares.places["classes twice"] == ["Rows: a.py, b.py"]
    assert not is_participle("feed_back") and is_participle("_floored")
    (tmp_path / "c.py").write_text("def frobnicate(x):\n    return x\n")
    assert any("frobnicate" in name for name in foreign_names(tmp_path))


def test_the_source_is_below_the_limits(capsys):
    assert main([]) == 0, capsys.readouterr().out


def test_ordinary_words_are_sorted_and_in_use():
    words = PUBLIC_WORDS.read_text().split()
    in_use = {word for _, name in public_names(SOURCE) for word in words_of(name)}
    assert words == sorted(set(words))
    assert not [word for word in words if not {word, word + "s"} & in_use]


def test_a_sheet_has_every_kind_and_repeats_by_seed():
    items = [*source_items(SOURCE), *page_items(ROOT)]
    for proportions in (NAMES, TEXTS):
        sheet = draw(items, proportions, 60, seed=3)
        assert {item.kind for item in sheet} == set(proportions) and len(sheet) == 60
        assert sheet == draw(items, proportions, 60, seed=3) != draw(items, proportions, 60, seed=4)


FORMER = """
from warnings import warn
_RENAMED = {"Old": "New"}
def __getattr__(name):
    if name in _RENAMED:
        new = _RENAMED[name]
        warn("renamed", DeprecationWarning, stacklevel=2)
        name = new
    return load(name)
class Result:
    outliers: int
    surprises = RenamedAttribute("outliers")
"""
BEFORE = """
def __getattr__(key):
    return load(key)
class Result:
    surprises: int
"""


def test_entries_that_keep_former_names_are_part_of_a_rename():
    assert verdict(BEFORE, FORMER) == 0
    assert verdict('X = ("a", "b", "c")', 'Y = (*("a", "b"), "c")') == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [("        name = new\n", "        name = new\n        stop()\n"),
     ("name in _RENAMED:", "name not in _RENAMED:"),
     ('RenamedAttribute("outliers")', 'compute("outliers")'),
     ("return load(name)", "return load(name, 1)")],
)  # fmt: skip
def test_code_that_looks_like_a_former_name_is_found(old, new):
    assert old in FORMER
    assert verdict(BEFORE, FORMER.replace(old, new)) == 2
