"""Pages of contacts, payloads and fleets in a browser: accessible, whole, and in agreement."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.browser import LOOKS, findings, opened, photograph, too_wide

from taufit.report.dot_strip import dot_strip


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of a push and one of a load, of a simulated arm."""
    import taufit
    from taufit.contact import find_contacts
    from taufit.payload import identify_payload
    from taufit.report.contact_page import contact_page
    from taufit.report.payload_page import payload_page
    from taufit.sim import HandPush, Twin, random_fourier
    from taufit.sim.payload import CarriedPayload

    robot = taufit.read_robot("ur3e")
    twin = Twin.typical(robot)
    run = twin.run(random_fourier(robot, seed=1), seed=1).recording
    model = taufit.identify(robot, run, friction="linear").model
    pushes = tuple(
        HandPush(start=start, duration=0.4, force=(0.0, force, 10.0))
        for start, force in ((3.0, 60.0), (6.0, 30.0))
    )
    pushed = replace(twin, effects=replace(twin.effects, pushes=pushes))
    contacts = find_contacts(
        model, pushed.run(random_fourier(robot, seed=2), seed=2, rest=(1.0, 1.0)).recording
    )
    load = CarriedPayload.lump(1.5, (0.0, 0.0, 0.05))
    carried = identify_payload(
        model, twin.run(random_fourier(robot, seed=3), seed=3, payload=load).recording
    )
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "contact": contact_page(contacts, model, "run.parquet"),
        "payload": payload_page(carried, model, "run.parquet"),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return SimpleNamespace(folder=folder, texts=texts, contacts=contacts, carried=carried)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["contact", "payload"])
def test_a_page_is_accessible_with_all_folds_open(pages, browser, name, look):
    with opened(browser, (pages.folder / f"{name}.html").as_uri(), **LOOKS[look]) as page:
        page.wait_for_timeout(200)
        photograph(page, f"{name}_{look}.png")
        page.evaluate("document.querySelectorAll('details').forEach(f => { f.open = true; })")
        page.wait_for_timeout(200)
        assert findings(page) == []
        assert too_wide(page) == 0
        assert page.trouble == []
        assert all(url.startswith(("file:", "data:")) for url in page.asked)


def test_the_strongest_contact_is_that_of_the_largest_peak(pages):
    strongest = max(pages.contacts.contacts, key=lambda contact: contact.peak)
    number = 1 + pages.contacts.contacts.index(strongest)
    text = pages.texts["contact"]
    assert f"the strongest {strongest.peak:.0f} N" in text
    assert f"No. {number}, on {strongest.link}" in text
    assert f'id="contact-{number}" checked' in text


def test_the_numbers_of_contacts_choose_the_arm(pages, browser):
    with opened(browser, (pages.folder / "contact.html").as_uri()) as page:
        shown = page.locator(".pick figure:visible")
        assert shown.count() == 1
        page.get_by_label("2", exact=True).check(force=True)
        assert "No. 2" in shown.inner_text()


def test_no_page_has_a_negative_zero_or_an_ascii_minus_before_digits(pages):
    for text in pages.texts.values():
        words = re.sub(r"<(script|style|code|svg).*?</\1>|<[^>]+>", " ", text, flags=re.S)
        assert not re.search(r"[-−]0(\.0+)?(?![\d.])", words)


def test_every_robot_is_a_dot_and_outliers_have_names():
    values = np.array([0.0, 1.0, -3.0, 120.0])
    text = dot_strip("1 base", values, list("abcd"), [False, False, False, True], 60.0)
    assert text.count("<circle") == 4 and ">d</text>" in text and ">a</text>" not in text
    assert text.count('text-anchor="middle" font-size="12"') >= 2
    many = np.random.default_rng(0).normal(0, 10, 500)
    crowd = dot_strip("1 base", many, [str(k) for k in range(500)], [False] * 500, np.inf)
    assert "<circle" not in crowd and crowd.count("<rect") > 10
