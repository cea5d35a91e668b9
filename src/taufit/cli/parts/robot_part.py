"""Part of a whole robot that was recorded, for commands that fit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from taufit.core.errors import RecordingError


def options_of_part(robot: str, paths: Sequence[Path], topic: str | None) -> dict[str, str]:
    """Options `tip` and `hold`, or `joints`, by the recorded joint names; empty without a choice.

    The part is named on stderr.
    """
    from taufit.workflow.recorded_chain import chain_of_files

    try:
        chain = chain_of_files(robot, paths, topic)
    except RecordingError:
        # Reading the recording for the fit names what is wrong with it.
        return {}
    if chain is None:
        return {}
    print(f"Of {robot}: {chain.description}.", file=sys.stderr)
    words = chain.options
    return {
        name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }
