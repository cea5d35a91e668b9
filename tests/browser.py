"""A real browser for tests of pages: headless Chromium, what a page complains about and asks for.

`browser` is a fixture of tests/conftest.py; without Chromium on the machine its tests skip.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# How pages are looked at.
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
}


@contextmanager
def launched() -> Iterator[Any]:
    """Chromium without a screen, a GPU or calls home."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: browser tests need one")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A page of its own; `page.trouble` and `page.asked` fill with complaints and requests."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.trouble, page.asked = [], []
    page.on("console", lambda message: page.trouble.append(message.text))
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(url)
    try:
        yield page
    finally:
        context.close()


def until(page: Any, expression: str, seconds: float = 60.0) -> None:
    """Wait until an expression holds; a page's policy may let no text be evaluated in it."""
    for _ in range(int(seconds / 0.05)):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{expression} did not come true within {seconds} s")


def findings(page: Any) -> list[tuple[str, list[Any]]]:
    """All findings of axe, of any grade: (rule, the first elements)."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    return [
        (found["id"], [node["target"] for node in found["nodes"]][:4])
        for found in axe.Axe().run(page).response["violations"]
    ]


def too_wide(page: Any) -> int:
    """Pixels by which a page sticks out sideways."""
    return max(0, page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def photograph(page: Any, name: str) -> None:
    """Keep a picture in the folder TAUFIT_SCREENSHOTS, where that is set, to be looked at."""
    if folder := os.environ.get("TAUFIT_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / name))
