"""Help of a command with its options in groups, and metavars in the field's words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from typer import BadParameter
from typer.core import TyperCommand
from typer.models import OptionInfo

from taufit.cli.parts.existing_outputs import OUTPUT_OPTIONS

HELP_OPTIONS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
# Metavars of options that have none, by the end of their name and by their type.
_METAVARS_BY_NAME = {"_hz": "HZ", "_deg": "DEG", "_std": "STD", "seconds": "S", "minutes": "MIN",
                     "_s": "S", "nrmse": "X", "correlation": "X", "rmse": "A,B,..",
                     "mounting": "WHICH", "base": "LINK", "tip": "LINK", "seed": "K",
                     "start": "DEG,..", "speeds": "DEG/S,..", "wall": "NX,NY,NZ,D",
                     "torque_noise": "NM,..", "joint_harmonics": "N,..", "bind": "ADDRESS",
                     "ports": "NAME=N,..", "contact_point": "X,Y,Z", "floor": "HEIGHT",
                     "mass": "KG", "acceleration": "RAD/S^2", "jerk": "RAD/S^3",
                     "tip_speed": "M/S", "clearance": "M", "radius": "M", "part_size": "M",
                     "warm_up": "MIN", "rest": "S", "payload": "KG"}  # fmt: skip
# Options outside all groups that say where results go; others are "Options".
_OUTPUTS = ("output", "report", "as_json", "help", "json")
_METAVARS_BY_TYPE = {int: "N", float: "X", str: "NAME", Path: "FILE"}


class GroupedCommand(TyperCommand):
    """Command whose help lists its options by group, in the order of the groups."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse long options with one dash, of which -holdout would be the help (-h)."""
        end = args.index("--") if "--" in args else len(args)
        options = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        for word in args[:end]:
            if len(word) > 2 and f"-{word.partition('=')[0]}" in options:
                raise BadParameter(f"{word} has one dash: options have two, `-{word}`.", ctx=ctx)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters that take plain values as they are."""
        parameters = super().get_params(ctx)
        for parameter in parameters:
            _accept_plain_values(parameter)
        return parameters

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of every group."""
        headings: Mapping[str, str] = getattr(self.callback, "option_headings", {})
        records: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                record = _argument_record(parameter)
                heading = "Arguments"
            else:
                record = parameter.get_help_record(ctx)
                is_output = (parameter.name or "") in _OUTPUTS
                heading = headings.get(parameter.name or "", "Output" if is_output else "Options")
            if record is None:
                continue
            records.setdefault(heading, []).append(record)
        last = {heading: records.pop(heading, []) for heading in ("Options", "Output")}
        # Before --help; they belong to the command line as a whole (cli/app.py).
        last["Output"][-1:-1] = _general_records(ctx.command.params)
        for heading, rows in (records | last).items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=min(30, formatter.width * 2 // 5))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Options, then arguments as the help names them; optional ones in brackets."""
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            record = (
                _argument_record(parameter) if parameter.param_type_name == "argument" else None
            )
            if record is not None:
                pieces.append(record[0] if parameter.required else f"[{record[0]}]")
        return pieces


def _general_records(parameters: list[Any]) -> list[tuple[str, str]]:
    """Help of the options of every command that concern its output."""
    writes_files = any(parameter.name in OUTPUT_OPTIONS for parameter in parameters)
    overwrite = ("--overwrite", "Replace existing files without FILE~ or question.")
    quiet = ("-q, --quiet", "Print errors only.")
    return [overwrite, quiet] if writes_files else [quiet]


def _argument_record(argument: Any) -> tuple[str, str] | None:
    """Name and help of an argument; None if it is hidden."""
    if argument.hidden:
        return None
    name = argument.metavar or (argument.name or "").upper()
    return f"{name}..." if argument.nargs == -1 else name, argument.help or ""


class _PlainValues:
    """Conversion that takes plain values as they are: to convert any, typer would import pydantic.

    Plain are absent values, values of the declared type such as defaults, and readable paths.
    """

    def __init__(self, parameter: Any) -> None:
        self._make_full_conversion = parameter.get_runtime_param

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind, is_list = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        if not is_list and kind in (str, int, float, Path) and isinstance(value, kind):
            return value
        if kind is Path and _is_readable(value):
            return Path(value)
        if kind == list[Path] and is_list and all(map(_is_readable, value)):
            return [Path(x) for x in value]
        return self._make_full_conversion().coerce(value, param=param, ctx=ctx)


def _accept_plain_values(parameter: Any) -> None:
    """Convert plain values of a parameter without pydantic, with a typer that would use it."""
    if hasattr(parameter, "get_runtime_param") and "get_runtime_param" not in vars(parameter):
        conversion = _PlainValues(parameter)
        parameter.get_runtime_param = lambda: conversion


def _is_readable(path: str) -> bool:
    return "\0" not in path and (not os.path.exists(path) or os.access(path, os.R_OK))


def set_metavar(name: str, annotation: Any) -> None:
    """Give the option of an annotated parameter a metavar in the field's words, if it has none."""
    kind, *marks = get_args(annotation) or (annotation,)
    kinds = {kind, *get_args(kind), *(k for part in get_args(kind) for k in get_args(part))}
    for mark in marks:
        if isinstance(mark, OptionInfo) and mark.metavar is None and bool not in kinds:
            by_name = (text for end, text in _METAVARS_BY_NAME.items() if name.endswith(end))
            by_type = (text for kind, text in _METAVARS_BY_TYPE.items() if kind in kinds)
            mark.metavar = [*by_name, *by_type, "VALUE"][0]
