"""The old names on docs/upgrade.md work with a warning, and the new names exist."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import warnings
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


def test_old_keywords_are_accepted_with_one_warning_each():
    for (function,), (old,), (new,) in table("Keywords accepted until 0.3"):
        called = f"{function.rpartition('.')[2]}({old}=...) is now {new}="
        with (
            warnings.catch_warnings(record=True) as heard,
            pytest.raises(TypeError, match=f"{new} twice"),
        ):
            warnings.simplefilter("always")
            resolve(function)(**{old: None, new: None})
        assert len(heard) == 1 and called in str(heard[0].message)


def test_every_keyword_of_version_0_1_is_accepted():
    """The list was made from the signatures of `taufit.__all__` of 0.1, without results and caches
    that only the library makes."""
    names = {
        (function.removeprefix("taufit."), old)
        for (function,), (old,), _ in table("Keywords accepted until 0.3")
    }
    listed = Path(__file__).with_name("keywords_0_1.txt").read_text("utf-8").splitlines()
    assert len(listed) > 150
    for line in listed:
        function, keyword = line.split()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            parameters = inspect.signature(resolve(f"taufit.{function}")).parameters
        is_open = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        assert keyword in parameters or (function, keyword) in names or is_open, line


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
