"""Rooms that are verbs too: `taufit.export` is a package, and calling it exports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let the module called `name` answer `module(...)` with `function(...)`.

    Importing a package sets it as its parent's attribute, so a function of the same name beside it
    would be one or the other depending on what was imported before. A module that can be called is
    both, always.
    """

    class Room(ModuleType):
        __call__ = staticmethod(function)
        __wrapped__ = staticmethod(function)

    sys.modules[name].__class__ = Room
