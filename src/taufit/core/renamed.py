"""Keywords that have another name now: the old ones work and say so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def renamed_keywords(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keywords under their old names (old="new") are handed on under the new ones."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def accepting(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = {}
            for key, value in kwargs.items():
                name = names.get(key, key)
                if name != key:
                    text = f"{function.__name__}({key}=...) is now {name}=...; {key} goes with 0.3."
                    warnings.warn(text, DeprecationWarning, stacklevel=2)
                if name in given:
                    raise TypeError(f"{function.__name__}() got {name} twice, once by its old name")
                given[name] = value
            return cast(Callable[..., R], function)(*args, **given)

        return accepting

    return decorate
