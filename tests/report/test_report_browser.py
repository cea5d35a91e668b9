"""Pages are self-contained, small, and work in a real browser."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.browser import LOOKS, findings, opened, photograph, too_wide, until

from taufit.core.number_text import significant
from taufit.report import fit_page, motion_page
from taufit.robot import read_robot

COMMANDS = [
    ("Plan a motion that shows more.", "taufit design ur5 -o motion.json"),
    ("Use it in a controller.", "taufit export model.json -o arm.c"),
    ("Watch it.", "taufit live run.parquet model.json"),
]


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
        "fit": fit_page(done, commands=COMMANDS, model_file="model.json"),
        "motion": motion_page(robot, planned.motion, default_limits(robot), planned),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder, texts


@pytest.mark.parametrize("name", ["fit", "motion"])
def test_a_page_needs_nothing_from_outside_and_is_small(pages, name):
    text = pages[1][name]
    assert len(text.encode()) < 1_000_000
    # Nothing is fetched: no address, no file beside the page.
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", text)
    # With the colon: numbers packed as letters may spell the word by chance.
    assert "http:" not in text and "https:" not in text


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    page.wait_for_timeout(200)


@pytest.mark.parametrize("name", ["fit", "motion"])
def test_a_page_draws_every_chart_with_two_ticks_and_a_unit_on_every_axis(pages, browser, name):
    address = (pages[0] / f"{name}.html").as_uri()
    with opened(browser, address, viewport={"width": 1100, "height": 20000}) as page:
        unfold(page)
        until(page, "[...taufitCharts.shown.values()].every(figure => figure.frames > 0)")
        panels = page.evaluate(
            """() => [...taufitCharts.shown.values()].flatMap(f => f.panels).map(p => ({
                ticks: p.ticks, ylabel: p.ylabel, xname: p.xname,
                blank: !p.canvas.getContext('2d').getImageData(0, 0, p.canvas.width,
                    p.canvas.height).data.some(x => x)}))"""
        )
        assert panels and not any(panel["blank"] for panel in panels)
        assert all(min(panel["ticks"].values()) >= 2 for panel in panels)
        assert all("[" in panel["ylabel"] and "[" in panel["xname"] for panel in panels)
        assert not page.trouble
        assert all(url.startswith(("file:", "data:")) for url in page.asked)


def test_the_first_screen_shows_verdict_joints_numbers_and_commands(pages, browser):
    address = (pages[0] / "fit.html").as_uri()
    with opened(browser, address, viewport={"width": 1280, "height": 800}) as page:
        bottoms = page.evaluate(
            """() => Object.fromEntries(['.statement', 'canvas.strip', '.numbers', '.next'].map(
                name => [name, [...document.querySelectorAll(name)].map(
                    e => e.getBoundingClientRect().bottom)]))"""
        )
        assert len(bottoms[".statement"]) == 2 and len(bottoms["canvas.strip"]) == 6
        assert page.locator(".numbers > div").count() == 3 and len(bottoms[".next"]) == 1
        assert max(value for values in bottoms.values() for value in values) <= 800
        assert page.evaluate("document.documentElement.scrollHeight") <= 1600
    with opened(browser, address, viewport={"width": 390, "height": 844}) as page:
        assert page.locator("canvas.strip").first.bounding_box()["y"] < 844 - 82


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["fit", "motion"])
def test_a_page_is_accessible_light_dark_and_on_a_phone(pages, browser, name, look):
    with opened(browser, (pages[0] / f"{name}.html").as_uri(), **LOOKS[look]) as page:
        photograph(page, f"report_{name}_{look}.png")
        unfold(page)
        assert findings(page) == []
        assert too_wide(page) == 0
        assert not page.trouble
        unnamed = page.evaluate(
            "[...document.querySelectorAll('canvas, img, svg')].filter(c => "
            "!c.getAttribute('aria-label') && !c.getAttribute('alt') "
            "&& !c.getAttribute('aria-hidden') && !c.closest('[aria-hidden]')).length"
        )
        assert unnamed == 0


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
    section = text.split("Encoder zeros and gravity compensators</h2>")[1].split("</details>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in section.split("<tr>")[1:]]
    rows = {tuple(row[:2]) if "balance" in row[1] else row[0]: row for row in cells if row}
    value = done.model.robot.joint_zeros[3]
    assert (
        rows["joint_a4"][1] == significant(float(np.degrees(value)), 4)
        and rows["joint_a4"][3] == "deg"
    )
    assert f"zero: {value:.6g} (rad)" in rows["joint_a4"][4]
    assert rows["joint_a1"][2] == "–" and "Not identifiable" in rows["joint_a1"][4]
    assert "joint_a2" not in rows
    k = done.model.layout.index("joint_2.balance_rate")
    assert rows["joint_a2", "balance_rate"][2] == significant(float(done.model.values[k]), 4)
    assert rows["joint_a2", "balance_rate"][4] == "N/m"
    assert "--compensator 3" in rows["joint_a3", "balance_sin"][5]


def test_a_fit_without_zeros_and_compensators_does_not_mention_them(pages):
    assert "gravity compensators" not in pages[1]["fit"]


@pytest.mark.parametrize("look", LOOKS)
def test_the_table_of_zeros_fits_the_page(zeros_page, browser, look):
    with opened(browser, zeros_page[0].as_uri(), **LOOKS[look]) as page:
        unfold(page)
        assert findings(page) == []
        assert too_wide(page) == 0
        page.get_by_role("heading", name="Encoder zeros and gravity compensators").evaluate(
            "h => h.scrollIntoView()"
        )
        photograph(page, f"report_zeros_{look}.png")


def test_samples_of_hours_and_fourteen_joints_keep_every_extreme_on_one_time_axis():
    from taufit.report.charts import extreme_samples

    rng = np.random.default_rng(1)
    values = rng.normal(size=(200_000, 28)).astype(np.float32)
    index = extreme_samples(values, 2_000)
    assert len(index) <= 2_000 and np.all(np.diff(index) > 0)
    assert np.array_equal(values[index].max(axis=0), values.max(axis=0))
    assert np.array_equal(values[index].min(axis=0), values.min(axis=0))
