"""The mapper in a real browser: a log nobody has described becomes a map by one choice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_mapper import in_newton_metres, opened_desk, write_log
from tests.browser import findings, opened, too_wide, until

from taufit.live.mapper.mapping_session import MappingSession
from taufit.recording import read_recording
from taufit.robot import read_robot

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
READY = "taufit.state !== null && document.body.getAttribute('aria-busy') === 'false'"


def work(browser, desk, robot, fit=False, **look):
    """Choose the robot, write the map, fit where asked: what the page said on the way."""
    with opened_desk(desk) as served, opened(browser, served.place.url, **look) as page:
        until(page, READY)
        if robot in desk.likely_robots():
            page.select_option("#robot", robot)
        else:
            page.set_input_files("#file", robot)
        until(page, f"taufit.state.robot !== null && {READY}")
        said = {"check": page.inner_text("#check"), "read": page.inner_text("#read")}
        page.click("#save")
        until(page, "document.querySelector('#saved').textContent !== ''")
        if fit:
            page.click("#fit")
            until(page, "['done', 'failed'].includes(taufit.state.fit.state)", 300)
            said["fit"] = page.inner_text("#fitted")
            until(page, "!document.querySelector('#report').classList.contains('hidden')")
            with page.context.expect_page() as other:
                page.click("#report")
            other.value.wait_for_load_state()
            said["report"] = other.value.title()
        said["choices"] = page.evaluate("taufit.choices")
        assert page.trouble == [], page.trouble
        assert all(url.startswith(served.place.address) for url in page.asked)
    return said


def test_a_log_without_a_header_becomes_a_map_a_fit_and_a_report(browser, tmp_path, empty):
    path = write_log(in_newton_metres(empty), tmp_path / "log.csv", header=False)
    desk = MappingSession(path, tmp_path / "map.yaml", tmp_path / "model.json")
    said = work(browser, desk, "ur10", fit=True)
    assert said["choices"] == 1 and said["check"].startswith("Yes")
    assert "6 joints" in said["read"] and "residuals are" in said["fit"]
    assert "Torque model" in said["report"] and (tmp_path / "model.json").exists()
    assert read_recording(path, column_map=tmp_path / "map.yaml").joints == 6


@pytest.mark.parametrize("name", ["ur10", "cell 7"])
def test_the_list_shows_a_robot_given_beforehand(browser, tmp_path, empty, name):
    path = write_log(in_newton_metres(empty), tmp_path / "log.csv")
    desk = MappingSession(path, tmp_path / "map.yaml", tmp_path / "model.json")
    desk.set_robot(replace(read_robot("ur10"), name=name))
    with opened_desk(desk) as served, opened(browser, served.place.url) as page:
        until(page, READY)
        assert page.inner_text("#robot option:checked") == name
        page.select_option("#robot", "ur3")
        until(page, f"taufit.state.robot === 'ur3' && {READY}")
        assert page.inner_text("#robot option:checked") == "ur3"


def test_units_and_roles_are_changed_by_hand(browser, tmp_path, empty):
    path = write_log(in_newton_metres(empty), tmp_path / "log.csv")
    desk = MappingSession(path, tmp_path / "map.yaml", tmp_path / "model.json")
    with opened_desk(desk) as served, opened(browser, served.place.url) as page:
        until(page, READY)
        page.select_option("#quantities label:has-text('torque') select", "mN m")
        until(page, f"taufit.state.units.torque === 'mN m' && {READY}")
        role = "#columns tbody tr:nth-child(8) select >> nth=0"
        page.select_option(role, "")
        until(page, "document.querySelector('#problem').textContent.includes('number them')")
        assert page.is_disabled("#save") and page.is_disabled("#fit")
        page.select_option(role, "velocity")
        page.select_option("#columns tbody tr:nth-child(8) select >> nth=1", "1")
        until(page, "document.querySelector('#problem').textContent === '' && " + READY)
        assert not page.is_disabled("#save")
        # A refused order is the one thing the browser itself notes.
        assert all("409" in text for text in page.trouble)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_findings_of_axe_are_none(browser, tmp_path, empty, look):
    path = write_log(in_newton_metres(empty), tmp_path / "log.csv")
    desk = MappingSession(path, tmp_path / "map.yaml", tmp_path / "model.json")
    desk.select_bundled_robot("ur10")
    wide = {"viewport": {"width": 400, "height": 800}} if look == "dark" else {}
    with (
        opened_desk(desk) as served,
        opened(browser, served.place.url, color_scheme=look, **wide) as page,
    ):
        until(page, READY)
        assert findings(page) == []
        assert too_wide(page) == 0


@pytest.mark.parametrize(
    ("file", "robot"),
    [
        ("ur10e/jointwise_motion/ur-20_01_22-joint_2.csv.gz", "ur10e"),
        ("kuka_lwr4/lwr4_run1.csv.gz", "kuka_lwr4/kuka_lwr4.urdf"),
    ],
)
def test_a_shared_recording_becomes_a_map_by_one_choice(browser, tmp_path, file, robot):
    if not (SHARED / file).exists():
        pytest.skip(f"needs {file}")
    desk = MappingSession(SHARED / file, tmp_path / "map.yaml", tmp_path / "model.json")
    said = work(browser, desk, str(SHARED / robot) if "/" in robot else robot)
    assert said["choices"] == 1 and said["check"].startswith("Yes")
    assert read_recording(SHARED / file, column_map=tmp_path / "map.yaml").joints in (6, 7)


def test_the_rate_of_a_file_without_time_is_entered(browser, tmp_path):
    files = [SHARED / "airbot_play" / f"chirp_{part}_real.csv.gz" for part in ("q", "tau")]
    if not files[0].exists():
        pytest.skip("needs airbot_play")
    desk = MappingSession(
        files[0], tmp_path / "map.yaml", tmp_path / "model.json", companions=tuple(files[1:])
    )
    with opened_desk(desk) as served, opened(browser, served.place.url) as page:
        until(page, READY)
        assert page.is_disabled("#save") and "enter its rate" in page.inner_text("#problem")
        page.fill("#rate", "100")
        page.press("#rate", "Enter")
        until(page, f"taufit.state.rate_hz === 100 && {READY}")
        page.click("#save")
        until(page, "document.querySelector('#saved').textContent !== ''")
    assert "rate_hz: 100" in (tmp_path / "map.yaml").read_text()
