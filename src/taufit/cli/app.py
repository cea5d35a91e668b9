"""`taufit VERB ...`: finds the verb's file and runs its `command`.

Only the verb that runs is imported, so `taufit --help` costs next to nothing.
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
from taufit.core.errors import TaufitError
from taufit.core.extras import EXTRAS, installed_extras
from taufit.core.limits import large_files
from taufit.core.names import printable
from taufit.core.threads import VARIABLES, keep_freed_memory, reserve_blas_memory

# In order of use. A verb has a file `cli/<verb>.py` with either a function `command` or, for verbs
# with sub-verbs, a typer app called `app`.
_COMMANDS = {
    "demo": "Try taufit without a robot: simulate, fit, check, report",
    "inspect": "Show a robot: joints, limits, what its motion can tell about it",
    "design": "Plan an excitation trajectory",
    "record": "Record a robot that is on, and play a motion on it",
    "convert": "Read any recording, tell how good it is, write it in other forms",
    "open": "Say what the columns of a recording are, in the browser, and fit",
    "gains": "Find torque per ampere, from the controller or from a known mass",
    "friction": "Fit friction curves to constant-speed strokes",
    "fit": "Fit a robot's dynamic model to recorded motion and torque",
    "check": "Test a fitted model on recordings it has not seen",
    "payload": "Tell what the arm carries",
    "contact": "Tell what touches the arm, at a stated rate of false alarms",
    "energy": "Tell kinetic energy and effective mass at the tip, with intervals",
    "health": "Tell wear from temperature, run after run",
    "live": "Watch a running robot: payload, contact, friction, on a page",
    "fleet": "Study many robots of one type: models, surprises, trends",
    "export": "Write a fitted model as URDF, MJCF, JSON or C",
    "report": "Write one HTML page about a fitted model",
    "reproduce": "Make a paper's tables and figures again, beside its own",
    "simulate": "Record a simulated arm with friction, noise and everything",
}


# Verbs that last until they are stopped, and then finish what they have.
_LONG_RUNNING = ("record", "live", "open", "simulate")
# Verbs that calculate much: BLAS takes its memory while there is some.
_COMPUTE_INTENSIVE = (
    *("check", "contact", "demo", "design", "fit", "fleet"),
    *("friction", "gains", "health", "live", "payload", "reproduce"),
)


def command_module(verb: str) -> str | None:
    """Module of a verb, or None where it is not part of this installation."""
    return f"taufit.cli.{verb}" if Path(__file__).with_name(f"{verb}.py").exists() else None


VERBS = {verb: text for verb, text in _COMMANDS.items() if command_module(verb) is not None}


def _help() -> str:
    lines = [
        "usage: taufit VERB [OPTIONS] ...",
        "",
        "From a robot arm's recorded motion to a validated torque model.",
        "",
    ]
    lines += [f"  {verb:<10} {text}" for verb, text in VERBS.items()]
    lines += [
        "",
        "  --version  version, engine and extras",
        "  --large    read files beyond the size limits; goes with any verb",
        "  --help     this text; `taufit VERB --help` explains a verb",
        "",
        "Next: `taufit inspect` lists the robots taufit knows.",
    ]
    return "\n".join(lines)


def engine() -> str:
    """Which regressor engine this installation runs."""
    return "compiled" if find_spec("taufit._kernel") else "NumPy (no compiled kernel: slower)"


def version() -> str:
    """The version, its engine and the optional libraries it finds."""
    extras = installed_extras()
    available = ", ".join(f"{name} ({EXTRAS[name].library} {v})" for name, v in extras.items() if v)
    absent = ", ".join(f"{name} ({EXTRAS[name].library})" for name, v in extras.items() if not v)
    lines = [f"taufit {taufit.__version__}, engine: {engine()}", f"extras: {available or 'none'}"]
    return "\n".join([*lines, f"not installed: {absent}"] if absent else lines)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 0, 1 (input or result refused) or 2 (wrong usage)."""
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
            where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
            _exit_with_error(f"taufit: {where}{error.strerror or error}.")
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

    # The matrices of this field are small: BLAS threads would spin more than they work. Set before
    # NumPy is imported; a user's own setting wins.
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")
    keep_freed_memory()
    wants_help = bool({"--help", "-h"} & set(arguments))
    if verb in _COMPUTE_INTENSIVE and not wants_help:
        reserve_blas_memory()
    options, is_large = _extract_large(arguments[1:])
    with (
        large_files() if is_large else nullcontext(),
        nullcontext() if wants_help else _no_numpy_warnings(),
    ):
        typer_app(verb)(args=options, prog_name=f"taufit {verb}")


def _no_numpy_warnings() -> Any:
    """Numbers that are none are named by file and place; NumPy need not remark on them."""
    import numpy as np

    return np.errstate(all="ignore")


def _extract_large(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without --large, which goes with any verb, and whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    remaining = [word for word in arguments[:end] if word != "--large"]
    return [*remaining, *arguments[end:]], len(remaining) < end


def typer_app(verb: str) -> Any:
    """The verb as a typer app; the "Next: ..." of its docstring becomes the last line of help."""
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
