"""Figures in README and docs that come from a benchmark, kept equal to benchmarks/results.json.

A figure is followed by a comment that names its row, which readers of the page do not see:

    0.040<!-- accuracy/real_robots: Panda nrmse unseen -->
    4.0 %<!-- accuracy/real_robots: Panda nrmse unseen x100 -->
    0.037<!-- open/ur10e: unseen motion, taufit -->

`python -m benchmarks.figures` lists figures that differ from the results, rows that are gone, and
numbers that look measured but have no row; with --write it puts the measured figures into the
pages, with as many digits as there were. `make bench` does so at its end.

Numbers that are no measurements (settings, limits, what others printed) stand in phrases that
docs/facts.txt lists: `page.md: phrase`. Code is not looked at.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
OPEN_RESULTS = ROOT / "benchmarks" / "open" / "results.json"
FIGURE = re.compile(
    r"(?P<number>-?\d+(?:\.\d+)?(?:e-?\d+)?)(?P<unit>[^\d|<]{0,20})"
    r"<!-- (?P<benchmark>(?:speed|accuracy|open)/\w+): (?P<row>[^\n]+?)(?: x(?P<scale>\d+))? -->"
)


FACTS = ROOT / "docs" / "facts.txt"
_UNIT = (
    r"%|per cent|percent|CPU s|CPU min|[mnuµ]?s|min|h|seconds|minutes|hours"
    r"|[kMG]B|N m|N|kg|g|mm|cm|K|x|×|times"
)
# A decimal number, or any number with the unit of a result.
_NUMBER = re.compile(
    rf"(?<![\w.])(?:(?:\d*\.\d+(?:e-?\d+)?(?![\w.]))(?:\s?(?:{_UNIT})(?!\w))?"
    rf"|\d[\d,]*(?:e-?\d+)?\s?(?:{_UNIT})(?!\w))"
)
# What is no prose: fenced blocks, code, addresses, formulas, attributes, comments.
_ELSEWHERE = re.compile(
    r"^( *)```.*?^\1```|`[^`\n]*`|\]\([^)]*\)(?:\{[^}]*\})?|\$\$.*?\$\$|\$[^$\n]*\$|<!--.*?-->",
    re.S | re.M,
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a page.

    Attributes:
        page: Where it stands.
        shown: As it stands there.
        benchmark, row: Where it comes from.
        measured: As it should be shown, or None where there is no such row.
    """

    page: Path
    shown: str
    benchmark: str
    row: str
    measured: str | None


def pages() -> list[Path]:
    """README and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """As facts.txt calls it: README.md, fit.md, howto/kuka.md."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def results() -> dict[tuple[str, str], float]:
    """{(benchmark, row): value} of the last run; `row (target)` is what it was compared with."""
    rows = json.loads(RESULTS.read_text("utf-8"))["rows"]
    found = {(row["benchmark"], row["name"]): row["value"] for row in rows}
    for row in rows:
        if limit := re.search(r"[\d.]+(?:e-?\d+)?$", row["target"]):
            found[row["benchmark"], f"{row['name']} (target)"] = float(limit[0])
    return found | open_results()


def open_results() -> dict[tuple[str, str], float]:
    """{(open/ARM, "TASK, TOOL"): value} of the open benchmark; "TASK, TOOL, CPU" in seconds."""
    found = {}
    for cell in json.loads(OPEN_RESULTS.read_text("utf-8"))["cells"]:
        key = (f"open/{cell['arm']}", f"{cell['task']}, {cell['tool']}")
        if "value" in cell:
            found[key] = cell["value"]
            found[key[0], f"{key[1]}, CPU"] = cell["cpu_s"]
    return found


def like(shown: str, value: float) -> str:
    """`value` written with as many digits as `shown` has.

    >>> like("0.040", 0.03962), like("12", 11.7), like("1e-9", 3.2e-10)
    ('0.040', '12', '3e-10')
    """
    mantissa, _, exponent = shown.partition("e")
    decimals = len(mantissa.partition(".")[2])
    if exponent:
        number, _, power = f"{value:.{decimals}e}".partition("e")
        return f"{number}e{int(power)}"
    return f"{value:.{decimals}f}"


def figures(page: Path, text: str, known: dict[tuple[str, str], float]) -> Iterator[Figure]:
    """Those of one page."""
    for match in FIGURE.finditer(text):
        yield Figure(page, match["number"], match["benchmark"], match["row"], _fresh(match, known))


def renewed(text: str, known: dict[tuple[str, str], float]) -> str:
    """The page with the measured figures in it."""

    def put(match: re.Match[str]) -> str:
        fresh = _fresh(match, known)
        rest = match[0][len(match["number"]) :]
        return match[0] if fresh is None else fresh + rest

    return FIGURE.sub(put, text)


def _fresh(match: re.Match[str], known: dict[tuple[str, str], float]) -> str | None:
    value = known.get((match["benchmark"], match["row"]))
    return None if value is None else like(match["number"], value * float(match["scale"] or 1))


def facts() -> dict[str, list[str]]:
    """{page: phrases} of docs/facts.txt; lines that start with # say what kind they are."""
    out: dict[str, list[str]] = {}
    for line in FACTS.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            page, _, phrase = line.partition(": ")
            out.setdefault(page, []).append(phrase)
    return out


def facts_of(page: Path) -> list[str]:
    """Phrases that a page may hold."""
    known = facts()
    return [*known.get(name_of(page), []), *known.get("*", [])]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    return re.compile(rf"(?<![\w.]){words}(?!\w)")


def unmarked(text: str, phrases: list[str]) -> list[str]:
    """Numbers of a page that look measured, have no row and stand in none of the phrases.

    >>> unmarked("It takes 3 s<!-- speed/a: b -->, 4 ms or 0.5 of `0.7`, at 9 kg.", ["at 9 kg"])
    ['line 1: 4 ms', 'line 1: 0.5']
    """
    text = _ELSEWHERE.sub(_blank, FIGURE.sub(_blank, text))
    for phrase in phrases:
        text = _pattern(phrase).sub(_blank, text)
    return [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for match in _NUMBER.finditer(text)
    ]


def idle(text: str, phrases: list[str]) -> list[str]:
    """Phrases that excuse nothing: not on the page, or without a number that needs an excuse."""
    text = _ELSEWHERE.sub(_blank, FIGURE.sub(_blank, text))
    return [
        phrase
        for phrase in phrases
        if not any(_NUMBER.search(found[0]) for found in _pattern(phrase).finditer(text))
    ]


def main(words: list[str]) -> int:
    """Number of figures that are not those of the results."""
    known, wrong = results(), 0
    for page in pages():
        text = page.read_text("utf-8")
        if "--write" in words and (new := renewed(text, known)) != text:
            page.write_text(new, "utf-8")
            text = new
        for one in figures(page, text, known):
            if one.shown != one.measured:
                wrong += 1
                have = "no such row" if one.measured is None else f"measured {one.measured}"
                where = page.relative_to(ROOT)
                print(f"{where}: {one.shown} of {one.benchmark}: {one.row}: {have}")
        for line in unmarked(text, facts_of(page)):
            wrong += 1
            print(f"{page.relative_to(ROOT)}, {line}: has no row in the results")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
