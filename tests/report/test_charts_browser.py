"""Every gesture of the charts by mouse, keyboard and touch, and their exports."""

from __future__ import annotations

import csv
import io
import struct
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from tests.browser import opened

from taufit.report.charts import Panel, Series, chart, chart_group, figure
from taufit.report.page import Number, Section, code_block, render_page, table

VIEW = {"width": 1100, "height": 900}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    time = np.linspace(0.0, 100.0, 20_001)
    charts = []
    for k in range(3):
        wave = (k + 1.0) * np.sin(0.3 * time)
        measured = wave + 0.1 * np.sin(40.0 * time)
        measured[5_000] = 100.0 * (k + 1)
        charts.append(
            figure(
                time if k == 0 else None,
                [
                    Panel(
                        [
                            Series("band", half=np.full(2, 0.5), half_x=time[[0, -1]], about=2),
                            Series("measured", measured, wide=True),
                            Series("predicted", wave),
                        ],
                        "torque [N m]",
                    ),
                    Panel([Series("residual", difference=(1, 2))], "res. [N m]", (-1.0, 1.0)),
                ],
                caption=f"Joint {k + 1}",
                note="1 %",
                xlabel="time [s]",
                group="wave",
            )
        )
    spectrum = chart(
        np.arange(1.0, 50.0),
        [Series("density", 10.0 ** -np.arange(49.0))],
        caption="Spectrum",
        xlabel="frequency [Hz]",
        ylabel="density [N m]",
        log=True,
    )
    rows = [(f"row {k}", Number(value, f"{value:.1f}")) for k, value in enumerate(range(12, 0, -1))]
    text = render_page(
        "Charts",
        "",
        [
            Section("", chart_group(charts, "Wave", "joints")),
            Section("More", spectrum + table(("name", "value"), rows, (0,)) + code_block("ls")),
        ],
    )
    file = tmp_path_factory.mktemp("charts") / "charts.html"
    file.write_text(text + '<div style="height:3000px"></div>', encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def page(browser, address):
    with opened(browser, address, viewport=VIEW, has_touch=True) as page:
        page.wait_for_function(
            "typeof taufitCharts !== 'undefined' && taufitCharts.shown.size >= 3"
            " && [...taufitCharts.shown.values()].slice(0, 3).every(f => f.panels[0].drawn)"
        )
        settle(page)
        yield page
        assert page.trouble == []
        assert all(url.startswith(("file:", "data:", "blob:")) for url in page.asked)


def settle(page):
    """Wait until what was asked for is drawn: charts are drawn before the next frame."""
    page.wait_for_timeout(80)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def ranges(page):
    """View of every chart of the group, as drawn."""
    settle(page)
    return page.evaluate(
        "[...taufitCharts.groups.get('wave').figures].flatMap(f => f.panels.map(p => p.view))"
    )


def same(page, low, high, tolerance=0.6):
    views = ranges(page)
    assert len(views) == 6
    np.testing.assert_allclose(views, [[low, high]] * 6, atol=tolerance)


def plot(page):
    """Left, right and middle of the first chart's plot in pixels of the page."""
    box = page.locator("figure.chart canvas").first.bounding_box()
    left, _, right, _ = page.evaluate("[...taufitCharts.shown.values()][0].panels[0].plot")
    return box["x"] + left, box["x"] + right, box["y"] + 50


def zoom_in(page):
    left, right, y = plot(page)
    width = right - left
    page.mouse.move(left + 0.2 * width, y)
    page.mouse.down()
    page.mouse.move(left + 0.5 * width, y)
    page.mouse.move(left + 0.6 * width, y)
    page.mouse.up()


def test_dragging_zooms_all_charts_and_a_double_click_resets(page):
    zoom_in(page)
    same(page, 20.0, 60.0)
    left, _, y = plot(page)
    page.mouse.dblclick(left + 50, y)
    same(page, 0.0, 100.0)


def test_dragging_with_shift_moves(page):
    zoom_in(page)
    left, right, y = plot(page)
    page.keyboard.down("Shift")
    page.mouse.move(left + 0.5 * (right - left), y)
    page.mouse.down()
    page.mouse.move(left + 0.3 * (right - left), y)
    page.mouse.move(left + 0.25 * (right - left), y)
    page.mouse.up()
    page.keyboard.up("Shift")
    same(page, 30.0, 70.0)


def test_the_plain_wheel_scrolls_and_with_control_it_zooms_about_the_pointer(page):
    left, right, y = plot(page)
    page.mouse.move(left + 0.25 * (right - left), y)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    (low, high), *_ = ranges(page)
    factor = 1.0015**-400
    assert high - low == pytest.approx(100.0 * factor, rel=0.02)
    assert (25.0 - low) / (high - low) == pytest.approx(0.25, abs=0.02)
    assert page.evaluate("scrollY") == 0
    page.mouse.wheel(0, 300)
    page.wait_for_timeout(200)
    assert page.evaluate("scrollY") > 100
    assert ranges(page)[0] == [low, high]


def test_keys_zoom_move_and_reset(page):
    page.locator("figure.chart canvas").first.focus()
    page.keyboard.press("+")
    same(page, 25.0, 75.0)
    page.keyboard.press("ArrowRight")
    same(page, 35.0, 85.0)
    page.keyboard.press("ArrowLeft")
    same(page, 25.0, 75.0)
    page.keyboard.press("-")
    same(page, 0.0, 100.0)
    page.keyboard.press("+")
    page.keyboard.press("Escape")
    same(page, 0.0, 100.0)


def test_buttons_do_the_same(page):
    press = {name: page.get_by_role("button", name=name).first for name in
             ("Zoom in", "Zoom out", "Earlier", "Later", "Reset")}  # fmt: skip
    press["Zoom in"].click()
    press["Later"].click()
    same(page, 35.0, 85.0)
    press["Earlier"].click()
    press["Zoom out"].click()
    same(page, 0.0, 100.0)
    press["Zoom in"].click()
    press["Reset"].click()
    same(page, 0.0, 100.0)


@pytest.fixture
def session(page):
    return page.context.new_cdp_session(page)


def touch(session, kind, *points):
    places = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})


def test_pinching_zooms_one_finger_moves_and_a_double_tap_resets(page, session):
    left, right, y = plot(page)
    width = right - left
    touch(session, "touchStart", (left + 0.4 * width, y))
    touch(session, "touchStart", (left + 0.4 * width, y), (left + 0.6 * width, y))
    touch(session, "touchMove", (left + 0.3 * width, y), (left + 0.7 * width, y))
    touch(session, "touchEnd")
    same(page, 25.0, 75.0, 1.5)
    touch(session, "touchStart", (left + 0.6 * width, y))
    for share in (0.55, 0.5, 0.4):
        touch(session, "touchMove", (left + share * width, y))
    touch(session, "touchEnd")
    same(page, 35.0, 85.0, 2.5)
    for _ in range(2):
        touch(session, "touchStart", (left + 0.5 * width, y))
        touch(session, "touchEnd")
    same(page, 0.0, 100.0)


def test_the_cursor_is_shared_and_reads_every_chart(page):
    left, right, y = plot(page)
    page.mouse.move(left + 0.5 * (right - left), y)
    settle(page)
    notes = page.locator("figure.chart .note").all_inner_texts()[:3]
    value = np.sin(0.3 * 50.0)
    for k, note in enumerate(notes):
        assert note.startswith("time 5") or note.startswith("time 4")
        shown = note.split("predicted ")[1].split(",")[0].replace("\N{MINUS SIGN}", "-")
        assert float(shown) == pytest.approx((k + 1) * value, abs=0.15 * (k + 1))
    assert page.locator(".cursor:visible").count() == 6
    page.mouse.move(5, 880)
    settle(page)
    assert page.locator("figure.chart .note").first.inner_text() == "1 %"


def saved(page, name, index=0):
    with page.expect_download() as download:
        page.get_by_role("button", name=name).nth(index).click()
    return download.value.path().read_bytes()


def test_exports_contain_what_is_shown(page):
    zoom_in(page)
    (low, high), *_ = ranges(page)
    rows = list(csv.reader(io.StringIO(saved(page, "Save as CSV").decode())))
    assert rows[0][0] == "time [s]" and "Joint 2: measured [N m]" in rows[0]
    table_of = np.array(rows[1:], float)
    assert low <= table_of[0, 0] < table_of[-1, 0] <= high
    column = rows[0].index("Joint 3: predicted [N m]")
    np.testing.assert_allclose(table_of[:, column], 3 * np.sin(0.3 * table_of[:, 0]), atol=1e-5)
    residual = rows[0].index("Joint 1: residual [N m]")
    assert table_of[:, residual].max() == pytest.approx(100.0 - np.sin(0.3 * 25.0), rel=1e-5)

    drawing = ElementTree.fromstring(saved(page, "Save as SVG"))
    words = "".join(drawing.itertext())
    assert "Joint 1" in words and "measured" in words and "torque [N m]" in words
    assert sum(element.tag.endswith("path") for element in drawing.iter()) > 20

    picture = saved(page, "Save as PNG")
    width, height = struct.unpack(">II", picture[16:24])
    box = page.locator(".charts").bounding_box()
    assert width == 2 * np.ceil(box["width"]) and height == 2 * np.ceil(box["height"])


def test_a_hidden_series_is_neither_drawn_nor_saved(page):
    page.get_by_role("button", name="measured").first.click()
    settle(page)
    assert page.evaluate("[...taufitCharts.shown.values()][1].panels[0].drawn[1]") < 3.0
    assert b"measured" not in saved(page, "Save as CSV")


def test_reduction_keeps_a_spike_of_one_sample(page):
    drawn = page.evaluate(
        "[...taufitCharts.shown.values()].slice(0, 3).map(f => f.panels[0].drawn[1])"
    )
    assert drawn[0] > 100.0 and drawn[2] > 300.0


def test_a_logarithmic_axis_has_decades(page):
    assert page.evaluate("taufitCharts.logTicks(1e-6, 1000, 5).map(t => t[1]).join(' ')") == (
        "10⁻⁶ 10⁻⁴ 0.01 1 100"
    )
    assert page.evaluate("taufitCharts.logTicks(2, 7, 5).length") >= 2


@pytest.mark.parametrize(
    ("low", "high"), [(-1.1, 1.1), (0, 1e-4), (99.2, 99.9), (-3, 4e6), (0.13, 0.21), (-240, 12)]
)
def test_every_range_has_two_ticks_of_different_text(page, low, high):
    for most in (2, 3, 6):
        texts = page.evaluate(f"taufitCharts.linearTicks({low}, {high}, {most}).map(t => t[1])")
        assert len(texts) >= 2 and len(set(texts)) == len(texts) and "-" not in "".join(texts)


def test_tables_are_sorted_searched_and_saved(page):
    page.get_by_role("button", name="value").click()
    first = page.locator("tbody tr").first
    assert first.inner_text().startswith("row 0")
    page.get_by_role("button", name="value").click()
    assert first.inner_text().startswith("row 11")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.get_by_role("searchbox").fill("row 1")
    assert page.locator("tbody tr:visible").count() == 3
    lines = saved(page, "Save Charts as CSV").decode().split()
    assert lines[0] == "name,value" and len(lines) == 2 + 2 * 3 - 1 - 1 + 1


def test_nothing_is_drawn_in_a_hidden_tab(page):
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })"
    )
    before = page.evaluate("[...taufitCharts.shown.values()].map(f => f.frames)")
    page.evaluate("taufitCharts.groups.get('wave').set(10, 20)")
    page.wait_for_timeout(150)
    assert page.evaluate("[...taufitCharts.shown.values()].map(f => f.frames)") == before
