"""Figures in README and docs are those of benchmarks/results.json."""

from __future__ import annotations

import doctest

import pytest
from benchmarks import figures


def test_every_marked_figure_is_the_measured_one():
    known = figures.results()
    found = [
        one
        for page in figures.pages()
        for one in figures.figures(page, page.read_text("utf-8"), known)
    ]
    wrong = [one for one in found if one.shown != one.measured]
    assert not wrong, "\n".join(str(one) for one in wrong)
    assert len(found) >= 5


def test_digits_stay_as_they_were():
    assert doctest.testmod(figures).failed == 0


@pytest.mark.parametrize(
    ("text", "fresh"),
    [
        ("0.10<!-- accuracy/a: b -->", "0.25<!-- accuracy/a: b -->"),
        ("7 %<!-- accuracy/a: b x100 --> of it", "25 %<!-- accuracy/a: b x100 --> of it"),
        ("0.10<!-- accuracy/a: gone -->", "0.10<!-- accuracy/a: gone -->"),
        ("0.10 and 3", "0.10 and 3"),
    ],
)
def test_figures_are_renewed_in_place(text, fresh):
    assert figures.renewed(text, {("accuracy/a", "b"): 0.2512}) == fresh


def test_the_readme_quotes_the_open_benchmark_alone():
    text = (figures.ROOT / "README.md").read_text("utf-8")
    sources = {match["benchmark"].partition("/")[0] for match in figures.FIGURE.finditer(text)}
    assert sources == {"open"}
    assert "<!-- accuracy/real_robots: " in (figures.ROOT / "docs/real_robots.md").read_text()


@pytest.mark.parametrize("page", figures.pages(), ids=figures.name_of)
def test_numbers_that_look_measured_have_a_row_or_are_listed_as_facts(page):
    left = figures.unmarked(page.read_text("utf-8"), figures.facts_of(page))
    assert not left, f"{page.name}: mark these with a row of results.json, or reword: {left}"


def test_facts_are_listed_only_where_they_are_needed():
    texts = {figures.name_of(page): page.read_text("utf-8") for page in figures.pages()}
    texts["*"] = "\n".join(texts.values())
    for page, phrases in figures.facts().items():
        assert page in texts, f"facts.txt: there is no page {page}"
        assert not figures.idle(texts[page], phrases), f"facts.txt: {page}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("within 5 % of it", ["line 1: 5 %"]),
        ("an error of .031 and\n1.5 kg", ["line 1: .031", "line 2: 1.5 kg"]),
        ("27-43 ms CPU, 17 × as fast, 3 µs", ["line 1: 43 ms", "line 1: 17 ×", "line 1: 3 µs"]),
        ("| 0.97 1.02 |", ["line 1: 0.97", "line 1: 1.02"]),
        ("0.5<!-- accuracy/a: b --> and 7 s<!-- speed/a: b -->", []),
        ("```text\n3.2 s\n```\nand `0.1`, [this](a_0.3.md), $0.4$, six joints, 12 of 12", []),
        ("a run\nof 30 s", []),
    ],
)
def test_a_number_without_a_row_is_found(text, left):
    assert figures.unmarked(text, ["a run of 30 s"]) == left
