"""The live page in a real browser: it draws, misses nothing, asks nobody else, reads aloud."""

from __future__ import annotations

import numpy as np
import pytest
from pretended import Ticking
from served import watched
from tests.browser import LOOKS, findings, opened, too_wide, until

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


def test_findings_of_axe_are_none(browser):
    for look in LOOKS.values():
        with watched() as served, opened(browser, served.place.url, **look) as page:
            until(page, "taufit.count.received > 1500")
            page.evaluate("document.querySelectorAll('details').forEach(f => { f.open = true; })")
            assert findings(page) == []


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


class Spiked(Ticking):
    """A robot whose torque is a hundred times too large at one sample of every thousand."""

    def read(self, seconds):
        block = super().read(seconds)
        if block is not None:
            tall = np.round(block.time * self.rate_hz).astype(int) % 1000 == 999
            block.values["signal"][tall] *= 100.0
        return block


INK_OUTSIDE = """() => taufit.figures.flatMap(figure => figure.panels).map(panel => {
    const [left, top, right, bottom] = panel.plot, ratio = devicePixelRatio, c = panel.canvas;
    const pen = c.getContext('2d'), clear = (x, y, w, h) => {
        const d = pen.getImageData(x * ratio, y * ratio, w * ratio, h * ratio).data;
        return !d.some(v => v);
    };
    return clear(left + 2, 0, right - left - 4, top - 1);
})"""


def test_a_spike_stays_within_its_panel(browser):
    with watched(Spiked()) as served, opened(browser, served.place.url, **LOOKS["light"]) as page:
        until(page, "taufit.count.received > 2500")
        assert all(page.evaluate(INK_OUTSIDE))
        boxes = page.evaluate(
            "[...document.querySelectorAll('#charts canvas')].map(c => c.getBoundingClientRect())"
        )
        for k, one in enumerate(boxes):
            for other in boxes[k + 1 :]:
                apart = (
                    one["right"] <= other["left"]
                    or other["right"] <= one["left"]
                    or one["bottom"] <= other["top"]
                    or other["bottom"] <= one["top"]
                )
                assert apart


def test_charts_zoom_move_and_follow_again(browser):
    with watched() as served, opened(browser, served.place.url, has_touch=True) as page:
        until(page, "taufit.count.received > 1500")
        canvas = page.locator("#charts canvas").first
        canvas.focus()
        page.keyboard.press("+")
        view = page.evaluate("taufit.group.view")
        page.wait_for_timeout(400)
        assert view is not None and page.evaluate("taufit.figures[3].panels[1].view") == view
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("taufit.group.view[0]") < view[0]
        page.keyboard.press("0")
        before = page.evaluate("taufit.group.range[1]")
        until(page, f"taufit.group.range[1] > {before}")
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 160, box["y"] + 40)
        page.mouse.move(box["x"] + 180, box["y"] + 40)
        page.mouse.up()
        low, high = page.evaluate("taufit.group.view")
        assert 0 < high - low < 10
        page.mouse.move(box["x"] + 150, box["y"] + 40)
        assert "meas" in page.locator("#charts .note").first.inner_text()
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
        assert page.evaluate("taufit.group.view[1] - taufit.group.view[0]") < high - low
        page.mouse.dblclick(box["x"] + 150, box["y"] + 40)
        assert page.evaluate("taufit.group.view") is None
        session = page.context.new_cdp_session(page)
        y, middle = box["y"] + 40, box["x"] + 150
        for kind, half in (("touchStart", 20), ("touchMove", 60), ("touchEnd", None)):
            points = [] if half is None else [
                {"x": middle - half, "y": y, "id": 0}, {"x": middle + half, "y": y, "id": 1}
            ]  # fmt: skip
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert page.evaluate("taufit.group.view") is not None
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as CSV").click()
        lines = download.value.path().read_text().splitlines()
        assert lines[0].startswith("time [s],") and "measured [N m]" in lines[0]
        assert len(lines) > 20
        assert page.trouble == []


def test_nothing_is_drawn_in_a_hidden_tab_and_nothing_is_lost(browser):
    with watched() as served, opened(browser, served.place.url) as page:
        until(page, "taufit.count.frames > 5")
        page.evaluate(
            "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })"
        )
        page.wait_for_timeout(200)
        frames, received = page.evaluate("[taufit.count.frames, taufit.count.received]")
        until(page, f"taufit.count.received > {received + 500}")
        assert page.evaluate("taufit.count.frames") == frames
        assert page.evaluate("taufit.count.missing") == 0


def test_the_history_keeps_every_sample_and_columns_keep_the_extremes(browser):
    with watched(Spiked()) as served, opened(browser, served.place.url) as page:
        until(page, "taufit.count.received > 3000")
        held, top_fine, top_coarse = page.evaluate(
            """() => { const k = taufit.settings.fields.indexOf('torque');
                const top = (h) => h.y(k, 2).reduce((a, b) => Math.max(a, b), -Infinity);
                return [taufit.fine.x().length - taufit.count.received, top(taufit.fine),
                    top(taufit.coarse)]; }"""
        )
        assert held == 0 and top_fine == top_coarse > 200.0
