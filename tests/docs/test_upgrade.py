"""The old names on docs/upgrade.md work with a warning, and the new names exist."""

from __future__ import annotations

import dataclasses
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "upgrade.md"


def table(heading: str) -> list[list[str]]:
    """Rows of the first table below a heading, each a list of names in its cells."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| .*`.+ \|$", section.split("\n| --- ")[1].split("\n\n")[0], re.MULTILINE)
    assert rows
    return [[re.findall(r"`(.+?)`", cell) for cell in row.split("|")[1:-1]] for row in rows]


def resolve(name: str) -> Any:
    """Module, or attribute of a module, by its dotted name."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        package, _, attribute = name.rpartition(".")
        return getattr(resolve(package), attribute)


def test_old_names_are_the_new_ones_with_a_warning():
    for (old,), (new,) in table("Names accepted until 0.3"):
        sys.modules.pop(old, None)
        with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
            former = resolve(old)
        if not isinstance(former, type(sys)):
            assert former is resolve(new)


def test_old_attributes_lead_to_the_new_ones():
    for (owner,), (old,), (new,) in table("Attributes accepted until 0.3"):
        former = vars(resolve(owner))[old]
        assert (former.name, former.old_name) == (new, old)
        assert hasattr(resolve(owner), new) or new in resolve(owner).__annotations__


def test_a_renamed_method_can_be_called_on_the_class():
    from taufit import Information

    with pytest.warns(DeprecationWarning, match="Information.nothing is now empty"):
        assert Information.nothing(("a",)).names == Information.empty(("a",)).names


def test_old_keywords_are_accepted():
    for (function,), (old,), (new,) in table("Keywords accepted until 0.3"):
        called = rf"{function.rpartition('.')[2]}\({old}=...\) is now {new}="
        with (
            pytest.warns(DeprecationWarning, match=called),
            pytest.raises(TypeError, match=f"{new} twice"),
        ):
            resolve(function)(**{old: None, new: None})


def test_a_setting_by_its_old_keyword_has_effect():
    from taufit import PayloadSettings

    with pytest.warns(DeprecationWarning):
        assert PayloadSettings(light=0.5) == PayloadSettings(light_mass=0.5) != PayloadSettings()


def test_names_without_an_alias_are_new():
    for (old,), (new,) in table("Names without an alias"):
        assert resolve(new) is not None
        if old not in ("taufit.recording.quality", "taufit.friction.FrictionInput"):
            with pytest.raises((ModuleNotFoundError, AttributeError)):
                resolve(old)


def test_attributes_without_an_alias_are_new():
    text = PAGE.read_text().split("Attributes of classes below the top-level package:")[1]
    for row in re.findall(r"^\| `taufit.+\|$", text, re.MULTILINE):
        (owner,), old, new = (re.findall(r"`(.+?)`", cell) for cell in row.split("|")[1:-1])
        owner = resolve(owner)
        fields = {field.name for field in dataclasses.fields(owner)} | {*dir(owner)}
        assert fields >= {*new} and not fields & {*old}, row
