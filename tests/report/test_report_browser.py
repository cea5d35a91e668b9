"""Pages are self-contained, small, and work in a real browser."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from taufit.report import fit_page, motion_page
from taufit.robot import read_robot

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page about a fit and one about a motion, from a simulated arm."""
    from taufit.excitation import default_limits, design
    from taufit.sim import Twin
    from taufit.sim.preset import typical_effects, typical_rotor
    from taufit.workflow import identify

    robot = read_robot("ur5")
    planned = design(robot, seconds=0.5)
    twin = Twin(typical_rotor(robot), typical_effects(robot), rate_hz=125.0)
    runs = [twin.run(planned.motion, seed=seed).recording for seed in (0, 1)]
    done = identify(robot, runs[:1], holdout={"other.parquet": runs[1:]})
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "fit": fit_page(done),
        "motion": motion_page(robot, planned.motion, default_limits(robot), planned),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder, texts


@pytest.mark.parametrize("name", ["fit", "motion"])
def test_a_page_needs_nothing_from_outside_and_is_small(pages, name):
    text = pages[1][name]
    assert len(text.encode()) < 2_000_000
    # Nothing is fetched: no address, no file beside the page.
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", text)
    # With the colon: numbers packed as letters may spell the word by chance.
    assert "http:" not in text and "https:" not in text


@pytest.mark.parametrize("name", ["fit", "motion"])
def test_a_page_draws_every_chart_and_zooms(pages, name):
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: browser tests need one")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page(viewport={"width": 1100, "height": 1400})
        trouble, asked = [], []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((pages[0] / f"{name}.html").as_uri())
        page.wait_for_timeout(200)
        blank = page.evaluate(
            """() => [...document.querySelectorAll('figure canvas')].filter(c => {
                const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                return !d.some(x => x !== 0);
            }).length"""
        )
        canvas = page.locator("figure.chart canvas").first
        canvas.scroll_into_view_if_needed()
        before = canvas.evaluate("c => c.toDataURL()")
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + 200, box["y"] + 80)
        page.mouse.down()
        page.mouse.move(box["x"] + 400, box["y"] + 80)
        page.mouse.up()
        page.mouse.move(5, 5)
        zoomed = canvas.evaluate("c => c.toDataURL()")
        canvas.dblclick(position={"x": 300, "y": 80})
        page.mouse.move(5, 5)
        back = canvas.evaluate("c => c.toDataURL()")
        browser.close()
    assert blank == 0
    assert not trouble
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert zoomed != before and back == before


def test_thinning_keeps_the_extremes():
    from taufit.report.charts import thin

    rng = np.random.default_rng(0)
    time = np.arange(20_000.0)
    signal = rng.normal(size=20_000)
    signal[1234], signal[9876] = 50.0, -60.0
    short, (kept,) = thin(time, [signal], 500)
    assert len(short) <= 500 and np.all(np.diff(short) >= 0)
    assert kept.max() == 50.0 and kept.min() == -60.0
