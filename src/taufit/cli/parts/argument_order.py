"""Arguments in the wrong order: a recording in place of the robot or the model, and so on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from taufit.core.endings import RECORDING_ENDINGS, ROBOT_ENDINGS, ending


def require_argument_order(values: Mapping[str, Any]) -> None:
    """Wrong usage if the first argument is a recording and a later one the robot or the model."""
    recordings = values.get("recording")
    files = recordings if isinstance(recordings, (list, tuple)) else [recordings]
    words = [str(word) for word in files if word is not None]
    for name, is_kind in (("robot", _is_robot), ("model", _is_model)):
        first = str(values.get(name, ""))
        swapped = next((word for word in words if is_kind(word)), None)
        if values.get(name) and ending(first) in RECORDING_ENDINGS and swapped:
            command = " ".join(first if word == swapped else word for word in words)
            raise typer.BadParameter(
                f"{first} is a recording and {swapped} is the {name}: the {name} comes first, "
                f"`{swapped} {command}`.",
                param_hint=name.upper(),
            )

    source, model = str(values.get("source", "")), str(values.get("model", ""))
    if _is_model(source) and model and not _is_model(model):
        raise typer.BadParameter(
            f"{source} is the model: the robot or recording comes first, `{model} {source}`.",
            param_hint="MODEL",
        )


def _is_robot(word: str) -> bool:
    from taufit.robot import bundled_robots

    return word in bundled_robots(trees=True) or ending(word) in ROBOT_ENDINGS


def _is_model(word: str) -> bool:
    return Path(word).suffix == ".json"
