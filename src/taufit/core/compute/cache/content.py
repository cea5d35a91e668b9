"""Content of files, by which results on them are found again."""

from __future__ import annotations

import hashlib
from pathlib import Path


def content_hash(path: Path) -> str:
    """SHA-256 of a file's bytes; of the names and bytes of all files for a folder."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        if file is not path:
            total.update(str(file.relative_to(path)).encode())
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                total.update(chunk)
    return total.hexdigest()
