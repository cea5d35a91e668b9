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


def test_pages_with_results_of_real_robots_mark_them():
    for name in ("README.md", "docs/real_robots.md"):
        assert "<!-- accuracy/real_robots: " in (figures.ROOT / name).read_text("utf-8")
