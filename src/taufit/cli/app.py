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
from taufit.core.decompression_limits import large_files
from taufit.core.errors import TaufitError
from taufit.core.extras import EXTRAS, installed_extras
from taufit.core.names import printable
from taufit.core.threads import VARIABLES, keep_freed_memory, reserve_blas_memory

# In order of use. A verb has a file `cli/<verb>.py` with either a function `command` or, for verbs
# with sub-verbs, a typer app called `app`.
_IN_ORDER = {
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
_SESSIONS = ("record", "live", "open", "simulate")
# Verbs that calculate much: BLAS takes its memory while there is some.
_HEAVY = ("check", "contact", "demo", "design", "fit", "fleet", "friction", "gains", "health",
          "live", "payload", "reproduce")  # fmt: skip


def module_of(verb: str) -> str | None:
    """Module of a verb, or None where it is not part of this installation."""
    return f"taufit.cli.{verb}" if Path(__file__).with_name(f"{verb}.py").exists() else None


VERBS = {verb: text for verb, text in _IN_ORDER.items() if module_of(verb) is not None}


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
    found = installed_extras()
    there = ", ".join(f"{name} ({EXTRAS[name].library} {v})" for name, v in found.items() if v)
    absent = ", ".join(f"{name} ({EXTRAS[name].library})" for name, v in found.items() if not v)
    lines = [f"taufit {taufit.__version__}, engine: {engine()}", f"extras: {there or 'none'}"]
    return "\n".join([*lines, f"not installed: {absent}"] if absent else lines)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 0, 1 (input or result refused) or 2 (wrong usage)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    process.configure_process()
    with process.stoppable(patient=bool(arguments) and arguments[0] in _SESSIONS):
        try:
            try:
                _run(arguments)
            finally:
                process.finish()
        except TaufitError as error:
            _fail(f"{type(error).__name__}: {error}")
        except OSError as error:
            where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
            _fail(f"taufit: {where}{error.strerror or error}.")
        except MemoryError:
            _fail("taufit: this needs more memory than there is (or than ulimit -v allows).")
        except ImportError as error:
            _fail(
                f"taufit: a library could not be loaded ({error}). The installation is incomplete, "
                "or there is too little memory (ulimit -v)."
            )
        except KeyboardInterrupt:
            _fail("stopped", 130)


def _fail(message: str, code: int = 1) -> NoReturn:
    print(printable(message), file=sys.stderr)
    sys.exit(code)


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(_help())
        sys.exit(0)
    if arguments[0] == "--version":
        print(version())
        sys.exit(0)
    verb = arguments[0]
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        _fail(f"taufit: there is no verb {verb!r}.{hint}\n\n{_help()}", 2)

    # The matrices of this field are small: BLAS threads would spin more than they work. Set before
    # NumPy is imported; a user's own setting wins.
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")
    keep_freed_memory()
    wants_help = bool({"--help", "-h"} & set(arguments))
    if verb in _HEAVY and not wants_help:
        reserve_blas_memory()
    rest, large = _without_large(arguments[1:])
    with large_files() if large else nullcontext(), nullcontext() if wants_help else _no_remarks():
        typer_app(verb)(args=rest, prog_name=f"taufit {verb}")


def _no_remarks() -> Any:
    """Numbers that are none are named by file and place; NumPy need not remark on them."""
    import numpy as np

    return np.errstate(all="ignore")


def _without_large(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without --large, which goes with any verb, and whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != "--large"]
    return [*kept, *arguments[end:]], len(kept) < end


def typer_app(verb: str) -> Any:
    """The verb as a typer app; the "Next: ..." of its docstring becomes the last line of help."""
    import typer

    from taufit.cli.options.option_groups import flatten_options

    module = import_module(module_of(verb) or verb)
    if hasattr(module, "app"):
        for one in module.app.registered_commands:
            if one.help is None and one.callback is not None:
                one.help, one.epilog = _without_next(one.callback.__doc__ or "")
                one.callback = flatten_options(one.callback)
        info = module.app.info
        if isinstance(info.help, str) and "Next: " in info.help:
            info.help, info.epilog = _without_next(info.help)
        return module.app
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    text, last = _without_next(module.command.__doc__ or "")
    app.command(name=verb, help=text, epilog=last)(flatten_options(module.command))
    return app


def _without_next(text: str) -> tuple[str, str | None]:
    """Help without its last paragraph, "Next: ...", and that paragraph."""
    text, _, last = inspect.cleandoc(text).partition("\nNext: ")
    return text, f"Next: {last}" if last else None
