"""Pages of every kind in a browser: accessible with all folds open, whole, quiet."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.browser import LOOKS, findings, opened, photograph, too_wide

sys.path.insert(0, str(Path(__file__).parent))

from sample_pages import PAGES, fleet


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Files of all pages."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {name: make() for name, make in PAGES.items()}
    texts["fleet"] = fleet(folder / "recordings")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [*PAGES, "fleet"])
def test_a_page_is_accessible_with_all_folds_open(pages, browser, name):
    for look, settings in LOOKS.items():
        with opened(browser, (pages / f"{name}.html").as_uri(), **settings) as page:
            page.wait_for_timeout(100)
            photograph(page, f"{name}_{look}.png")
            page.evaluate("document.querySelectorAll('details').forEach(f => { f.open = true; })")
            page.wait_for_timeout(100)
            assert findings(page) == [], look
            assert too_wide(page) == 0, look
            assert page.trouble == []
            assert all(url.startswith(("file:", "data:")) for url in page.asked)


@pytest.mark.parametrize("name", [*PAGES, "fleet"])
def test_a_page_shows_two_statements_and_a_picture_first(pages, browser, name):
    with opened(
        browser,
        (pages / f"{name}.html").as_uri(),
        viewport={"width": 1280, "height": 800},
    ) as page:
        assert page.locator(".statement").count() == 2
        picture = page.locator("canvas, .strips svg").first.bounding_box()
        assert picture["y"] + picture["height"] < 800
        assert page.evaluate("document.documentElement.scrollHeight") <= 1600


def test_a_page_with_a_fault_is_found(pages, browser):
    """The check itself: a table head without words is reported."""
    text = (pages / "tracking.html").read_text("utf-8").replace(">recording</th>", "></th>")
    file = pages / "fault.html"
    file.write_text(text, encoding="utf-8")
    with opened(browser, file.as_uri()) as page:
        page.evaluate("document.querySelectorAll('details').forEach(f => { f.open = true; })")
        assert [rule for rule, _ in findings(page)] == ["empty-table-header"]


def test_paper_is_white_and_folds_are_open_when_printed(pages, browser):
    paper = "getComputedStyle(document.documentElement).getPropertyValue('--paper')"
    with opened(browser, (pages / "servo.html").as_uri(), **LOOKS["dark"]) as page:
        assert page.evaluate(paper) == "#12181e"
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(paper) == "#ffffff"
        assert page.locator("details:not([open])").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(paper) == "#12181e"
        assert page.trouble == []
