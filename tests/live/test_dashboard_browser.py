"""The live page in a real browser: it draws, misses nothing, asks nobody else, reads aloud."""

from __future__ import annotations

import numpy as np
import pytest
from pretended import Ticking
from served import watched
from tests.browser import LOOKS, opened, serious_findings, too_wide, until

from taufit.dynamics import forward_kinematics

BLANK = """() => [...document.querySelectorAll('canvas')].filter(c => {
    const box = c.getBoundingClientRect();
    if (box.top > innerHeight || box.bottom < 0) return false;
    return !c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(x => x);
}).map(c => c.id)"""


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_draws_everything_and_asks_nobody_else(browser, look):
    with watched() as served, opened(browser, served.place.url, **LOOKS[look]) as page:
        until(page, "taufit.count.received > 1500 && taufit.count.frames > 20")
        assert page.evaluate(BLANK) == []
        assert page.evaluate("taufit.count.missing") == 0
        assert too_wide(page) == 0
        until(page, "document.querySelectorAll('#events li').length > 0")
        assert "kg" in page.inner_text("#mass") and "°" in page.inner_text("#table")
        assert page.trouble == []
        assert all(url.startswith(served.place.address) for url in page.asked)


def test_every_sample_reaches_the_page(browser):
    source = Ticking(limit=2500)
    with watched(source) as served, opened(browser, served.place.url) as page:
        until(page, "taufit.count.ended")
        count = page.evaluate("taufit.count")
        first = 2500 - count["received"]
        # The page may come after the first samples; from then on nothing is missing.
        assert count["missing"] == 0 and 0 <= first < 2500 and count["received"] > 500
        until(page, "document.querySelector('#state').textContent.includes('ended')")


def test_the_token_leaves_the_address_and_a_reload_works(browser):
    with watched() as served, opened(browser, served.place.url) as page:
        until(page, "taufit.count.received > 10")
        assert page.url == f"{served.place.address}/"
        page.reload()
        until(page, "window.taufit && taufit.count.received > 10")
        assert page.url == f"{served.place.address}/"


def test_serious_findings_of_axe_are_none(browser):
    for look in LOOKS.values():
        with watched() as served, opened(browser, served.place.url, **look) as page:
            until(page, "taufit.count.received > 1500")
            assert serious_findings(page) == []


@pytest.mark.parametrize("robot", ["ur10e", "panda"])
def test_the_page_and_the_library_see_one_arm(browser, robot):
    with watched(robot=robot) as served, opened(browser, served.place.url) as page:
        arm = served.robot
        q = np.random.default_rng(0).uniform(-2, 2, (5, arm.joints))
        for row in q:
            seen = np.array(page.evaluate("q => taufit.points(q)", row.tolist()))
            want = forward_kinematics(arm, row[None])[0, :, :3, 3]
            # Rounding of the page's own arithmetic.
            np.testing.assert_allclose(seen[1:], want, atol=1e-12)


def test_the_page_is_used_by_keyboard_alone(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with watched() as served, opened(browser, served.place.url) as page:
        until(page, "taufit.count.received > 100")
        page.keyboard.press("Space")
        assert page.evaluate("taufit.count.paused")
        page.keyboard.press("Space")
        assert not page.evaluate("taufit.count.paused")
        page.focus("#arm")
        before = page.evaluate("document.querySelector('#arm').toDataURL()")
        page.keyboard.press("Space")
        page.keyboard.press("Space")
        page.keyboard.press("ArrowLeft")
        until(page, f"document.querySelector('#arm').toDataURL() !== '{before}'")
        page.keyboard.press("r")
        until(page, "document.querySelector('#record').textContent.includes('Stop')")
        page.wait_for_timeout(300)
        page.keyboard.press("r")
        until(page, "document.querySelector('#about').textContent.includes('recorded')")
        assert page.trouble == []
    assert len(list(tmp_path.glob("live-*.parquet"))) == 1


def test_the_page_says_when_nothing_comes(browser):
    class Silent(Ticking):
        def read(self, seconds):
            return None if self.sent > 200 else super().read(seconds)

    with watched(Silent()) as served, opened(browser, served.place.url) as page:
        until(page, "/no samples|waiting/.test(document.querySelector('#state').textContent)")
