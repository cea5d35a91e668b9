"""Detection of recordings given more than once.

A fit treats rows as independent: a recording that counts twice makes intervals too narrow.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

# Bytes compared at both ends of a file before its whole content.
_ENDS = 2**16
_FileKey = Callable[[Path], Hashable]


def repeated_files(paths: Iterable[Path]) -> dict[int, int]:
    """Files (and folders that are recordings) with the content of an earlier one.

    Sizes are compared first, then both ends, then the content.

    Returns:
        Index of the repeat -> index of the first file with that content.
    """
    paths = list(paths)
    file_keys: tuple[_FileKey, ...] = (_size, _ends, _content)
    groups = [list(range(len(paths)))]
    for key in file_keys:
        groups = [
            part for group in groups for part in _split_group(group, paths, key) if len(part) > 1
        ]
    return {k: group[0] for group in groups for k in group[1:]}


def _split_group(group: list[int], paths: list[Path], key: _FileKey) -> list[list[int]]:
    parts: dict[Hashable, list[int]] = {}
    results: dict[tuple[int, int], Hashable] = {}
    for k in group:
        try:
            status = os.stat(paths[k])
            inode = status.st_dev, status.st_ino
            if inode not in results:
                results[inode] = key(paths[k])
        except OSError:
            continue  # reading it says why it cannot be read
        parts.setdefault(results[inode], []).append(k)
    return list(parts.values())


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())


def _size(path: Path) -> Hashable:
    files = _files(path)
    return tuple((f.relative_to(path).as_posix(), f.stat().st_size) for f in files)


def _ends(path: Path) -> Hashable:
    total = hashlib.blake2b(digest_size=20)
    for file in _files(path):
        with file.open("rb") as stream:
            total.update(stream.read(_ENDS))
            if stream.seek(0, os.SEEK_END) > 2 * _ENDS:
                stream.seek(-_ENDS, os.SEEK_END)
                total.update(stream.read(_ENDS))
    return total.digest()


def _content(path: Path) -> Hashable:
    total = hashlib.blake2b(digest_size=20)
    for file in _files(path):
        with file.open("rb") as stream:
            while chunk := stream.read(2**20):
                total.update(chunk)
    return total.digest()
