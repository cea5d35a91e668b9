"""Report how far names and texts of the source are from the words of the field.

    python -m tests.words.shares [--list N] [--room ROOM]

Shares, with the limits of `LIMITS` [%]:
- vague names: bound names (variables, arguments, attributes, functions) that are a pronoun, adverb,
  bare participle or adjective, so that the thing they stand for is not named;
- summaries and argument lines of docstrings that open with a question word or a preposition;
- functions named by a participle instead of an imperative or a noun;
- class names that exist twice.
Public names with a word that is neither in docs/glossary.md nor in `public_words.txt` are listed:
add the concept to the glossary, or use the glossary's word.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "taufit"
GLOSSARY = ROOT / "docs" / "glossary.md"
PUBLIC_WORDS = Path(__file__).with_name("public_words.txt")

_PRONOUNS = """
own mine ours theirs one ones each every both all any some such other others another rest whole many
most more much few here there now then what whose where why how which who when thing things
something anything nothing else either neither same this that these those it its them they
"""
_PARTICIPLES = """
found known unknown kept held told heard felt seen said done made given wanted asked shown listed
chosen carried moved turned stated described named noticed believed spoken left taken gone drawn put
tried meant odd usual alike plain fine sure apart aside alone beside beyond anew again near far
lasting familiar enough worth ready
"""
VAGUE = frozenset(f"{_PRONOUNS} {_PARTICIPLES}".split())
OPENINGS = re.compile(
    r"(What|Whether|How|Where|Which|Of|By|That|Those|Whose|Who|When|The same|As|In|For)\b"
)
_IRREGULAR = """
found known kept held told heard felt seen said done made given shown chosen drawn spoken left taken
"""
IRREGULAR = frozenset(_IRREGULAR.split())
# Words that end in "ed" and are no participles, or are the field's adjectives.
NOT_PARTICIPLES = frozenset({"need", "feed", "seed", "speed", "embed", "bed", "red", "weighted"})
LIMITS = {
    "vague names": 0.5,
    "summaries": 2.0,
    "argument lines": 2.0,
    "participle functions": 2.0,
    "classes twice": 0.0,
}


@dataclass
class Shares:
    """Counts of one source tree: totals, offending places and class names by file."""

    totals: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def count(self, measure: str, place: str, *, offends: bool) -> None:
        self.totals[measure] += 1
        if offends:
            self.places[measure].append(place)

    def percent(self, measure: str) -> float:
        return 100.0 * len(self.places[measure]) / max(self.totals[measure], 1)


def bound_names(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Kind, name and line of every name that the code binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield "variable", node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield "argument", node.arg, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield "attribute", node.attr, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", node.name, node.lineno


def is_participle(name: str) -> bool:
    """Whether a function's name opens with a participle."""
    word = name.strip("_").split("_")[0]
    return word in IRREGULAR or (word.endswith("ed") and word not in NOT_PARTICIPLES)


def measure(source: Path, room: str = "") -> Shares:
    """Count over all Python files of a source tree, or of one room of it."""
    shares = Shares()
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source).as_posix()
        if not place.startswith(room):
            continue
        tree = ast.parse(path.read_text())
        for kind, name, line in bound_names(tree):
            text = f"{place}:{line} {kind} {name}"
            word = "" if name.startswith("__") else name.strip("_").rstrip("0123456789")
            shares.count("vague names", text, offends=word in VAGUE)
        for node in ast.walk(tree):
            _count_texts(shares, node, place)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                shares.classes[node.name.lstrip("_")].append(place)
    for name, files in shares.classes.items():
        text = f"{name}: {', '.join(files)}"
        shares.count("classes twice", text, offends=len(files) > 1)
    return shares


def _count_texts(shares: Shares, node: ast.AST, place: str) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
        text = f"{place}:{node.lineno} {node.name}"
        shares.count("participle functions", text, offends=is_participle(node.name))
    if not isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    ) or not (doc := ast.get_docstring(node)):
        return
    line = getattr(node, "lineno", 1)
    summary = doc.splitlines()[0]
    is_predicate = isinstance(node, ast.FunctionDef) and summary.startswith("Whether")
    offends = bool(OPENINGS.match(summary)) and not is_predicate
    shares.count("summaries", f"{place}:{line} {summary}", offends=offends)
    for text in re.findall(r"^\s+[\w, ]+: (.*)$", doc, re.MULTILINE):
        offends = bool(OPENINGS.match(text)) and not text.startswith("Whether")
        shares.count("argument lines", f"{place}:{line} {text}", offends=offends)


def public_names(source: Path) -> Iterator[tuple[str, str]]:
    """Place and name of modules, classes and functions without a leading underscore."""
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source).as_posix()
        if path.stem not in ("__init__", "__main__"):
            yield place, path.stem
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield place, node.name


def words_of(name: str) -> list[str]:
    """Lower-case words of a name in snake_case or CamelCase, digits left out."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def known_words() -> set[str]:
    """Words of the glossary and of the list of ordinary words in use."""
    texts = [path.read_text() for path in (GLOSSARY, PUBLIC_WORDS) if path.exists()]
    return set(re.findall(r"[a-z]+", " ".join(texts).lower()))


def foreign_names(source: Path) -> list[str]:
    """Public names with a word outside the glossary, with the word."""
    known = known_words()
    out = []
    for place, name in public_names(source):
        words = [w for w in words_of(name) if not {w, w.rstrip("s"), w + "s"} & known]
        if words:
            out.append(f"{place} {name}: {', '.join(words)}")
    return out


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", type=int, default=0, metavar="N", help="places to show [0]")
    parser.add_argument("--room", default="", help="only this folder of the source")
    options = parser.parse_args(arguments)
    shares = measure(SOURCE, options.room)
    above = False
    for name, limit in LIMITS.items():
        percent = shares.percent(name)
        above |= percent > limit
        mark = "above the limit of" if percent > limit else "at most"
        print(f"{name:<22}{percent:6.2f} % of {shares.totals[name]}, {mark} {limit:g} %")
        for place in shares.places[name][: options.list]:
            print(f"  {place}")
    outside = foreign_names(SOURCE)
    print(f"public names with words outside docs/glossary.md: {len(outside)}")
    for place in outside[: options.list or 20]:
        print(f"  {place}")
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
