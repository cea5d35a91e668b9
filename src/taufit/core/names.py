"""Safe names and texts: names from files are data, escaped for each output language.

A robot, joint or recording may have any name. Control characters are removed from names; names in
C, URScript, YAML or a terminal are escaped here. XML and HTML are escaped by their libraries.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from taufit.core.errors import TaufitError

P = ParamSpec("P")
R = TypeVar("R")

# Longer names are errors or attacks.
MAX_NAME_LENGTH = 200
_WHITESPACE = {"\t": " ", "\n": " ", "\r": " ", "\x0b": " ", "\x0c": " ", "\x85": " "}


def printable(text: str) -> str:
    """Text without terminal control: escape sequences, bells, writing direction.

    Line breaks and tabs stay; all other characters of the Unicode categories Cc, Cf and Cs, and the
    separators of lines and paragraphs, are escaped as \\\\x1b or \\\\u202e.
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or not _is_control(c) else _escape_character(c) for c in text)


def clean_name(text: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Name as one line of limited length without control characters."""
    out = text
    if not text.isprintable():
        single_line = (_WHITESPACE.get(c, c) for c in text)
        out = "".join(c for c in single_line if not _is_control(c))
    return out if len(out) <= max_length else out[: max_length - 3] + "..."


def c_comment(text: str) -> str:
    """Text for a C comment: one line of characters that cannot end or continue it."""
    return re.sub(r"[^A-Za-z0-9 .,:;()=+_-]", "_", clean_name(text, 2000))


def c_header(name: str) -> str:
    """Header name for `#include "..."`; raises for special characters."""
    if not re.fullmatch(r"[\w .+()@,=~-]+", name):
        raise TaufitError(
            f"{printable(name)!r} cannot stand in a C #include: choose an output name of letters, "
            "digits and . + - _."
        )
    return name


def c_identifier(text: str) -> str:
    """A C identifier made of ASCII letters, digits and underscores."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:100]
    return name if name and not name[0].isdigit() else f"_{name}"


def yaml_scalar(text: str) -> str:
    """Text as a quoted YAML scalar in ASCII.

    Unlike JSON, without surrogate pairs, which YAML reads as two characters.
    """
    return '"' + "".join(map(_escape_yaml, text)) + '"'


def _escape_yaml(c: str) -> str:
    if " " <= c <= "~":
        return f"\\{c}" if c in '"\\' else c
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def _is_control(c: str) -> bool:
    # The two joiners only shape letters and emoji.
    if c in "\u200c\u200d":
        return False
    code = ord(c)
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return True
    return c < " " or (c > "~" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp"))


def _escape_character(c: str) -> str:
    code = ord(c)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def renamed_keywords(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator that accepts old keyword names (old="new") with a DeprecationWarning."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        called = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def accepting(*args: P.args, **kwargs: P.kwargs) -> R:
            renamed: dict[str, Any] = {}
            for key, value in kwargs.items():
                name = names.get(key, key)
                if name != key:
                    text = f"{called}({key}=...) is now {name}=...; {key} goes with 0.3."
                    warnings.warn(text, DeprecationWarning, stacklevel=2)
                if name in renamed:
                    raise TypeError(f"{called}() got {name} twice, once by its old name")
                renamed[name] = value
            return cast(Callable[..., R], function)(*args, **renamed)

        return accepting

    return decorate


def renamed_names(package: str, **names: str) -> Callable[[str], Any]:
    """Function `__getattr__` of a module: old names (old="new") give a DeprecationWarning."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        text = f"{package}.{name} is now {package}.{names[name]}; {name} goes with 0.3."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[package], names[name])

    return find


class RenamedAttribute:
    """Former name of an attribute or method, accepted with a DeprecationWarning.

    Args:
        name: New name of the attribute.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __set_name__(self, owner: type, old_name: str) -> None:
        self.old_name = old_name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        target = instance if instance is not None else owner
        text = f"{(owner or type(instance)).__name__}.{self.old_name} is now {self.name}; "
        warnings.warn(f"{text}{self.old_name} goes with 0.3.", DeprecationWarning, stacklevel=2)
        return getattr(target, self.name)
