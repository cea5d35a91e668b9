"""Figures in README and docs that come from a benchmark, kept equal to benchmarks/results.json.

A figure is followed by a comment that names its row, which readers of the page do not see:

    0.040<!-- accuracy/real_robots: Panda nrmse unseen -->
    4.0 %<!-- accuracy/real_robots: Panda nrmse unseen x100 -->

`python -m benchmarks.figures` lists figures that differ from the results, and rows that are gone;
with --write it puts the measured figures into the pages, with as many digits as there were.
`make bench` does so at its end.
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
FIGURE = re.compile(
    r"(?P<number>-?\d+(?:\.\d+)?(?:e-?\d+)?)(?P<unit>[^\d\n|<]{0,12})"
    r"<!-- (?P<benchmark>(?:speed|accuracy)/\w+): (?P<row>[^\n]+?)(?: x(?P<scale>\d+))? -->"
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


def results() -> dict[tuple[str, str], float]:
    """{(benchmark, row): value} of the last run."""
    rows = json.loads(RESULTS.read_text("utf-8"))["rows"]
    return {(row["benchmark"], row["name"]): row["value"] for row in rows}


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
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
