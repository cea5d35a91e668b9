"""Pages are self-contained, small, and work in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.browser import LOOKS, opened, photograph, serious_findings, too_wide

from taufit.report import fit_page, motion_page
from taufit.robot import read_robot


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
def test_a_page_draws_every_chart_and_zooms(pages, browser, name):
    address = (pages[0] / f"{name}.html").as_uri()
    with opened(browser, address, viewport={"width": 1100, "height": 1400}) as page:
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
        assert blank == 0
        assert not page.trouble
        assert all(url.startswith(("file:", "data:")) for url in page.asked)
    assert zoomed != before and back == before


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["fit", "motion"])
def test_a_page_is_accessible_light_dark_and_on_a_phone(pages, browser, name, look):
    with opened(browser, (pages[0] / f"{name}.html").as_uri(), **LOOKS[look]) as page:
        page.wait_for_timeout(200)
        assert serious_findings(page) == []
        assert too_wide(page) == 0
        assert not page.trouble
        unnamed = page.evaluate(
            "[...document.querySelectorAll('canvas, img, svg')].filter(c => "
            "!c.getAttribute('aria-label') && !c.getAttribute('alt') "
            "&& !c.getAttribute('aria-hidden') && !c.closest('[aria-hidden]')).length"
        )
        assert unnamed == 0
        photograph(page, f"report_{name}_{look}.png")


def test_thinning_keeps_the_extremes():
    from taufit.report.charts import thin

    rng = np.random.default_rng(0)
    time = np.arange(20_000.0)
    signal = rng.normal(size=20_000)
    signal[1234], signal[9876] = 50.0, -60.0
    short, (kept,) = thin(time, [signal], 500)
    assert len(short) <= 500 and np.all(np.diff(short) >= 0)
    assert kept.max() == 50.0 and kept.min() == -60.0
