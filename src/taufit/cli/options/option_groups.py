"""Conversion of option groups to the flat parameters that typer expects."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

import typer

from taufit.cli.common import command_arguments
from taufit.cli.options.grouped_help import set_metavar
from taufit.cli.parts.argument_order import require_argument_order
from taufit.cli.parts.existing_outputs import require_replaceable_outputs
from taufit.core.dataclasses import dataclass

_MIN_NUMBER, _MAX_NUMBER = 1e-12, 1e12
_HIDDEN = "former_"


@dataclass(frozen=True, slots=True)
class FormerName:
    """Earlier spelling of an option, accepted with a message but not shown in the help.

    Attributes:
        option: Earlier spelling, e.g. "--effort".
    """

    option: str


def flatten_options(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that the fields of every option group are options of their own.

    A parameter annotated with a dataclass of `cli/options` (or of the command's module) is a group:
    its fields become options with their names, help and defaults, and the command receives the
    dataclass. Numbers out of range are wrong usage: NaN passes every range check, and 1e-308
    overflows in computations.
    """
    hints = get_type_hints(command, include_extras=True)
    flat_parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
    headings: dict[str, str] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and is_dataclass(hint):
            group_parameters = _group_parameters(hint)
            groups[parameter.name] = (hint, tuple(option.name for option in group_parameters))
            headings |= {option.name: _heading(hint) for option in group_parameters}
            flat_parameters += group_parameters
        else:
            flat_parameters.append(
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)
            )
    for flat in flat_parameters:
        set_metavar(flat.name, flat.annotation)
    former = {p.name: name for p in flat_parameters if (name := _former_name(p.annotation))}
    flat_parameters += [
        _hidden_parameter(p, former[p.name]) for p in flat_parameters if p.name in former
    ]
    names = [parameter.name for parameter in flat_parameters]
    assert len(set(names)) == len(names), f"options given twice: {sorted(names)}"

    @functools.wraps(command)
    def flat_command(**values: Any) -> None:
        for name, option in former.items():
            value = values.pop(_HIDDEN + name)
            if value:
                print(f"taufit: {option} is now {_spelling(name)}.", file=sys.stderr)
                values[name] = value
        require_argument_order(values)
        command_arguments.set(dict(values))
        require_replaceable_outputs(values)
        for name, value in values.items():
            reason = _range_error(value)
            if reason:
                raise typer.BadParameter(reason, param_hint=_spelling(name))
        for name, (group, options) in groups.items():
            values[name] = group(**{option: values.pop(option) for option in options})
        command(**values)

    flat_command.option_headings = headings  # type: ignore[attr-defined]
    flat_command.__signature__ = inspect.Signature(flat_parameters)  # type: ignore[attr-defined]
    flat_command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in flat_parameters
    }
    return flat_command


def _heading(group: type) -> str:
    """Heading of a group in the help: its `heading`, else the first words of its docstring."""
    text = (group.__doc__ or "").splitlines()[0]
    return text.partition(";")[0].partition(",")[0].partition(":")[0].rstrip(".")


def _range_error(value: Any) -> str:
    """Reason why a number is out of range; "" if it is valid. Infinity is valid."""
    if isinstance(value, float):
        if math.isnan(value):
            return "must be a number, not nan."
        if value and math.isfinite(value) and not _MIN_NUMBER <= abs(value) <= _MAX_NUMBER:
            return f"{value:g} is out of range: at most {_MAX_NUMBER:g}, at least {_MIN_NUMBER:g}."
    if isinstance(value, int) and abs(value) >= 2**63:
        return "is out of range: whole numbers have at most 18 digits."
    return ""


def _group_parameters(group: type) -> list[inspect.Parameter]:
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


def _spelling(name: str) -> str:
    """Option of a parameter name: "torque_kind" gives "--torque-kind"."""
    return f"--{name}".replace("_", "-")


def _former_name(annotation: Any) -> str:
    """Earlier spelling of an annotated option; "" without one."""
    marks = getattr(annotation, "__metadata__", ())
    return next((mark.option for mark in marks if isinstance(mark, FormerName)), "")


def _hidden_parameter(parameter: inspect.Parameter, option: str) -> inspect.Parameter:
    """Hidden option with the earlier spelling of a parameter."""
    kind = get_args(parameter.annotation)[0]
    is_flag = kind is bool
    text = f"Earlier spelling of {_spelling(parameter.name)}."
    hidden = typer.Option(option, hidden=True, help=text)
    return parameter.replace(
        name=_HIDDEN + parameter.name,
        default=False if is_flag else None,
        annotation=Annotated[kind if is_flag else kind | None, hidden],
    )
