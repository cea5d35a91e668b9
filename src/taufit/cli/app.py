"""`taufit COMMAND ...`: finds the module of the command and runs its function `command`.

Only the requested command is imported, so `taufit --help` is fast.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import taufit
from taufit.cli.common import command_arguments, reset_printed_json
from taufit.cli.parts import process
from taufit.cli.parts.error_output import WRONG_USAGE, CommandError, command_error
from taufit.cli.parts.existing_outputs import existing_outputs
from taufit.core.decompression_limits import large_files
from taufit.core.errors import TaufitError
from taufit.core.lazy import defer_unused_imports
from taufit.core.threads import VARIABLES, keep_freed_memory, reserve_blas_memory

# By task, in order of use. A command has a module `cli/<command>.py` with either a function
# `command` or, for commands with subcommands, a typer app called `app`.
_COMMANDS = {
    "Start": {
        "demo": "Run the whole procedure on a simulated robot",
        "open": "Describe the columns of a recording in the browser, then fit",
        "inspect": "Show a robot: joints, limits, base parameters",
    },
    "Record": {
        "design": "Plan an excitation trajectory",
        "record": "Record a running robot, optionally playing a trajectory",
        "convert": "Read a recording, report its quality, write other formats",
        "simulate": "Simulate a recording, with known ground truth",
    },
    "Identify": {
        "gains": "Estimate drive gains [N m/A] from controller or known mass",
        "friction": "Fit friction curves to constant-velocity strokes",
        "fit": "Fit a dynamic model to recorded motion and torque",
        "servo": "Identify an arm without torque sensors from its commands",
        "check": "Test a fitted model on further recordings",
        "export": "Write a fitted model as URDF, MJCF, SDF, C, FMU, CasADi, ROS 2",
        "report": "Write an HTML page about a fitted model",
    },
    "Use": {
        "payload": "Estimate the payload: mass, centre of mass, inertia",
        "weigh": "Weigh the payload of a running robot and set it there",
        "contact": "Detect contacts at a given false alarm rate",
        "energy": "Compute kinetic energy and effective mass at the tool",
        "health": "Detect wear of joints, compensated for temperature",
        "live": "Monitor a running robot in the browser",
        "fleet": "Fit many robots of one type, find outliers and trends",
    },
    "More": {
        "reproduce": "Reproduce the tables and figures of four papers",
        "completion": "Print the completion script of a shell",
    },
}


# Commands that run until they are stopped, and then complete their output.
_LONG_RUNNING = ("record", "live", "open", "simulate")
# Commands with much computation: BLAS memory is reserved in advance.
_COMPUTE_INTENSIVE = (
    *("check", "contact", "demo", "design", "fit", "fleet"),
    *("friction", "gains", "health", "live", "payload", "reproduce", "servo"),
)


def command_module(verb: str) -> str | None:
    """Module of a command, or None if it is not installed."""
    return f"taufit.cli.{verb}" if Path(__file__).with_name(f"{verb}.py").exists() else None


VERBS = {
    verb: text
    for group in _COMMANDS.values()
    for verb, text in group.items()
    if command_module(verb) is not None
}


def _help() -> str:
    lines = [
        "usage: taufit COMMAND [OPTIONS] ...",
        "",
        "Identify, test and use a robot's dynamic model from motion and torque.",
    ]
    for task, commands in _COMMANDS.items():
        lines += ["", task]
        lines += [f"  {verb:<10} {text}" for verb, text in commands.items() if verb in VERBS]
    lines += [
        "",
        "For any command",
        "  -h, --help     show this text; `taufit help COMMAND` for one command",
        "  -V, --version  show version, compute engine and optional packages",
        "  -q, --quiet    print errors only; the exit code gives the result",
        "  --overwrite    replace existing outputs, without FILE~ or question",
        "  --large        accept files above the size limits",
        "",
        "Next: `taufit inspect` lists the bundled robots.",
    ]
    return "\n".join(wrapped for line in lines for wrapped in _wrap(line))


def _wrap(line: str) -> list[str]:
    """Line broken at the width of the terminal, continued below its text."""
    hanging = re.match(r"  (\S+(, --\S+)?) +", line)
    indent = " " * (hanging.end() if hanging else 0)
    width = min(shutil.get_terminal_size().columns, 80)
    return textwrap.wrap(line, width, subsequent_indent=indent) or [""]


def engine() -> str:
    """Name of the installed regressor engine."""
    return "compiled" if find_spec("taufit._kernel") else "NumPy (no compiled kernel: slower)"


def version() -> str:
    """Version, regressor engine and installed optional packages."""
    from taufit.core.extras import EXTRAS, installed_extras

    extras = installed_extras()
    available = ", ".join(f"{name} ({EXTRAS[name].library} {v})" for name, v in extras.items() if v)
    absent = ", ".join(f"{name} ({EXTRAS[name].library})" for name, v in extras.items() if not v)
    lines = [f"taufit {taufit.__version__}, engine: {engine()}", f"extras: {available or 'none'}"]
    return "\n".join([*lines, f"not installed: {absent}"] if absent else lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exits with 0 (done), 1 (verdict FAIL or result refused), 2 (wrong usage), 3 (the input cannot be
    used) or 130 (interrupted).
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    process.configure_process()
    reset_printed_json()
    command_arguments.set({})
    with process.handle_signals(wait_for_end=bool(arguments) and arguments[0] in _LONG_RUNNING):
        try:
            try:
                _run_command(arguments)
            finally:
                process.flush_output()
        except (TaufitError, OSError, MemoryError, ImportError, KeyboardInterrupt) as error:
            command_error(error).exit(as_json=_wants_json(arguments))


def _wants_json(arguments: list[str]) -> bool:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def _usage_error(message: str, arguments: list[str]) -> NoReturn:
    CommandError("usage", message, WRONG_USAGE).exit(as_json=_wants_json(arguments))


def _run_command(arguments: list[str]) -> None:
    is_help = arguments[:1] and arguments[0] in ("--help", "-h", "help")
    if is_help and len(arguments) > 1 and not arguments[1].startswith("-"):
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(_help())
        sys.exit(0)
    if arguments[0] in ("--version", "-V") or arguments[1:] in (["--version"], ["-V"]):
        print(version())
        sys.exit(0)
    general, arguments = _general_options(arguments)
    verb = arguments[0] if arguments else ""
    if verb not in VERBS:
        words = [*VERBS, "--version"]
        similar = difflib.get_close_matches(
            "--version" if verb == "-v" else verb.lower(), words, n=1
        )
        hint = f" Did you mean `taufit {similar[0]}`?" if similar else ""
        _usage_error(
            f"there is no command {verb!r}.{hint} `taufit --help` lists all commands.", arguments
        )

    # Matrices are small: BLAS threads would cost more than they gain. Set before NumPy is imported;
    # settings of the user have priority.
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")
    # typer checks options with pydantic, which would search all installed packages for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    keep_freed_memory()
    wants_help = bool({"--help", "-h"} & set(arguments))
    if verb in _COMPUTE_INTENSIVE and not wants_help:
        reserve_blas_memory()
    options = arguments[1:]
    if verb == "fit":
        from taufit.cli.parts.repeated_fit import expand_again

        options = expand_again(options)
    with (
        large_files() if "--large" in general else nullcontext(),
        nullcontext() if wants_help else _no_numpy_warnings(),
        nullcontext()
        if wants_help
        else existing_outputs(overwrite="--overwrite" in general, quiet="--quiet" in general),
        quiet_output() if "--quiet" in general and not _wants_json(arguments) else nullcontext(),
    ):
        run_typer_app(verb, options)


def run_typer_app(verb: str, options: list[str]) -> NoReturn:
    """Run a command with its options; wrong usage is reported as text or JSON."""
    import typer

    # typer has its own copy of click, whose other exceptions are not public.
    usage_error: Any = typer.BadParameter.__mro__[1]
    try:
        code = typer_app(verb)(args=options, prog_name=f"taufit {verb}", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as error:
        usage = "" if error.ctx is None else f"{error.ctx.get_usage()}\n"
        heading = f"{usage}Error: "
        path = verb if error.ctx is None else error.ctx.command_path.removeprefix("taufit ")
        hint = _output_hint(error)
        message = (
            f"{error.format_message()}{hint}\n`taufit help {path}` lists arguments and options."
        )
        CommandError("usage", message, WRONG_USAGE, heading).exit(as_json=_wants_json(options))
    sys.exit(code if isinstance(code, int) else 0)


def _output_hint(error: Any) -> str:
    """Remedy for an output file that is given without its option."""
    match = re.search(r"extra argument\(s\) \((\S+\.\w+)\)", error.format_message())
    options = (
        [] if error.ctx is None else [parameter.name for parameter in error.ctx.command.params]
    )
    return (
        f". An output file is named by -o: `-o {match[1]}`."
        if match and "output" in options
        else ""
    )


def _no_numpy_warnings() -> Any:
    """Disable NumPy warnings; invalid numbers are reported with file and place instead."""
    import numpy as np

    defer_unused_imports()
    return np.errstate(all="ignore")


_GENERAL_OPTIONS = {"--large": "--large", "--overwrite": "--overwrite", "-q": "--quiet",
                    "--quiet": "--quiet"}  # fmt: skip


def _general_options(arguments: list[str]) -> tuple[set[str], list[str]]:
    """Options that every command accepts, and the other arguments."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    general = {_GENERAL_OPTIONS[word] for word in arguments[:end] if word in _GENERAL_OPTIONS}
    command_words = [word for word in arguments[:end] if word not in _GENERAL_OPTIONS]
    return general, [*command_words, *arguments[end:]]


@contextmanager
def quiet_output() -> Iterator[None]:
    """Discard results on stdout; errors on stderr stay."""
    with open(os.devnull, "w", encoding="utf-8") as null, redirect_stdout(null):
        yield


def typer_app(verb: str) -> Any:
    """Command as a typer app; "Next: ..." of its docstring becomes the epilog of the help."""
    import typer

    from taufit.cli.options.grouped_help import HELP_OPTIONS, GroupedCommand
    from taufit.cli.options.option_groups import flatten_options

    module = import_module(command_module(verb) or verb)
    if hasattr(module, "app"):
        for registered in module.app.registered_commands:
            if registered.help is None and registered.callback is not None:
                registered.help, registered.epilog = _split_epilog(
                    registered.callback.__doc__ or ""
                )
                registered.callback = flatten_options(registered.callback)
                registered.cls, registered.context_settings = GroupedCommand, HELP_OPTIONS
        info = module.app.info
        info.context_settings = HELP_OPTIONS
        if isinstance(info.help, str) and "Next: " in info.help:
            info.help, info.epilog = _split_epilog(info.help)
        return module.app
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    text, epilog = _split_epilog(module.command.__doc__ or "")
    command = flatten_options(module.command)
    app.command(
        name=verb, help=text, epilog=epilog, cls=GroupedCommand, context_settings=HELP_OPTIONS
    )(command)
    return app


def _split_epilog(text: str) -> tuple[str, str | None]:
    """Help without its last paragraph, "Next: ...", and that paragraph."""
    text, _, epilog = inspect.cleandoc(text).partition("\nNext: ")
    return text, f"Next: {epilog}" if epilog else None
