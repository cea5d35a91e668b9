"""Commands that a command prints for the user to run next, with quoting for the shell.

Messages of all rooms mention commands as `taufit design` or `taufit convert RECORDING --report`.
Before they are printed, `complete_commands` puts the robot and the files of the running command in,
so that every command line between backticks can be pasted. Lines that need something else lose
their backticks; a verb alone may stay, as the name of a command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from taufit.cli.common import command_arguments

if TYPE_CHECKING:
    from taufit.recording.map.remedy import Remedy
    from taufit.robot import Robot

_COMMAND = re.compile(r"`taufit ([^`]+)`")
# Arguments of commands that messages mention by their verb alone.
_VERBS = {
    "design": "design ROBOT -o motion.json",
    "fit": "fit ROBOT RECORDING --holdout 30%",
    "check": "check MODEL RECORDING",
    "convert": "convert RECORDING --report",
    "export": "export MODEL -o arm.urdf",
    "payload": "payload MODEL RECORDING",
    "contact": "contact MODEL RECORDING",
    "report": "report MODEL -o report.html",
    "servo": "servo ROBOT RECORDING",
    "simulate": "simulate ROBOT -o run.parquet",
}
_NEED_MORE = (["health", "baseline"], ["health", "check"])
# Options that belong to an argument wherever it is given.
_OPTIONS = {
    "ROBOT": {"mounting": "--mounting", "base": "--base", "tip": "--tip", "hold": "--hold"},
    "RECORDING": {
        "map": "--map",
        "topic": "--topic",
        "torque_kind": "--torque-kind",
        "start": "--from",
        "end": "--to",
    },
}
_PLACEHOLDER = re.compile(r"[A-Z]{2,}|\.\.\.|.*\.\.\.")


def export_file(robot: Robot) -> str:
    """Name of an export that can hold the robot."""
    return "arm.c" if robot.is_tree else "arm.urdf"


def complete_commands(text: str) -> str:
    """Text with commands that can be pasted between backticks, and no others."""
    return _COMMAND.sub(_complete_command, text) if "`taufit " in text else text


def _complete_command(match: re.Match[str]) -> str:
    try:
        words = shlex.split(match[1])
    except ValueError:
        return match[0]
    if len(words) == 1 and words[0] in _VERBS:
        words = _VERBS[words[0]].split()
    elif len(words) == 1:
        return match[0]
    is_mention = len(shlex.split(match[1])) == 1
    argument_names = _known_arguments()
    options: list[str] = []
    for name in ("ROBOT", "RECORDING"):
        if name in words and name in argument_names:
            options += _given_options(name, words)
    if "--draft" in words and "ROBOT" in argument_names and "--robot" not in words:
        options += ["--robot", argument_names["ROBOT"]]
    words = [argument_names.get(word, word) for word in words]
    if any(_PLACEHOLDER.fullmatch(word) for word in words) or words in _NEED_MORE:
        return match[0] if is_mention else match[0].strip("`")
    return quote_command(*words, *options)


def _known_arguments() -> dict[str, str]:
    """Robot, first recording and model file of the running command, if they exist."""
    values = command_arguments.get()
    argument_names = {}
    if values.get("robot"):
        argument_names["ROBOT"] = str(values["robot"])
    recordings = next((values[n] for n in ("recording", "recordings") if values.get(n)), None)
    if recordings:
        first = recordings[0] if isinstance(recordings, (list, tuple)) else recordings
        argument_names["RECORDING"] = str(first)
    model = values.get("model") or (values.get("output") if "robot" in values else None)
    if isinstance(model, (str, Path)) and Path(model).is_file():
        argument_names["MODEL"] = str(model)
    return argument_names


def _given_options(name: str, words: Sequence[str]) -> list[str]:
    values = command_arguments.get()
    out: list[str] = []
    for key, option in _OPTIONS[name].items():
        if values.get(key) and option not in words and words[0] != "simulate":
            out += [option, str(values[key])]
    return out


def quote_command(*words: object) -> str:
    """`taufit ...` as it can be pasted into a shell, in backticks."""
    return f"`taufit {shlex.join(map(str, words))}`"


def next_step(*words: object, purpose: str = "") -> str:
    """Line "Next: `taufit ...` purpose."."""
    return f"Next: {quote_command(*words)}{f' {purpose}' if purpose else ''}"


def correct_arguments(
    arguments: Sequence[str], remedy: Remedy, map_file: object | None
) -> list[str] | None:
    """Arguments of a fit with the changes of a remedy; None if only a corrected map would help.

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
    return words
