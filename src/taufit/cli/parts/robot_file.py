"""Robot description that lies beside recordings, for commands without a robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_ENDINGS = (".urdf", ".xacro")


def find_robot_file(recordings: Sequence[Path]) -> Path | None:
    """The only description in the recordings' folder, else in the one above or the working one."""
    first = recordings[0]
    for folder in (first.parent, first.parent.parent, Path()):
        if folder.is_dir():
            files = sorted(path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)
            if files:
                return files[0] if len(files) == 1 else None
    return None
