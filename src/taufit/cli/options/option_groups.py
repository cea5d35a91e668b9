"""Commands that take groups of options, as typer wants them: one parameter per option."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

_SMALLEST, _LARGEST = 1e-12, 1e12


def flatten_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with every group's fields in place of the group.

    A parameter annotated with a dataclass of `cli/options` (or of the verb's own file) is a
    group: its fields become options with their own names, help and defaults, and the command
    receives the dataclass again. Numbers no option means are refused as wrong usage: NaN passes
    every range check, and 1e-308 overflows what is computed from it.
    """
    hints = get_type_hints(command, include_extras=True)
    flat: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and is_dataclass(hint):
            own = _options(hint)
            groups[parameter.name] = (hint, tuple(option.name for option in own))
            flat += own
        else:
            flat.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))
    names = [parameter.name for parameter in flat]
    assert len(set(names)) == len(names), f"options given twice: {sorted(names)}"

    @functools.wraps(command)
    def typed(**given: Any) -> None:
        for name, value in given.items():
            reason = _no_number(value)
            if reason:
                option = f"--{name}".replace("_", "-")
                raise typer.BadParameter(reason, param_hint=option)
        for name, (group, options) in groups.items():
            given[name] = group(**{option: given.pop(option) for option in options})
        command(**given)

    typed.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    typed.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return typed


def _no_number(value: Any) -> str:
    """Why a value is none that any option means; "" where it may be one. Infinity may be."""
    if isinstance(value, float):
        if math.isnan(value):
            return "must be a number, not nan."
        if value and math.isfinite(value) and not _SMALLEST <= abs(value) <= _LARGEST:
            return f"{value:g} is out of range: at most {_LARGEST:g}, at least {_SMALLEST:g}."
    if isinstance(value, int) and abs(value) >= 2**63:
        return "is out of range: whole numbers have at most 18 digits."
    return ""


def _options(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
