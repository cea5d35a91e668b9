"""Commands on the page of a fit: complete, with the files and options of this fit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taufit.cli.options import RecordingOptions
    from taufit.model.fitted_model import FittedModel

Command = tuple[str, str]
# Characters of a command that fit beside the charts of the first screen.
_LONGEST = 90


def _line(*words: object) -> str:
    return f"taufit {shlex.join(map(str, words))}"


def fit_commands(
    arguments: Sequence[str],
    fitted: FittedModel,
    model: Path,
    recordings: Sequence[Path],
    source: RecordingOptions,
    *,
    is_tested: bool,
) -> list[Command]:
    """Commands after a fit.

    Args:
        arguments: Arguments of the fit, robot first, without those about results.
        fitted: Fitted model.
        model: Model file.
        recordings: Training recordings.
        source: Options of the recordings.
        is_tested: Whether the fit had a hold-out.
    """
    out: list[Command] = []
    words = list(arguments)
    if words and not is_tested:
        holdout_fit = _line("fit", *words, "--holdout", "30%", "-o", model.with_name("tested.json"))
        out.append(("Test it on motion that the fit has not seen.", holdout_fit))
    base = fitted.training.base
    unseen = 0 if base is None else int((~base.identifiable).sum())
    robot = next((word for word in words if not word.startswith("-")), "")
    if robot and base is not None and unseen:
        text = (
            f"{unseen} of {len(base.names)} parameters show poorly in this motion: plan one that "
            "shows them."
        )
        out.append((text, _line("design", robot, "-o", model.with_name("motion.json"))))
    out += model_commands(model, recordings, source)
    return out[:3]


def model_commands(
    model: Path, recordings: Sequence[Path], source: RecordingOptions
) -> list[Command]:
    """Commands for a model file and recordings."""
    out = [
        (
            "Use it in a controller: C code that allocates nothing.",
            _line("export", model, "-o", model.with_name("arm.c")),
        )
    ]
    if recordings:
        line = _line("live", recordings[0], model, *_source_words(source))
        if len(line) <= _LONGEST:
            out.append(("Watch the recording with it, as a robot that runs.", line))
    return out


def _source_words(source: RecordingOptions) -> list[object]:
    options = (
        ("--map", source.map),
        ("--run", source.run),
        ("--topic", source.topic),
        ("--torque-kind", source.torque_kind),
    )
    return [word for name, value in options if value is not None for word in (name, value)]
