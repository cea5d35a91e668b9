"""Draw names and texts at random, to be graded by an engineer who has not read the files.

    python -m tests.words.sample --seed K [--names 60] [--texts 60] [-o sheet.csv]

The sheet shows kind, room and item; the column `grade` is for the reader: 1 understood at once,
2 after opening the file, 3 not understood. `*.places.csv` beside it says where each item stands.
Kinds are drawn in fixed proportions, duplicates and texts of fewer than four words left out.
"""

from __future__ import annotations

import argparse
import ast
import csv
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.words.shares import ROOT, SOURCE

NAMES = {"module": 6, "class": 12, "function": 18, "method": 9, "field": 9, "argument": 6}
TEXTS = {"docstring": 27, "error": 9, "help": 6, "message": 6, "docs": 9, "changelog": 3}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Item:
    """One name or text, with the file it stands in."""

    kind: str
    room: str
    text: str
    place: str


def _text(node: ast.expr) -> str:
    """A string expression as its reader sees it, inserted values in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    value = node.value if isinstance(node, ast.FormattedValue) else node
    return "{" + ast.unparse(value) + "}"


def _names(tree: ast.Module, room: str, module: str, place: str) -> Iterator[Item]:
    for node in tree.body:
        if not isinstance(node, _DEFINITIONS) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield Item("class", room, f"{module}.{node.name}", place)
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    kind, name = "field", part.target.id
                elif isinstance(part, ast.FunctionDef):
                    kind, name = "method", part.name
                else:
                    continue
                if not name.startswith("_"):
                    yield Item(kind, room, f"{node.name}.{name}", place)
        else:
            yield Item("function", room, f"{module}.{node.name}", place)
            for argument in [*node.args.args, *node.args.kwonlyargs]:
                yield Item("argument", room, f"{node.name}({argument.arg}=)", place)


def _texts(tree: ast.Module, room: str, place: str) -> Iterator[Item]:
    for node in ast.walk(tree):
        if isinstance(node, (*_DEFINITIONS, ast.Module)) and (doc := ast.get_docstring(node)):
            label = "" if isinstance(node, ast.Module) else f"{node.name}: "
            if not label.startswith("_"):
                first = doc.split("\n\n")[0].replace("\n", " ")
                yield Item("docstring", room, label + first, place)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield Item("error", room, _text(node.exc.args[0]), f"{place}:{node.lineno}")
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield Item("help", room, _text(node.value), place)
        elif isinstance(node, ast.JoinedStr) and _text(node).count(" ") > 4:
            yield Item("message", room, _text(node), f"{place}:{node.lineno}")


def source_items(source: Path) -> Iterator[Item]:
    """Names and texts of all Python files."""
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        room, place = relative.parts[0].removesuffix(".py"), relative.as_posix()
        module = ".".join(relative.with_suffix("").parts)
        tree = ast.parse(path.read_text())
        if path.stem not in ("__init__", "__main__"):
            yield Item("module", room, module, place)
        yield from _names(tree, room, module, place)
        yield from _texts(tree, room, place)


def page_items(root: Path) -> Iterator[Item]:
    """Sentences of the documentation and lines of the changelog."""
    for page in sorted((root / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
        text = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#")))
        for block in re.split(r"\n\s*\n", text):
            for sentence in re.split(r"(?<=[.:!?])\s+(?=[A-Z`])", " ".join(block.split())):
                yield Item("docs", "docs", sentence, page.name)
    for number, line in enumerate((root / "CHANGELOG.md").read_text().splitlines(), 1):
        if line.startswith("- "):
            yield Item("changelog", "changelog", line[2:], f"CHANGELOG.md:{number}")


def draw(items: list[Item], proportions: dict[str, int], count: int, seed: int) -> list[Item]:
    """Draw items by kind; the same seed gives the same sheet for the same source."""
    rng = random.Random(seed)
    sheet: list[Item] = []
    for kind, proportion in proportions.items():
        unique = {item.text: item for item in items if item.kind == kind}
        if kind in TEXTS:
            unique = {t: i for t, i in unique.items() if len(t.split(": ", 1)[-1].split()) >= 4}
        wanted = round(count * proportion / sum(proportions.values()))
        sheet += rng.sample(list(unique.values()), min(wanted, len(unique)))
    return sheet


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--names", type=int, default=60)
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("-o", "--output", type=Path, help="CSV file; printed without it")
    options = parser.parse_args(arguments)
    items = [*source_items(SOURCE), *page_items(ROOT)]
    sheet = draw(items, NAMES, options.names, options.seed)
    sheet += draw(items, TEXTS, options.texts, options.seed)
    rows = [[k, i.kind, i.room, i.text, ""] for k, i in enumerate(sheet, 1)]
    if options.output is None:
        for number, kind, room, text, _ in rows:
            print(f"{number:4d} {kind:<10} {room:<12} {text}")
        return 0
    with options.output.open("w", newline="") as file:
        csv.writer(file).writerows([["number", "kind", "room", "item", "grade"], *rows])
    with options.output.with_suffix(".places.csv").open("w", newline="") as file:
        csv.writer(file).writerows([k, i.place] for k, i in enumerate(sheet, 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
