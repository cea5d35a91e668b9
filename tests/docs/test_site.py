"""The built documentation in a real browser: light, dark and on a phone."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = ("index.html", "troubleshooting.html", "reference/commands.html", "verdict.html")
WAYS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


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


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: browser tests need one")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


def test_no_page_links_to_scripts_styles_or_fonts_of_others(site):
    import re

    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        found = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:)?//', text)
        assert not found, page


@pytest.mark.parametrize("way", WAYS)
def test_pages_are_accessible_quiet_and_ask_for_nothing_outside(way, address, browser):
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(**WAYS[way])
    trouble: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    folder = os.environ.get("TAUFIT_SCREENSHOTS")
    for name in PAGES:
        page.goto(f"{address}/{name}")
        page.wait_for_timeout(150)
        if folder:
            shot = f"{name.replace('/', '_').removesuffix('.html')}_{way}.png"
            page.screenshot(path=str(Path(folder) / shot))
        found = Axe().run(page).response["violations"]
        grave = [
            (one["id"], [node["target"] for node in one["nodes"]][:4])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert not grave, (name, way, grave)
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 1, f"{name} is {wide} pixels wider than a {way} screen"
    page.close()
    assert not trouble
    assert all(url.startswith((address, "data:", "blob:")) for url in asked)


def test_the_search_finds_an_error(address, browser):
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    page.keyboard.press("/")
    page.keyboard.type("RefusedError")
    page.wait_for_selector(".md-search-result__item", timeout=30_000)
    assert "roubleshooting" in page.inner_text(".md-search-result__list")
    page.close()
