"""`taufit COMMAND ...`: finds the module of the command and runs its function `command`.

Only the requested command is imported, so `taufit --help` is fast.
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import taufit
from taufit.cli.parts import process
from taufit.core.decompression_limits import large_files
from taufit.core.errors import TaufitError
from taufit.core.extras import EXTRAS, installed_extras
from taufit.core.names import printable
from taufit.core.threads import VARIABLES, keep_freed_memory, reserve_blas_memory

# In order of use. A command has a module `cli/<command>.py` with either a function `command` or,
# for
# commands with subcommands, a typer app called `app`.
_COMMANDS = {
    "demo": "Run the whole procedure on a simulated robot",
    "inspect": "Show a robot: joints, limits, base parameters",
    "design": "Plan an excitation trajectory",
    "record": "Record a running robot, optionally playing a trajectory",
    "convert": "Read a recording, report its quality, write other formats",
    "open": "Describe the columns of a recording in the browser, then fit",
    "gains": "Estimate drive gains [N m/A] from controller or known mass",
    "friction": "Fit friction curves to constant-velocity strokes",
    "fit": "Fit a dynamic model to recorded motion and torque",
    "servo": "Fit servos of an arm without torque: commands, positions",
    "check": "Test a fitted model on further recordings",
    "payload": "Estimate the payload: mass, centre of mass, inertia",
    "contact": "Detect contacts at a given false alarm rate",
    "energy": "Compute kinetic energy and effective mass at the tool",
    "health": "Detect wear of joints, compensated for temperature",
    "live": "Monitor a running robot in the browser",
    "fleet": "Fit many robots of one type, find outliers and trends",
    "export": "Write a fitted model as URDF, MJCF, JSON, C or FMU",
    "report": "Write an HTML page about a fitted model",
    "reproduce": "Reproduce the tables and figures of four papers",
    "simulate": "Simulate a recording, with known ground truth",
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


VERBS = {verb: text for verb, text in _COMMANDS.items() if command_module(verb) is not None}


def _help() -> str:
    lines = [
        "usage: taufit VERB [OPTIONS] ...",
        "",
        "Identify, test and use a robot's dynamic model from motion and torque.",
        "",
    ]
    lines += [f"  {verb:<10} {text}" for verb, text in VERBS.items()]
    lines += [
        "",
        "  --version  version, compute engine and optional packages",
        "  --large    accept files above the size limits; for any command",
        "  --help     this text; `taufit VERB --help` for one command",
        "",
        "Next: `taufit inspect` lists the bundled robots.",
    ]
    return "\n".join(lines)


def engine() -> str:
    """Name of the installed regressor engine."""
    return "compiled" if find_spec("taufit._kernel") else "NumPy (no compiled kernel: slower)"


def version() -> str:
    """Version, regressor engine and installed optional packages."""
    extras = installed_extras()
    available = ", ".join(f"{name} ({EXTRAS[name].library} {v})" for name, v in extras.items() if v)
    absent = ", ".join(f"{name} ({EXTRAS[name].library})" for name, v in extras.items() if not v)
    lines = [f"taufit {taufit.__version__}, engine: {engine()}", f"extras: {available or 'none'}"]
    return "\n".join([*lines, f"not installed: {absent}"] if absent else lines)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 0, 1 (input or result rejected) or 2 (wrong usage)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    process.configure_process()
    with process.handle_signals(wait_for_end=bool(arguments) and arguments[0] in _LONG_RUNNING):
        try:
            try:
                _run_command(arguments)
            finally:
                process.flush_output()
        except TaufitError as error:
            _exit_with_error(f"{type(error).__name__}: {error}")
        except OSError as error:
            file_prefix = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
            _exit_with_error(f"taufit: {file_prefix}{error.strerror or error}.")
        except MemoryError:
            _exit_with_error(
                "taufit: this needs more memory than there is (or than ulimit -v allows)."
            )
        except ImportError as error:
            _exit_with_error(
                f"taufit: a library could not be loaded ({error}). The installation is incomplete, "
                "or there is too little memory (ulimit -v)."
            )
        except KeyboardInterrupt:
            _exit_with_error("stopped", 130)


def _exit_with_error(message: str, code: int = 1) -> NoReturn:
    print(printable(message), file=sys.stderr)
    sys.exit(code)


def _run_command(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(_help())
        sys.exit(0)
    if arguments[0] == "--version":
        print(version())
        sys.exit(0)
    verb = arguments[0]
    if verb not in VERBS:
        similar = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        _exit_with_error(f"taufit: there is no verb {verb!r}.{hint}\n\n{_help()}", 2)

    # Matrices are small: BLAS threads would cost more than they gain. Set before NumPy is imported;
    # settings of the user have priority.
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")
    keep_freed_memory()
    wants_help = bool({"--help", "-h"} & set(arguments))
    if verb in _COMPUTE_INTENSIVE and not wants_help:
        reserve_blas_memory()
    options, is_large = _extract_large(arguments[1:])
    if verb == "fit":
        from taufit.cli.parts.repeated_fit import expand_again

        options = expand_again(options)
    with (
        large_files() if is_large else nullcontext(),
        nullcontext() if wants_help else _no_numpy_warnings(),
    ):
        typer_app(verb)(args=options, prog_name=f"taufit {verb}")


def _no_numpy_warnings() -> Any:
    """Disable NumPy warnings; invalid numbers are reported with file and place instead."""
    import numpy as np

    return np.errstate(all="ignore")


def _extract_large(arguments: list[str]) -> tuple[list[str], bool]:
    """Arguments without --large, which is accepted by any command, and whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    remaining = [word for word in arguments[:end] if word != "--large"]
    return [*remaining, *arguments[end:]], len(remaining) < end


def typer_app(verb: str) -> Any:
    """Command as a typer app; "Next: ..." of its docstring becomes the epilog of the help."""
    import typer

    from taufit.cli.options.option_groups import flatten_options

    module = import_module(command_module(verb) or verb)
    if hasattr(module, "app"):
        for registered in module.app.registered_commands:
            if registered.help is None and registered.callback is not None:
                registered.help, registered.epilog = _split_epilog(
                    registered.callback.__doc__ or ""
                )
                registered.callback = flatten_options(registered.callback)
        info = module.app.info
        if isinstance(info.help, str) and "Next: " in info.help:
            info.help, info.epilog = _split_epilog(info.help)
        return module.app
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    text, epilog = _split_epilog(module.command.__doc__ or "")
    app.command(name=verb, help=text, epilog=epilog)(flatten_options(module.command))
    return app


def _split_epilog(text: str) -> tuple[str, str | None]:
    """Help without its last paragraph, "Next: ...", and that paragraph."""
    text, _, epilog = inspect.cleandoc(text).partition("\nNext: ")
    return text, f"Next: {epilog}" if epilog else None
