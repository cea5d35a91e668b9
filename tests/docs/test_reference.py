"""Reference and troubleshooting leave nothing out."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
import yaml

import taufit
from taufit.cli.app import VERBS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
pages = importlib.import_module("reference_pages")
TROUBLE = (ROOT / "docs/troubleshooting.md").read_text("utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_and_option_is_in_the_reference(verb):
    import typer

    from taufit.cli.app import typer_app

    text = pages.command_page()
    section = text.partition(f"## taufit {verb}\n")[2].partition("\n## taufit ")[0]
    command = typer.main.get_command(typer_app(verb))
    for one in getattr(command, "commands", {verb: command}).values():
        for option in one.params:
            # Former spellings are hidden; docs/upgrade.md lists them.
            for word in option.opts if option.name != "help" else ():
                is_listed = f"`{word}`" in section
                assert is_listed != option.hidden or option.param_type_name == "argument", word


@pytest.mark.parametrize("room", pages.rooms())
def test_every_public_name_of_a_room_is_in_the_reference(room):
    text = pages.room_page(room)
    module = importlib.import_module(f"taufit.{room}")
    for name in pages.public(module):
        assert f"\n## {name}\n" in text


def test_the_first_names_are_in_the_reference_with_their_examples():
    text = pages.first_names_page()
    for name in taufit.__all__:
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert ">>> import" in section, name
        assert (inspect.getdoc(getattr(taufit, name)) or "")[:40].split("\n")[0] in section


def test_every_error_has_a_cause_and_a_remedy():
    for name in pages.error_classes():
        row = re.search(rf"^\| `{name}` \| (.+) \| (.+) \|$", TROUBLE, re.M)
        assert row and len(row[1]) > 20 and len(row[2]) > 10, f"{name} is not in troubleshooting.md"


def test_every_finding_has_a_cause_and_a_remedy():
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| .+ \| .+ \|$", TROUBLE, re.M)
    listed = set(re.findall(r"`([a-z_]+)`", " ".join(rows)))
    missing = pages.finding_kinds() - listed
    assert not missing, f"findings that troubleshooting.md does not explain: {sorted(missing)}"


def test_every_message_is_in_the_reference():
    text = pages.message_page()
    count = 0
    for kind, room, said in pages.messages():
        if said.strip(". "):
            count += 1
            assert f"| {pages._cell(said)} | {room} |" in text, (kind, said)
    assert count > 500


def test_the_navigation_has_pages_that_exist_and_starts_with_the_first_hour():
    listed = re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    made = pages.pages()
    for name in listed:
        assert name in made or (ROOT / "docs" / name).exists(), name
    docs = ROOT / "docs"
    assert {str(page.relative_to(docs)) for page in docs.rglob("*.md")} <= {*listed}
    assert listed[:4] == ["index.md", "your_own_robot.md", "record_well.md", "verdict.md"]


def test_the_theme_asks_for_nothing_from_outside():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    page = yaml.safe_load(text)
    assert page["theme"]["font"] is False
    assert not re.search(r"https?://", text)
    schemes = [one["scheme"] for one in page["theme"]["palette"]]
    assert schemes == ["default", "slate"]


def test_keys_of_works_in_the_code_are_in_the_references():
    known = (ROOT / "docs/references.md").read_text("utf-8")
    for path in pages.SOURCE.rglob("*.py"):
        for key in re.findall(r"\[[A-Z][A-Za-z]+\d{4}\]", path.read_text("utf-8")):
            assert key in known, f"{path.name}: {key}"
