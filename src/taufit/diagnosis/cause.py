"""What is wrong with a recording, and what puts it right."""

from __future__ import annotations

from dataclasses import dataclass

from taufit.diagnosis.change import Change
from taufit.recording.finding import Finding


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """What is wrong, and the change that was found to put it right, if one was."""

    finding: Finding
    change: Change | None = None
