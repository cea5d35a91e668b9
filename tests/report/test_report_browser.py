"""Pages are self-contained, small, and work in a real browser."""

from __future__ import annotations

import re
from dataclasses import replace

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
    from taufit.report.charts import reduce_samples

    rng = np.random.default_rng(0)
    time = np.arange(20_000.0)
    signal = rng.normal(size=20_000)
    signal[1234], signal[9876] = 50.0, -60.0
    short, (kept,) = reduce_samples(time, [signal], 500)
    assert len(short) <= 500 and np.all(np.diff(short) >= 0)
    assert kept.max() == 50.0 and kept.min() == -60.0


@pytest.fixture(scope="module")
def zeros_page(tmp_path_factory):
    """A fit of an arm with shifted encoders, a spring and a compensator nobody described."""
    import taufit
    from taufit.robot import Compensator
    from taufit.sim import Twin
    from taufit.sim.random_motion import random_fourier

    spring = Compensator(1, "spring", base_arm=0.45, link_arm=0.16, angle=1.9)
    robot = replace(read_robot("kr5"), compensators=(spring,))
    run = Twin.typical(robot).run(random_fourier(robot, seed=1)).recording
    shifted = replace(run, position=run.position - np.radians([0.0, 0.0, 0.0, 3.0, 0.0, 0.0]))
    done = taufit.identify(
        robot,
        [shifted],
        friction="linear",
        joint_zeros="1,3,4",
        compensator="3",
        ignore_contradictions=True,
    )
    text = fit_page(done)
    file = tmp_path_factory.mktemp("zeros") / "fit.html"
    file.write_text(text, encoding="utf-8")
    return file, text, done


def test_zeros_and_compensators_are_on_the_page_with_what_to_do(zeros_page):
    _, text, done = zeros_page
    section = text.split("Encoder zeros and gravity compensators</h2>")[1].split("</section>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in section.split("<tr>")[1:]]
    rows = {tuple(row[:2]) if "balance" in row[1] else row[0]: row for row in cells if row}
    value = done.model.robot.joint_zeros[3]
    assert rows["joint_a4"][1] == f"{np.degrees(value):.4g}" and rows["joint_a4"][3] == "deg"
    assert f"zero: {value:.6g} (rad)" in rows["joint_a4"][4]
    assert rows["joint_a1"][2] == "–" and "Not identifiable" in rows["joint_a1"][4]
    assert "joint_a2" not in rows
    k = done.model.layout.index("joint_2.balance_rate")
    assert rows["joint_a2", "balance_rate"][2] == f"{done.model.values[k]:.4g}"
    assert rows["joint_a2", "balance_rate"][4] == "N/m"
    assert "--compensator 3" in rows["joint_a3", "balance_sin"][5]


def test_a_fit_without_zeros_and_compensators_does_not_mention_them(pages):
    assert "gravity compensators" not in pages[1]["fit"]


@pytest.mark.parametrize("look", LOOKS)
def test_the_table_of_zeros_fits_the_page(zeros_page, browser, look):
    with opened(browser, zeros_page[0].as_uri(), **LOOKS[look]) as page:
        page.wait_for_timeout(200)
        assert serious_findings(page) == []
        assert too_wide(page) == 0
        page.get_by_role("heading", name="Encoder zeros and gravity compensators").evaluate(
            "h => h.scrollIntoView()"
        )
        photograph(page, f"report_zeros_{look}.png")
