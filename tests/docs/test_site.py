"""The built documentation in a real browser: light, dark and on a phone."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.browser import LOOKS, findings, opened, photograph, too_wide

ROOT = Path(__file__).parents[2]
PAGES = (
    "index.html",
    "troubleshooting.html",
    "reference/commands.html",
    "verdict.html",
    "theory.html",
    "payload.html",
    "own_friction.html",
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Answers without a word."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation as `make docs` builds it."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_no_page_links_to_scripts_styles_or_fonts_of_others(site):
    import re

    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        found = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:)?//', text)
        assert not found, page


@pytest.mark.parametrize("look", LOOKS)
def test_pages_are_accessible_quiet_and_ask_for_nothing_outside(look, address, browser):
    with opened(browser, f"{address}/index.html", **LOOKS[look]) as page:
        for name in PAGES:
            page.goto(f"{address}/{name}")
            page.wait_for_timeout(150)
            photograph(page, f"docs_{name.replace('/', '_').removesuffix('.html')}_{look}.png")
            assert findings(page) == [], name
            assert too_wide(page) <= 1, name
            assert page.evaluate("[...document.images].filter(i => !i.alt).length") == 0, name
        assert not page.trouble
        assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)


def test_the_search_finds_an_error(address, browser):
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    page.keyboard.press("/")
    page.keyboard.type("ContradictionError")
    page.wait_for_selector(".md-search-result__item", timeout=30_000)
    assert "roubleshooting" in page.inner_text(".md-search-result__list")
    page.close()
