"""Errors of commands: kind, exit code, message with remedy, as text on stderr and as JSON."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

from taufit.cli.common import has_printed_json, print_json
from taufit.core.dataclasses import dataclass
from taufit.core.errors import (
    InfeasibleError,
    MissingExtraError,
    MissingInputError,
    PoorExcitationError,
    RecordingError,
    RobotError,
    TaufitError,
    WireError,
)
from taufit.core.names import printable

REFUSED, WRONG_USAGE, UNUSABLE_INPUT, INTERRUPTED = 1, 2, 3, 130
# Kind of every error in `--json`, subclasses first, with its exit code.
_KINDS: dict[type[TaufitError], tuple[str, int]] = {
    PoorExcitationError: ("poor_excitation", REFUSED),
    InfeasibleError: ("refused", REFUSED),
    MissingExtraError: ("missing_extra", UNUSABLE_INPUT),
    MissingInputError: ("missing_input", UNUSABLE_INPUT),
    WireError: ("connection", UNUSABLE_INPUT),
    RobotError: ("robot", UNUSABLE_INPUT),
    RecordingError: ("recording", UNUSABLE_INPUT),
    TaufitError: ("input", UNUSABLE_INPUT),
}
# End of a sentence that another one follows.
_SENTENCE_END = re.compile(r"(?<=[.?])\s+(?=[A-Z`])")


@dataclass(frozen=True, slots=True)
class CommandError:
    """Error that ends a command.

    Attributes:
        kind: Machine-readable name.
        message: Text for the user.
        exit_code: Exit code.
        heading: Words before the message on the terminal.
    """

    kind: str
    message: str
    exit_code: int
    heading: str = "taufit: "

    @property
    def remedy(self) -> str | None:
        """Last sentence or line of the message, which says what to do; None if it is the only."""
        parts = [part for part in _SENTENCE_END.split(self.message.strip()) if part]
        return parts[-1] if len(parts) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Object printed with --json."""
        message = printable(self.message)
        remedy = None if self.remedy is None else printable(self.remedy)
        return {"error": {"kind": self.kind, "message": message, "remedy": remedy}}

    def exit(self, *, as_json: bool = False) -> NoReturn:
        """Print the error and end the process with its exit code."""
        if as_json and not has_printed_json():
            print_json(self.to_dict())
            sys.stdout.flush()
        from taufit.cli.parts.next_step import complete_commands

        text = complete_commands(f"{self.heading}{self.message}")
        print(printable(text), file=sys.stderr)
        sys.exit(self.exit_code)


def _draft_error(error: TaufitError) -> TaufitError:
    """Error of a required column map, which names all files; that of the draft if there is none."""
    from taufit.recording.table import ColumnMapRequiredError

    if not isinstance(error, ColumnMapRequiredError):
        return error
    from taufit.cli.common import command_arguments
    from taufit.recording.files import find_recordings
    from taufit.workflow.draft import draft_files, draft_with_robot

    values, source = command_arguments.get(), error.table.source
    try:
        draft_with_robot(error.table, values.get("robot"))
        return error
    except TaufitError as draft_error:
        items = values.get("recordings") or values.get("recording") or ()
        files = [Path(item) for item in (items if isinstance(items, (list, tuple)) else [items])]
        try:
            paths = find_recordings(files, allow_repeats=True).paths
            is_one_run = len(draft_files(paths, robot=values.get("robot")).paths) < len(paths)
        except TaufitError:
            is_one_run = False
        if not is_one_run:
            return draft_error
    command = f"convert {shlex.quote(source)} "
    all_files = f"convert {shlex.join(map(str, files))} "
    return ColumnMapRequiredError(str(error).replace(command, all_files), error.table)


def command_error(error: BaseException) -> CommandError:
    """Description of an exception that ended a command."""
    if isinstance(error, TaufitError):
        error = _draft_error(error)
        from_diagnosis = hasattr(error, "causes")
        kind, code = next(_KINDS[base] for base in _KINDS if isinstance(error, base))
        kind = "contradiction" if from_diagnosis else kind
        return CommandError(kind, str(error), code, f"{type(error).__name__}: ")
    if isinstance(error, KeyboardInterrupt):
        return CommandError("interrupted", "stopped", INTERRUPTED, "")
    if isinstance(error, MemoryError):
        message = "this needs more memory than there is (or than ulimit -v allows)."
        return CommandError("memory", message, UNUSABLE_INPUT)
    if isinstance(error, ImportError):
        message = (
            f"a library could not be loaded ({error}). The installation is incomplete, or there is "
            "too little memory (ulimit -v)."
        )
        return CommandError("installation", message, UNUSABLE_INPUT)
    assert isinstance(error, OSError)
    prefix = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return CommandError("file", f"{prefix}{error.strerror or error}.", UNUSABLE_INPUT)
