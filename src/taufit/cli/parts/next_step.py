"""Commands that a command prints for the user to run next, with quoting for the shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from taufit.recording.map.remedy import Remedy


def quoted_command(*words: object) -> str:
    """`taufit ...` as it can be pasted into a shell, in backticks."""
    return f"`taufit {shlex.join(map(str, words))}`"


def next_step(*words: object, purpose: str = "") -> str:
    """Line "Next: `taufit ...` purpose."."""
    return f"Next: {quoted_command(*words)}{f' {purpose}' if purpose else ''}"


def corrected_fit(arguments: Sequence[str], remedy: Remedy, map_file: object | None) -> str | None:
    """Command of a fit with the changes of a remedy; None if only a corrected map would help.

    Args:
        arguments: Arguments of the fit, robot first.
        remedy: Other robot and options.
        map_file: Corrected column map that was written, or None.
    """
    words = list(arguments)
    if remedy.edits and map_file is None:
        return None
    if remedy.robot is not None and words:
        words[0] = remedy.robot
    options = ([] if map_file is None else ["--map", str(map_file)]) + list(remedy.options)
    for name, value in zip(options[::2], options[1::2], strict=True):
        while name in words[:-1]:
            index = words.index(name)
            del words[index : index + 2]
        words += [name, value]
    return quoted_command("fit", *words)
