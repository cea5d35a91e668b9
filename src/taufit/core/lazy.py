"""Names that are imported when they are first used, so that a verb loads only what it needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


class LazyRoom(ModuleType):
    """A package that imports its public names on first use.

    A public name may equal that of its module (`identify`): the name wins, as in a package that
    imports it at its head.
    """

    _modules: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"].get(name)
        if module is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in self.__dict__.get("_modules", ()):
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._modules})


def lazy_room(package: str, names: Mapping[str, str]) -> None:
    """Make a package import its public names on first use.

    The same names stand under `if TYPE_CHECKING` in the package, for type checkers and editors.

    Args:
        package: Its `__name__`.
        names: By module below the package, the public names of that module, with spaces between.
    """
    room = sys.modules[package]
    modules = {name: f"{package}.{module}" for module, own in names.items() for name in own.split()}
    room.__dict__.update(
        _modules=modules, __all__=sorted([*modules, *room.__dict__.get("__all__", ())])
    )
    room.__class__ = LazyRoom


class Registry(MutableMapping[str, T]):
    """Alternatives by name, each imported on first use.

    Args:
        places: "module:attribute" by name, in the order they are listed in.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._entries: dict[str, T | str] = dict(places)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if isinstance(entry, str):
            module, attribute = entry.split(":")
            found: T = getattr(import_module(module), attribute)
            return found
        return entry

    def __setitem__(self, name: str, entry: T | str) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
