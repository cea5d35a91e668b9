"""Lazy imports: names that are imported on first use, so that a command loads only what it
needs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any, TypeVar, cast

T = TypeVar("T")


class LazyPackage(ModuleType):
    """Package that imports its public names on first use.

    A public name may equal that of its module (`identify`) and then takes precedence, as in a
    package with ordinary imports.
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


def lazy_package(package: str) -> None:
    """Make a package import its public names on first use.

    The names are those imported under `if TYPE_CHECKING` as `from MODULE import NAME as NAME`,
    which type checkers and editors also use.
    """
    room = sys.modules[package]
    source = cast(InspectLoader, room.__loader__).get_source(package)
    modules = {
        alias.name: node.module
        for block in ast.parse(source or "").body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.asname
    }
    public = sorted([*modules, *room.__dict__.get("__all__", ())])
    room.__dict__.update(_modules=modules, __all__=public)
    room.__class__ = LazyPackage


def defer_unused_imports() -> None:
    """Load parts of NumPy that SciPy imports and does not use only if something uses them."""
    for name in ("numpy.f2py", "numpy.testing"):
        _defer_import(name)


def _defer_import(name: str) -> None:
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader = spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    loader.exec_module(module)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


class Registry(MutableMapping[str, T]):
    """Named alternatives, each imported on first use.

    Args:
        places: "module:attribute" by name, in order.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._entries: dict[str, T | str] = dict(places)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if isinstance(entry, str):
            module, attribute = entry.split(":")
            target: T = getattr(import_module(module), attribute)
            return target
        return entry

    def name_of(self, cls: type) -> str | None:
        """Name of a registered class; None if not registered. Imports nothing."""
        target = f"{cls.__module__}:{cls.__qualname__}"
        return next((name for name, e in self._entries.items() if e is cls or e == target), None)

    def __setitem__(self, name: str, entry: T | str) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
